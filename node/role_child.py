"""A role that owns partitions as a child process: `python -m node.role_child NUMBERS`, of its lines to its parent.

SIGTERM ends the batches in hand first. Why the parts of the role do not work, where they do not, goes to the parent
when it changes, and once a second in any case; figures do when they are asked for.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from node.borrowing import borrowed, listen
from node.garbage import collect_rarely
from node.joined import figures_of
from node.logging import logger
from node.process import parts_of, problem_of
from node.roles import Roles
from node.words import Counted, PartStanding, RoleOrders, RoleStanding
from runtime.clock import SystemClock
from runtime.telemetry import Telemetry

if TYPE_CHECKING:
    from runtime.host import RoleService

STOP_SECONDS = 15.0  # for the batches in hand
LOOK_SECONDS = 0.1  # between looks at how the parts are
WORD_SECONDS = 1.0  # and a word without any news


def main() -> None:
    """Own the role's partitions until told to stop."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    orders: RoleOrders
    orders, log = borrowed()
    telemetry = Telemetry(logger=logger(orders.log_format, orders.log_level))
    roles = Roles(
        log, SystemClock(), telemetry, state=orders.state, layout=orders.layout, retention=orders.retention,
        accept_clock_after=orders.accept_clock_after, member=orders.member, catch_up_rate=orders.catch_up_rate,
    )  # fmt: skip
    role: RoleService = {"scheduler": roles.scheduler, "dispatcher": roles.dispatcher}[orders.role]()
    listen(lambda: log.tell(Counted(figures_of(telemetry.registry))))
    role.start()
    known, told_at, settled = RoleStanding(()), 0.0, False
    while not told.wait(LOOK_SECONDS):
        standings = standings_of(role)
        if standings != known or time.monotonic() - told_at > WORD_SECONDS:
            log.tell(standings)
            known, told_at = standings, time.monotonic()
        if role.failure is not None:
            sys.exit(1)
        if not settled and role.ready(0):
            settled = True
            collect_rarely()
    role.stop(STOP_SECONDS)


def standings_of(role: RoleService) -> RoleStanding:
    """How all of it is now."""
    return RoleStanding(
        tuple(
            PartStanding(
                each.name, each.ready(0), None if each.failure is None else str(each.failure), problem_of(each)
            )
            for each in parts_of((role,))
        )
    )


if __name__ == "__main__":
    main()
