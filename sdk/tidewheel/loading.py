"""Finds the worker that a person names as `module:worker`."""

from __future__ import annotations

import importlib
import os
import sys

from tidewheel.worker import Worker


class CannotLoad(Exception):
    """The named worker can't be had, and why."""


def load_worker(target: str) -> Worker:
    """The worker `module:attribute` (`worker` when only a module is named), looked for from the current folder too."""
    module_name, _, attribute = target.partition(":")
    attribute = attribute or "worker"
    if os.getcwd() not in sys.path and "" not in sys.path:  # noqa: PTH109 -- sys.path holds text
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- as above
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CannotLoad(f"there is no module {error.name!r} (looked for {target!r} from {os.getcwd()})") from error  # noqa: PTH109
    except Exception as error:
        raise CannotLoad(f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}") from error
    worker = getattr(module, attribute, None)
    if not isinstance(worker, Worker):
        names = ", ".join(sorted(name for name, value in vars(module).items() if isinstance(value, Worker)))
        raise CannotLoad(f"{module_name!r} has no Worker called {attribute!r}; it has {names or 'none'}")
    return worker
