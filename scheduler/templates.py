"""Payload templates: `{{ name }}` in a string stands for one of a few facts about the run. There are no expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from schemas.faults import Fault

NAMES = ("interval_from", "nominal_date", "nominal_time", "run_id", "schedule", "tenant")
PLACES_MAX = 100  # each may grow to a name's length: so a rendered payload stays within twice its limit

_SHOWN_MAX = 40

Render = Callable[[Mapping[str, str]], Mapping[str, Any]]


def compiled(payload: Mapping[str, Any]) -> Render | None:
    """What makes the payload of a run; None when the payload is the same for all of them."""
    if not any(_places(payload, "")):
        return None
    return lambda values: {key: _rendered(value, values) for key, value in payload.items()}


def faults(payload: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """A fault for each place that names nothing we know."""
    places = list(_places(payload, pointer))
    for where, name in places:
        if name not in NAMES:
            yield _unknown(where, name)
    if len(places) > PLACES_MAX:
        message = f"has {len(places)} places for values; at most {PLACES_MAX} are filled in"
        yield Fault(pointer=pointer, code="too_many_templates", message=message, remedy="name each value once")


def _places(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        for begin, end in _braces(value):
            yield pointer, value[begin:end].strip()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _places(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, f"{pointer}/{index}")


def _rendered(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _filled(value, values)
    if isinstance(value, Mapping):
        return {key: _rendered(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_rendered(item, values) for item in value]
    return value


def _filled(text: str, values: Mapping[str, str]) -> str:
    parts, then = [], 0
    for begin, end in _braces(text):
        parts += [text[then : begin - 2], values[text[begin:end].strip()]]
        then = end + 2
    return "".join([*parts, text[then:]])


def _braces(text: str) -> Iterator[tuple[int, int]]:
    """What stands between `{{` and the next `}}`. Each character is looked at once: a pattern would look for the end
    anew from each of the thirty thousand `{{` that a text may have.
    """
    opening = text.find("{{")
    while opening >= 0 and (end := text.find("}}", opening + 2)) >= 0:
        yield opening + 2, end
        opening = text.find("{{", end + 2)


def _unknown(pointer: str, name: str) -> Fault:
    near = get_close_matches(name[:_SHOWN_MAX], NAMES, n=1)
    remedy = f"did you mean {{{{ {near[0]} }}}}?" if near else f"there are: {', '.join(NAMES)}"
    shown = name if len(name) <= _SHOWN_MAX else name[:_SHOWN_MAX] + "…"
    return Fault(pointer=pointer, code="unknown_template", message=f"{{{{ {shown} }}}} is not known", remedy=remedy)
