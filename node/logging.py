"""How log events are written: for people on a terminal, or a JSON object a line for machines.

What libraries say by Python's own logging goes the same way. A client that cannot reach its broker says so ten times a
second, each of dozens: one line of a kind every ten seconds is enough, with how many were left out.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import structlog

REPEATED_SECONDS = 10.0  # at least so long between two lines of one kind
KINDS_MAX = 1_000  # then they are forgotten, and each may speak again


def logger(style: str, level: str) -> Any:
    """A structured logger that writes to standard error. `style`: console | json; `level`: from which level on."""
    lowest = logging.getLevelNamesMapping()[level.upper()]
    renderer = _renderer(style)
    _adopt_libraries(renderer, lowest)
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[*_shared(), *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
    )


def _shared() -> list[Any]:
    return [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]


def _renderer(style: str) -> list[Any]:
    if style == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # no local values: they may be secrets
        )
    ]


def _adopt_libraries(renderer: list[Any], lowest: int) -> None:
    """Libraries speak when something is wrong; what they tell besides is for their own makers."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, *_shared()[1:]],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    handler.addFilter(Once())
    logging.basicConfig(handlers=[handler], level=max(lowest, logging.WARNING), force=True)


class Once(logging.Filter):
    """Lets a line of a kind through once in a while. Of one kind are lines that differ only in their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; its text then tells how many like it were not."""
        now = time.monotonic()
        text = record.getMessage()
        kind = (record.name, text.translate(_NO_DIGITS))
        at, left_out = self._said.get(kind, (now - REPEATED_SECONDS, 0))
        if now - at < REPEATED_SECONDS:
            self._said[kind] = (at, left_out + 1)
            return False
        if len(self._said) >= KINDS_MAX:
            self._said.clear()
        self._said[kind] = (now, 0)
        if left_out:
            record.msg, record.args = f"{text} ({left_out} more like it)", ()
        return True


_NO_DIGITS = str.maketrans("", "", "0123456789")
