"""Refusals of this package: each says which field is wrong, why, and what to write instead."""

from typing import Self

SHOWN_CHARACTERS_MAX = 40  # enough to recognise a field; a refusal must not carry a page of somebody's input


class Refused(ValueError):
    """Input that is refused. `problem` and `remedy` are a sentence each, for the person who wrote it."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem} {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str]]:
        # Without this, unpickling would call us with the message alone.
        return type(self), (self.field, self.problem, self.remedy)


class CronError(Refused):
    """An expression that is refused; `field` is the one that is wrong, or `expression`."""


class RuleError(Refused):
    """A recurrence rule that is refused; `field` is the part that is wrong, or `rule`."""


class ZoneError(Refused):
    """A time zone name that is refused; the remedy names the nearest known zone where there is one."""


def shown(text: str) -> str:
    """Return `text` quoted, in ASCII and short: safe in a log line, a page or a terminal."""
    return ascii(text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "...")
