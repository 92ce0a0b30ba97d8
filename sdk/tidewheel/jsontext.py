"""JSON in and out: orjson where it is installed, the standard library otherwise, with one behaviour.

What users return from a task is always written by the standard library, so that it depends on no installed package
whether a value counts as JSON.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import orjson
except ImportError:  # An optional speed-up: reading a hand-out takes a third of the time.
    _orjson = None
else:
    _orjson = orjson

_STRICT = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), check_circular=True)


def loads(text: bytes) -> Any:
    """Parsed JSON; ValueError when it is none."""
    return json.loads(text) if _orjson is None else _orjson.loads(text)


def dumps(value: Any) -> bytes:
    """JSON without blanks of values that we made ourselves."""
    return _STRICT.encode(value).encode() if _orjson is None else _orjson.dumps(value)


def dumps_strictly(value: Any) -> bytes:
    """JSON of a value that a user made; ValueError says why it has none."""
    try:
        return _STRICT.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from error
