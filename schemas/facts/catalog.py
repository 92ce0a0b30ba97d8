"""Definitions that others refer to, as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from schemas.facts.fact import Fact
from schemas.frozen import frozen


@frozen
class CatalogEntry(Fact):
    """The current version of a reference definition; `definition` None says that it was deleted.

    `by` and `note` are what whoever changed it said: who they are, and why.
    """

    TYPE: ClassVar[str] = "tidewheel.catalog.entry.v1"
    kind: str
    tenant: str
    name: str
    version: int
    changed_at: datetime
    definition: Mapping[str, Any] | None = None
    command_id: str = ""
    source: str = ""
    by: str = ""
    note: str = ""

    @property
    def subject(self) -> str:
        return f"{self.kind}/{self.tenant}/{self.name}"
