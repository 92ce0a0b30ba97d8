"""A schedule that waits for others, and time that goes by."""

from typing import Any

from schemas.facts import OccurrenceSkipped
from tests.scheduler.harness import Shell, at, definition

WINDOW = "(2024-01-01T09:30:00Z, 2024-01-01T10:30:00Z]"
ALL: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def waiting(*upstreams: str, cron: str = "30 * * * *", **more: Any) -> dict[str, Any]:
    """A definition of a schedule that waits for others, half past every hour if nothing else is said."""
    of_schedule = {name: more.pop(name) for name in ("overlap", "trigger", "catch_up", "job") if name in more}
    after = [{"schedule": each, "mode": "interval", **more} for each in upstreams]
    of_schedule.setdefault("overlap", ALL["overlap"])
    return definition(cron, after=after, **of_schedule)


def pair(**more: Any) -> Shell:
    """`load` runs at every full hour, `report` at half past and waits for what was due in the hour before."""
    shell = Shell("2024-01-01T09:45:00")
    shell.put("load", definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", **more))
    shell.deliver()
    return shell


def live(shell: Shell, clock: str) -> None:
    """Up to an instant of the day; what owners tell each other is read when it is told."""
    until(shell, f"2024-01-01T{clock}:00")


def until(shell: Shell, instant: str) -> None:
    end = at(instant)
    told(shell)
    while (due := shell.next_wakeup()) is not None and due <= end:
        shell.now = max(shell.now, due)
        told(shell)
    shell.now = end
    told(shell)


def told(shell: Shell) -> None:
    shell.settle()
    while shell.deliver():
        shell.settle()


def ended(shell: Shell, hour: int, outcome: str = "succeeded") -> None:
    shell.finish(f"load.20240101T{hour:02}0000Z", outcome)
    told(shell)


def details(shell: Shell) -> list[str]:
    return [fact.detail for fact in shell.all(OccurrenceSkipped, "report")]
