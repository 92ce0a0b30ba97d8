"""An hourly schedule, and freezes that defer."""

from typing import Any

from tests.scheduler.harness import Shell, definition

TENANT = {"tenant": "acme", "name": "_"}
QUEUE = {"tenant": "_", "name": "default"}
NIGHT = {"from": "2026-12-20T02:00:00Z", "to": "2026-12-20T05:00:00Z", "note": "database move"}
ALL: dict[str, Any] = {"policy": "all", "rate": "1/s"}


def hourly(cron: str = "0 * * * *", **more: Any) -> dict[str, Any]:
    return definition(cron, **{"overlap": {"policy": "allow_all"}, **more})


def freeze(shell: Shell, *freezes: dict[str, Any], kind: str = "Tenant", thing: dict[str, str] = TENANT) -> None:
    """Put a definition with freezes, and let the partition adopt it."""
    shell.send(f"{kind}Put", definition={"freezes": list(freezes)}, **thing)
    assert shell.answer().status in (200, 201), shell.answer()
    shell.catalog(f"scheduler-0-{shell.commands}")
    shell.settle()
