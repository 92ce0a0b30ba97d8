"""The projector as a child process: `python -m node.projector_child FD`, where FD is its end of the pipe to its parent.

A byte on standard input says that somebody waits for rows. When it closes, however its holder ended, this process ends
at once: rows and positions are written together, so that costs at most a batch. It does so too when nobody is at the
other end of the pipe: without its log it is of no use, and its parent starts another. SIGTERM ends the batch in hand
first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import NamedTuple

from node.garbage import collect_rarely
from node.lent import LentLog, Standing
from node.logging import logger
from projections.projector import Kept, Projector
from projections.store.database import open_database
from projections.store.writer import Writer
from runtime.clock import SystemClock

STOP_SECONDS = 10.0  # for the batch in hand


class Orders(NamedTuple):
    """What the parent says first."""

    model_url: str
    history: timedelta
    log_format: str
    log_level: str


def main() -> None:
    """Follow the lent log until told to stop."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    pipe = Connection(int(sys.argv[1]))
    orders: Orders = pipe.recv()
    logger(orders.log_format, orders.log_level)
    model = Writer(open_database(orders.model_url, alone=True))
    projector = Projector(log=LentLog(pipe), model=model, now=SystemClock().now, kept=Kept(history=orders.history))
    projector.on_progress(lambda: _tell(pipe, projector))
    threading.Thread(target=_listen, args=(projector,), name="holder", daemon=True).start()
    projector.start()
    collect_rarely()
    told.wait()
    projector.stop(STOP_SECONDS)


def _tell(pipe: Connection, projector: Projector) -> None:
    """From the projector's thread, which is the one that asks: so the pipe has one user. After each failure too."""
    standing = Standing(dict(projector.positions), projector.as_of, projector.ready(0), projector.problem)
    try:
        pipe.send(standing)
    except OSError:  # nobody is there any more
        os._exit(1)


def _listen(projector: Projector) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        projector.hurry()
    os._exit(1)


if __name__ == "__main__":
    main()
