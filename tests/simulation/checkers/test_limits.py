"""No more is with workers than a concurrency key and a tenant's quota allow: a part of I20."""

from typing import Any

from simulation.checkers import limits
from tests.simulation.checkers.given import JOB, Given, calm, created, ended, event, finished, handed_out, told


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("dispatcher", "12:00:05", facts)
    return told(limits.check(given.evidence()))


def handed(second: int, *, limit: int | None = None, tenant: str = "acme") -> dict[str, Any]:
    job = JOB if limit is None else JOB | {"concurrency": {"key": "db", "limit": limit}}
    return handed_out(created(f"12:00:{second:02}", job=job, tenant=tenant), second)


def adopted(running: int | None) -> dict[str, Any]:
    return event(
        "limits.adopted", subject="default/0", queue="default", shard=0, tenants={"acme": {"running": running}}
    )


def paused(since: str | None, *, queue: bool = False) -> dict[str, Any]:
    said: dict[str, Any] = {"limits": {"paused_at": since}} if queue else {"tenants": {"acme": {"paused_at": since}}}
    return event("limits.adopted", subject="default/0", queue="default", shard=0, **said)


def test_a_hand_out_while_its_queue_or_its_tenant_is_paused_is_found():
    since = "2026-03-01T12:00:04Z"
    said = (
        f"I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is handed out, and its queue is paused for it "
        f"since {since}"
    )
    assert found(paused(since), handed(5)) == [said]
    assert found(paused(since), handed(5, tenant="umbrella")) == []
    assert found(paused(since, queue=True), handed(5)) == [said]
    assert found(paused(since, queue=True), paused(None, queue=True), handed(5)) == []


def test_a_calm_history_keeps_its_limits():
    assert told(limits.check(calm().evidence())) == []


def test_a_hand_out_beyond_the_smallest_limit_of_its_key_is_found():
    assert found(handed(5, limit=2), handed(6, limit=2)) == []
    said = "I20 dispatcher-changelog-0@0: acme: run s.20260301T120006Z is handed out beside 1 of key db, of 1 that may"
    assert found(handed(5, limit=1), handed(6, limit=2)) == [said]
    assert found(handed(5, limit=1), ended(5, queue="default"), handed(6, limit=1)) == []
    assert found(handed(5, limit=1), handed(6, limit=1, tenant="umbrella"), handed(7)) == []


def test_a_hand_out_beyond_the_quota_that_was_adopted_is_found():
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T120006Z is handed out beside 1 of its tenant, of 1 that may"
    )
    assert found(adopted(1), handed(5), handed(6)) == [said]
    assert found(adopted(1), handed(5), adopted(None), handed(6)) == []


def queued(most: int | None) -> dict[str, Any]:
    return event("limits.adopted", subject="default/0", queue="default", shard=0, tenants={"acme": {"queued": most}})


def turned_away(second: int) -> dict[str, Any]:
    return finished("expired", run=f"s.20260301T1200{second:02}Z", reason="quota", queue="default", shard=0)


def test_a_run_that_is_taken_while_as_many_wait_as_may_is_found():
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T120006Z is taken while 1 of its tenant wait, of 1 that may"
    )
    first, second = created("12:00:05"), created("12:00:06")
    assert found(queued(1), first, second) == [said]
    assert found(queued(1), first, handed(5), second) == []
    assert found(queued(1), first, handed(5), ended(5, "failed", queue="default"), second) == [said]
    assert found(queued(1), created(tenant="umbrella"), second) == []
    assert found(queued(1), first, queued(None), second) == []


def test_a_run_that_is_turned_away_while_there_is_room_is_found():
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T120006Z is turned away while 1 of its tenant wait, of {} "
        "that may"
    )
    assert found(queued(2), created("12:00:05"), turned_away(6)) == [said.format(2)]
    assert found(created("12:00:05"), turned_away(6)) == [said.format("any number")]
    assert found(queued(1), created("12:00:05"), turned_away(6)) == []


