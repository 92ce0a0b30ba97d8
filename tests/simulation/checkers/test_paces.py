"""No more is handed out than rates allow: a part of I20."""

from typing import Any

from simulation.checkers import paces
from tests.simulation.checkers.given import Given, calm, created, event, handed_out, told, z


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("dispatcher", "12:00:05", facts)
    return told(paces.check(given.evidence()))


def handed(at: str, *, tenant: str = "acme") -> dict[str, Any]:
    return handed_out(created(tenant=tenant), 1, handed_out_at=z(at))


def adopted(rate: str | None, *, queue: bool = False) -> dict[str, Any]:
    said: dict[str, Any] = {"limits": {"rate": rate}} if queue else {"tenants": {"acme": {"rate": rate}}}
    return event("limits.adopted", subject="default/0", queue="default", shard=0, **said)


def test_a_calm_history_has_no_rates():
    assert told(paces.check(calm().evidence())) == []


def test_a_hand_out_before_the_turn_of_its_tenant_is_found():
    assert found(adopted("12/m"), handed("12:00:05"), handed("12:00:09.9")) == [
        (
            "I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is handed out at 12:00:09.900000, "
            "where 12/m of tenant acme allows 12:00:10.000000"
        )
    ]
    assert found(adopted("12/m"), handed("12:00:05"), handed("12:00:10"), handed("12:00:15")) == []
    assert found(adopted("12/m"), handed("12:00:05"), handed("12:00:06", tenant="umbrella")) == []


def test_a_hand_out_before_the_turn_of_its_queue_is_found_whosever_it_is():
    said = found(adopted("1/s", queue=True), handed("12:00:05"), handed("12:00:05.5", tenant="umbrella"))
    assert said == [
        (
            "I20 dispatcher-changelog-0@0: umbrella: run s.20260301T120005Z is handed out at 12:00:05.500000, "
            "where 1/s of the queue allows 12:00:06.000000"
        )
    ]


def test_a_rate_that_is_lifted_or_replaced_holds_nothing_any_more():
    assert found(adopted("12/m"), handed("12:00:05"), adopted(None), handed("12:00:06")) == []
    assert found(adopted("12/m"), handed("12:00:05"), adopted("1/s"), handed("12:00:06")) == []


def test_a_fast_rate_may_come_together_as_much_as_one_look_ahead():
    """A hundred a second: five more within one instant are ahead by as much as an owner looks, seven are not."""
    at_once = [handed("12:00:05") for _ in range(6)]
    assert found(adopted("100/s"), *at_once) == []
    assert len(found(adopted("100/s"), *at_once, handed("12:00:05"))) == 1


# --- queues with several shards -----------------------------------------------------------------------------------


def spread(shards: int, rate: str | None, **limits: Any) -> dict[str, Any]:
    tenants = {"acme": {"rate": rate} | limits} if limits or rate else {}
    return event(
        "limits.adopted", subject="default/0", queue="default", shard=0, limits={"shards": shards}, tenants=tenants
    )


def test_each_of_three_shards_has_a_third_of_a_rate():
    said = found(spread(3, "12/m"), handed("12:00:05"), handed("12:00:19"))
    assert said == [
        (
            "I20 dispatcher-changelog-0@0: acme: run s.20260301T120005Z is handed out at 12:00:19.000000, "
            "where 12/m over 3 shards of tenant acme allows 12:00:20.000000"
        )
    ]
    assert found(spread(3, "12/m"), handed("12:00:05"), handed("12:00:20")) == []
    assert found(spread(3, "12/m", running=2), handed("12:00:05"), handed("12:00:15")) == []


def test_with_another_number_of_shards_the_rates_of_all_are_others():
    fewer = event("limits.adopted", subject="default/0", queue="default", shard=0, limits={"shards": 1})
    assert found(spread(3, "12/m"), handed("12:00:05"), fewer, handed("12:00:06"), handed("12:00:11")) == []
    assert len(found(spread(3, "12/m"), handed("12:00:05"), fewer, handed("12:00:06"), handed("12:00:10"))) == 1
