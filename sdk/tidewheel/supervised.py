"""A worker as a child process: `python -m tidewheel.supervised module:worker [--slots N] [--queue Q]`.

Whoever started it holds the other end of its standard input. When that closes, however its holder ended, this process
ends at once: there is no server left to report to. SIGTERM drains.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading

from tidewheel.loading import CannotLoad, load_worker

GRACE_SECONDS = 5.0  # The parent waits a little longer before it kills.


def main() -> None:
    """Run the named worker until told to stop, or until nobody holds the other end of standard input."""
    parser = argparse.ArgumentParser(prog="tidewheel.supervised")
    parser.add_argument("target")
    parser.add_argument("--slots", type=int)
    parser.add_argument("--queue")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    options = parser.parse_args()
    log_to_stderr(logging.getLevelNamesMapping()[options.log_level.upper()])
    end_with_holder()
    try:
        worker = load_worker(options.target)
        url = os.environ.get("TIDEWHEEL_URL")  # A parent that says where it is wants to be spoken to, over HTTP.
        worker.configure(queue=options.queue, slots=options.slots, url=url, grace_seconds=GRACE_SECONDS)
        worker.run()
    except (CannotLoad, ValueError) as error:
        sys.exit(str(error))


def log_to_stderr(level: int = logging.INFO) -> None:
    """What the worker and its tasks say goes to standard error; the HTTP library's own remarks do not."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)-7s %(name)s  %(message)s")
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def end_with_holder() -> None:
    """From now on end at once when nobody holds the other end of standard input any more."""
    threading.Thread(target=_wait_for_holders_end, name="holder", daemon=True).start()


def _wait_for_holders_end() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