def tripped(state: str, breaker: str = "schedule:s", reason: str = "failures") -> dict[str, Any]:
    until = "2026-03-01T12:00:34Z"
    return event(
        "breaker.changed", subject="acme/default", tenant="acme", queue="default", shard=0, breaker=breaker,
        state=state, reason=reason, until=until if state == "open" else None,
    )  # fmt: skip


def test_a_hand_out_while_its_breaker_is_open_is_found():
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is handed out, and schedule:s is open until "
        "2026-03-01T12:00:34Z"
    )
    assert found(tripped("open"), handed(5)) == [said]
    assert found(tripped("open"), tripped("half_open"), handed(5)) == []
    assert found(tripped("open"), handed(5, tenant="umbrella")) == []
    assert found(tripped("open", "schedule:t"), handed(5)) == []


def test_two_hand_outs_at_once_of_a_suspect_are_found():
    suspect = tripped("half_open", reason="losses")
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T120006Z is handed out beside 1 of schedule:s, which is a "
        "suspect"
    )
    assert found(handed(4), suspect, handed(5), handed(6)) == [said]
    assert found(suspect, tripped("open"), tripped("half_open", reason="waited"), handed(5), handed(6)) == [said]
    assert found(suspect, tripped("closed", reason="survived"), handed(5), handed(6)) == []
    assert found(suspect, handed(5), ended(5, run="s.20260301T120005Z", queue="default"), handed(6)) == []
    assert found(tripped("half_open", reason="waited"), handed(5), handed(6)) == []


# --- queues with several shards -----------------------------------------------------------------------------------


def spread(shard: int, shards: int, **limits: int) -> dict[str, Any]:
    return event(
        "limits.adopted", subject=f"default/{shard}", queue="default", shard=shard, limits={"shards": shards},
        tenants={"acme": limits},
    )  # fmt: skip


def handed_in(shard: int, second: int) -> dict[str, Any]:
    return handed_out(created(f"12:00:{second:02}", shard=shard), second, shard=shard)


def test_a_hand_out_beyond_the_part_of_its_shard_is_found():
    """Of five at work in three shards two are the first one's, two the second one's, one the third one's."""
    said = (
        "I20 dispatcher-changelog-0@0: acme: run s.20260301T1200{:02}Z is handed out beside {} of its tenant, of {} "
        "that may"
    )
    for shard, part in ((0, 2), (1, 2), (2, 1)):
        handed = [handed_in(shard, second) for second in range(part)]
        assert found(spread(shard, 3, running=5), *handed) == []
        assert found(spread(shard, 3, running=5), *handed, handed_in(shard, part)) == [said.format(part, part, part)]


def test_a_shard_that_the_queue_has_no_more_has_one_at_work():
    assert found(spread(3, 2, running=9), handed_in(3, 1)) == []
    assert len(found(spread(3, 2, running=9), handed_in(3, 1), handed_in(3, 2))) == 1
    assert len(found(spread(1, 3, running=1), handed_in(1, 1), handed_in(1, 2))) == 1


def test_what_the_shards_have_at_work_adds_up_to_the_quota():
    """As owners would have it who all keep the larger part: the second shard keeps to none of ours, and is found."""
    facts = [spread(0, 2, running=3), spread(1, 2, running=3), handed_in(0, 1), handed_in(0, 2), handed_in(1, 3)]
    assert found(*facts) == []
    assert found(*facts, handed_in(1, 4)) == [
        (
            "I20 dispatcher-changelog-0@0: acme: run s.20260301T120004Z is handed out beside 1 of its tenant, of 1 "
            "that may"
        ),
        "I20 dispatcher-changelog-0@0: acme: its 3 runs at work in queue default were 2 in shard 0, 2 in shard 1",
    ]


def test_of_a_quota_of_waiting_runs_each_shard_has_its_part():
    first, second = created("12:00:05", shard=1), created("12:00:06", shard=1)
    assert len(found(spread(1, 2, queued=3), first, second)) == 1
    assert found(spread(1, 2, queued=4), first, second) == []
    away = finished("expired", run="s.20260301T120006Z", reason="quota", queue="default", shard=1)
    assert found(spread(1, 2, queued=3), first, away) == []
    assert len(found(spread(1, 2, queued=4), first, away)) == 1
