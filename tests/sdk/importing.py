"""What the tests of importers share: whole files in, definitions and remarks out, and the server's own opinion."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduler import checks
from schemas.faults import Refused
from tidewheel import definitions
from tidewheel.importers.report import Imported
from tidewheel.importers.writing import File, Settings

FIXTURES = Path(__file__).parent / "fixtures" / "imports"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def settings(**said: Any) -> Settings:
    return Settings(now=NOW, **said)


def fixture(name: str) -> File:
    return File(path=name, data=(FIXTURES / name).read_bytes())


def expected(name: str) -> list[dict[str, Any]]:
    """The definitions that are written out beside a fixture."""
    return [
        {"kind": each.kind, "name": each.name, **(each.body or {})}
        for each in definitions.read((FIXTURES / name).read_text("utf-8"), name)
    ]


def said(name: str) -> list[str]:
    """The remarks that are written out beside a fixture."""
    return (FIXTURES / name).read_text("utf-8").splitlines()


def remarks(imported: Imported) -> list[str]:
    return [str(remark) for remark in imported.remarks]


def accepted(document: dict[str, Any]) -> None:
    """Raises where the server would refuse a definition, or warn of it.

    That nothing is due between a beginning and an end is for the server to find: it has the calendar.
    """
    body = {key: value for key, value in document.items() if key not in {"kind", "tenant", "name"}}
    try:
        assert checks.schedule(body, hash_key=f"acme/{document['name']}", now=NOW, strict=True).warnings == ()
    except Refused as refusal:
        bounded = {"start_at", "end_at"} & document["trigger"].keys()
        if not bounded or {fault.code for fault in refusal.faults} != {"never_fires"}:
            raise
