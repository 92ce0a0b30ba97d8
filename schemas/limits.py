"""How large and how deep what others send may be (contract: Names and limits)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson

from schemas import values
from schemas.faults import Fault

LABELS_MAX = 32
CRON_CHARACTERS_MAX = 256
CRON_EXPRESSIONS_MAX = 32  # of one schedule: each is asked at every decision
PAYLOAD_BYTES_MAX = 64 * 1024
PAYLOAD_DEPTH_MAX = 16
PAUSE_ON_FAILURE_MAX = 100  # failed runs in a row: whoever waits for more does not mind them
AT_INSTANTS_MAX = 1000  # a longer list is a calendar, which has its own kind
# A payload, 32 labels, a note and fields of newer versions fit; and a definition travels whole in several records,
# each of which must stay well under a record's megabyte.
DEFINITION_BYTES_MAX = 256 * 1024
# Around a payload stand event, data, entries, entry, definition, job and run.
RECORD_DEPTH_MAX = PAYLOAD_DEPTH_MAX + 8
RECORD_BYTES_MAX = 1024 * 1024  # what Kafka's brokers take by default; nothing of ours comes near it


def definition_limits(data: Any, pointer: str) -> Iterator[Fault]:
    """Faults of a definition that is too large or too deep to be looked at."""
    if deeper(data, RECORD_DEPTH_MAX):
        yield _too_deep(pointer, RECORD_DEPTH_MAX)
        return
    try:
        size = len(orjson.dumps(data, default=str))  # YAML brings dates; the models say what they think of them
    except TypeError as error:
        found = tuple(_not_json(data, pointer))
        yield from found or (Fault(pointer=pointer, code="not_json", message=f"is not JSON: {error}"),)
        return
    if size > DEFINITION_BYTES_MAX:
        message = f"has {size} bytes of JSON: at most {DEFINITION_BYTES_MAX}"
        yield Fault(pointer=pointer, code="too_large", message=message, remedy="pass a reference instead")


def json_limits(value: Any, pointer: str) -> Iterator[Fault]:
    """Faults of a payload that is too large, too deep, or holds what JSON cannot."""
    if deeper(value, PAYLOAD_DEPTH_MAX):
        yield _too_deep(pointer, PAYLOAD_DEPTH_MAX)
        return
    if strange := tuple(_not_json(value, pointer)):
        yield from strange
        return
    size = len(orjson.dumps(value))
    if size > PAYLOAD_BYTES_MAX:
        message = f"has {size} bytes of JSON: at most {PAYLOAD_BYTES_MAX}"
        yield Fault(pointer=pointer, code="too_large", message=message, remedy="pass a reference instead")


def deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` deep."""
    layer = [value]
    for _ in range(limit + 1):
        layer = [container for container in layer if isinstance(container, (dict, list, tuple))]
        if not layer:
            return False
        layer = [item for container in layer for item in _items(container)]
    return True


def _items(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _not_json(value: Any, pointer: str) -> Iterator[Fault]:
    """A fault for each thing in it that our JSON cannot hold. Its depth is bounded already."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _not_a_key(key, pointer)
            yield from _not_json(item, f"{pointer}/{values.escaped(str(key))}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _not_json(item, f"{pointer}/{index}")
    elif problem := _not_a_leaf(value):
        yield Fault(pointer=pointer, code="not_json", message=problem, remedy="write it as a quoted string")


def _not_a_key(key: Any, pointer: str) -> Iterator[Fault]:
    if not isinstance(key, str):
        yield Fault(pointer=pointer, code="not_json", message=f"the key {key!r} is not a string", remedy="quote it")
    elif problem := _not_a_leaf(key):
        yield Fault(pointer=pointer, code="not_json", message=problem)


def _not_a_leaf(value: Any) -> str:
    match value:
        case bool() | None:
            return ""
        case int():
            return "" if -(2**63) <= value < 2**64 else "is an integer of more than 64 bits"
        case float():
            return "" if math.isfinite(value) else f"JSON has no {value}"
        case str():
            return "" if value.isascii() or _is_unicode(value) else "has half a character (a lone surrogate)"
        case _:
            return f"JSON has no {type(value).__name__}"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep(pointer: str, limit: int) -> Fault:
    return Fault(pointer=pointer, code="too_deep", message=f"is nested deeper than {limit}", remedy="flatten it")
