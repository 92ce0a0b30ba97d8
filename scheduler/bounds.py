"""How much of a stranger's input is repeated back to him: a refusal must not be larger than what was refused."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.faults import Fault

FAULTS_MAX = 50  # whoever has mended fifty runs it again
WARNINGS_MAX = 20
CHARACTERS_MAX = 500


def faults(found: Sequence[Fault]) -> tuple[Fault, ...]:
    """The first ones, and how many more there are."""
    shown = tuple(_short(fault) for fault in found[:FAULTS_MAX])
    if len(found) <= FAULTS_MAX:
        return shown
    message = f"{len(found) - FAULTS_MAX} more faults are not listed"
    return (*shown, Fault(pointer="", code="more", message=message, remedy="mend these first"))


def detail(found: Sequence[Fault]) -> str:
    """All of it in one sentence, for those who show only one."""
    return text(found[0].message) if len(found) == 1 else f"{len(found)} faults"


def warnings(found: Sequence[str]) -> tuple[str, ...]:
    """The first ones, and how many more there are."""
    shown = tuple(text(warning) for warning in found[:WARNINGS_MAX])
    more = len(found) - WARNINGS_MAX
    return (*shown, f"{more} more warnings are not listed") if more > 0 else shown


def text(long: str) -> str:
    """Its head, where it is too long."""
    return long if len(long) <= CHARACTERS_MAX else long[:CHARACTERS_MAX] + "…"


def _short(fault: Fault) -> Fault:
    parts = (fault.pointer, fault.message, fault.remedy)
    if all(len(part) <= CHARACTERS_MAX for part in parts):
        return fault
    pointer, message, remedy = map(text, parts)
    return Fault(pointer=pointer, code=fault.code, message=message, remedy=remedy)
