"""The projector as a child process: `python -m node.projector_child NUMBERS`, of its lines to its parent.

A byte on standard input says that somebody waits for rows. Whatever ends its parent ends it at once: rows and positions
are written together, so that costs at most a batch. SIGTERM ends the batch in hand first.
"""

from __future__ import annotations

import signal
import threading

from node.borrowing import borrowed, listen
from node.garbage import collect_rarely
from node.logging import logger
from node.priority import give_way
from node.words import ProjectorOrders, ProjectorStanding
from projections.projector import Kept, Projector
from projections.store.database import open_database
from projections.store.writer import Writer
from runtime.clock import SystemClock

STOP_SECONDS = 10.0  # for the batch in hand


def main() -> None:
    """Follow the lent log until told to stop."""
    give_way()
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    orders: ProjectorOrders
    orders, log = borrowed()
    logger(orders.log_format, orders.log_level)
    model = Writer(open_database(orders.model_url, alone=True))
    projector = Projector(log=log, model=model, now=SystemClock().now, kept=Kept(history=orders.history))
    projector.on_progress(lambda: log.tell(standing_of(projector)))  # after each failure too
    listen(projector.hurry)
    projector.start()
    collect_rarely()
    told.wait()
    projector.stop(STOP_SECONDS)


def standing_of(projector: Projector) -> ProjectorStanding:
    """How far it is now."""
    return ProjectorStanding(dict(projector.positions), projector.as_of, projector.ready(0), projector.problem)


if __name__ == "__main__":
    main()
