"""How log events are written: for people on a terminal, or a JSON object a line for machines."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def logger(style: str, level: str) -> Any:
    """A structured logger that writes to standard error. `style`: console | json; `level`: from which level on."""
    processors: list[Any] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    if style == "json":
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                exception_formatter=structlog.dev.plain_traceback,  # no local values: they may be secrets
            )
        )
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
    )
