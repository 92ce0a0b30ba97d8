"""How log events are written: for people on a terminal, or a JSON object a line for machines.

What libraries say by Python's own logging goes the same way.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


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
    logging.basicConfig(handlers=[handler], level=max(lowest, logging.WARNING), force=True)
