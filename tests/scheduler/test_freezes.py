"""Freezes of tenants and queues: what is due in their windows is skipped, and the decision says by whom and why."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import OccurrenceSkipped, RunCreated
from tests.scheduler.harness import Shell, definition

TENANT = {"tenant": "acme", "name": "_"}
QUEUE = {"tenant": "_", "name": "reports"}
NIGHT = {"from": "2026-12-20T02:00:00Z", "to": "2026-12-20T05:00:00Z", "action": "skip"}


def hourly(queue: str = "default", **more: Any) -> dict[str, Any]:
    body = definition("0 * * * *", overlap={"policy": "allow_all"}, **more)
    body["job"]["queue"] = queue
    return body


def freeze(shell: Shell, kind: str, thing: dict[str, str], *freezes: dict[str, Any]) -> None:
    """Put a definition with freezes, and let the partition adopt it."""
    shell.send(f"{kind}Put", definition={"freezes": list(freezes)}, **thing)
    assert shell.answer().status in (200, 201), shell.answer()
    shell.catalog(f"scheduler-0-{shell.commands}")


def test_what_is_due_in_a_window_of_its_tenant_is_skipped_and_says_why():
    shell = Shell("2026-12-20T00:00:00")
    freeze(shell, "Tenant", TENANT, {**NIGHT, "note": "database move"})
    shell.put(body=hourly())
    shell.until("2026-12-20T06:00:00")
    assert shell.created() == ["01:00", "05:00", "06:00"]
    assert shell.skipped() == ["02:00 frozen", "03:00 frozen", "04:00 frozen"]
    assert {fact.detail for fact in shell.all(OccurrenceSkipped)} == {
        "by freeze of tenant acme (version 1): database move"
    }
    assert [fact.used for fact in shell.all(RunCreated)] == [{"tenant/acme/_": 1}] * 3


def test_a_freeze_of_a_queue_holds_for_what_goes_there_by_a_job_of_its_own_or_a_registered_one():
    shell = Shell("2026-12-20T00:00:00")
    freeze(shell, "Queue", QUEUE, NIGHT)
    job = {"queue": "reports", "target": {"type": "task", "name": "t"}}
    shell.send("JobPut", name="j", definition=job)
    shell.catalog("scheduler-0-9")
    shell.put("inline", body=hourly("reports"))
    shell.put("named", body={**hourly(), "job": "j"})
    shell.put("other", body=hourly())
    shell.until("2026-12-20T03:00:00")
    assert shell.skipped("inline") == shell.skipped("named") == ["02:00 frozen", "03:00 frozen"]
    assert (shell.created("other"), shell.skipped("other")) == (["01:00", "02:00", "03:00"], [])


def test_a_window_that_comes_again_follows_clocks():
    """Sundays from two to four in New York: four hours behind in summer, five in winter."""
    shell = Shell("2026-10-25T00:00:00")
    again = {"cron": "0 2 * * SUN", "duration": "2h", "timezone": "America/New_York", "action": "skip"}
    freeze(shell, "Tenant", TENANT, again)
    shell.put(body=hourly())
    shell.until("2026-11-08T12:00:00")
    frozen = [fact.nominal_time for fact in shell.all(OccurrenceSkipped)]
    assert [f"{at:%m-%d %H:%M}" for at in frozen if at is not None] == [
        "10-25 06:00", "10-25 07:00", "11-01 07:00", "11-01 08:00", "11-08 07:00", "11-08 08:00"
    ]  # fmt: skip


def test_a_freeze_that_is_lifted_counts_for_what_is_not_decided():
    shell = Shell("2026-12-20T00:00:00")
    freeze(shell, "Tenant", TENANT, NIGHT)
    shell.put(body=hourly())
    shell.until("2026-12-20T02:30:00")
    freeze(shell, "Tenant", TENANT)
    shell.until("2026-12-20T04:00:00")
    shell.reload()
    assert (shell.created(), shell.skipped()) == (["01:00", "03:00", "04:00"], ["02:00 frozen"])
    assert shell.last_run().used == {}


def test_after_an_outage_the_latest_outside_of_a_freeze_is_caught_up():
    shell = Shell("2026-12-20T00:00:00")
    freeze(shell, "Tenant", TENANT, NIGHT)
    shell.put(body=hourly())
    shell.sleep_until("2026-12-20T04:30:00")
    shell.settle()
    assert shell.created() == ["01:00@04:30"]
    assert shell.skipped() == ["02:00..04:00 x3 frozen"]


def test_runs_by_hand_are_not_frozen():
    shell = Shell("2026-12-20T03:00:00")
    freeze(shell, "Tenant", TENANT, NIGHT)
    shell.put(body=hourly())
    shell.send("ScheduleTrigger")
    assert shell.created() == ["manual"]


def test_a_paused_schedule_is_paused_in_a_freeze_too():
    shell = Shell("2026-12-20T01:30:00")
    freeze(shell, "Tenant", TENANT, NIGHT)
    shell.put(body=hourly())
    shell.send("SchedulePause")
    shell.until("2026-12-20T02:00:00")
    assert shell.skipped() == ["02:00 paused"]


@pytest.mark.parametrize(
    ("freeze", "pointer", "code"),
    [
        ({"cron": "61 * * * *", "duration": "1h", "action": "skip"}, "/cron", "cron"),
        ({"cron": "0 0 2 * * *", "duration": "1h", "action": "skip"}, "/cron", "cron"),
        (
            {"cron": "0 2 * * *", "duration": "1h", "timezone": "Mars/Olympus", "action": "skip"},
            "/timezone",
            "timezone",
        ),
        ({**NIGHT, "timezone": "Mars/Olympus"}, "/timezone", "timezone"),
    ],
)
def test_a_freeze_that_cannot_be_meant_is_refused_with_its_place(freeze, pointer, code):
    shell = Shell()
    shell.send("QueuePut", definition={"freezes": [freeze]}, **QUEUE)
    assert [(fault.pointer, fault.code) for fault in shell.answer().faults] == [
        (f"/data/definition/freezes/0{pointer}", code)
    ]


@settings(max_examples=25, deadline=None)
@given(opens=st.integers(1, 20), hours=st.integers(1, 12), naps=st.lists(st.integers(1, 9), max_size=6))
def test_what_is_frozen_does_not_depend_on_how_time_was_cut(opens: int, hours: int, naps: list[int]):
    shell = Shell("2026-12-20T00:00:00")
    ends = opens + hours
    to = f"2026-12-{20 + ends // 24}T{ends % 24:02}:00:00Z"
    freeze(shell, "Tenant", TENANT, {"from": f"2026-12-20T{opens:02}:00:00Z", "to": to, "action": "skip"})
    shell.put(body=hourly(catch_up={"policy": "all"}))
    for nap in (*naps, 24):
        hour = min(shell.now.hour + 24 * (shell.now.day - 20) + nap, 40)
        shell.now = shell.now.replace(day=20 + hour // 24, hour=hour % 24)
        shell.settle()
    shell.now = shell.now.replace(day=21, hour=16)
    shell.settle()
    shell.until("2026-12-21T16:30:00")  # what was missed comes at a rate
    frozen = sum(1 if fact.range is None else fact.range.count for fact in shell.all(OccurrenceSkipped))
    assert (frozen, len(shell.all(RunCreated))) == (hours, 40 - hours)
    shell.reload()
