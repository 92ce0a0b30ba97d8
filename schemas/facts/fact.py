"""What every fact has: a CloudEvents type, and a subject."""

from __future__ import annotations

from typing import ClassVar


class Fact:
    """A published fact. Subclasses are frozen dataclasses with a TYPE and a subject."""

    __slots__ = ()
    TYPE: ClassVar[str]

    @property
    def subject(self) -> str:
        """What the fact is about; also the key of its record."""
        raise NotImplementedError


class OfSchedule(Fact):
    """A fact whose subject is the schedule that stands in its `tenant` and `schedule` fields."""

    __slots__ = ()
    tenant: str
    schedule: str

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.schedule}"


class OfPartition(Fact):
    """A fact about one partition of a role; key and subject are `_/<role>-<partition>`."""

    __slots__ = ()
    role: str
    partition: int

    @property
    def subject(self) -> str:
        return f"_/{self.role}-{self.partition}"
