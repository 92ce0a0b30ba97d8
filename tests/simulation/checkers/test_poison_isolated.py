"""I11: a bad record costs itself."""

import pytest

from schemas import topics
from simulation.checkers import poison_isolated
from tests.simulation.checkers.given import calm, event, told

COMMAND = event("schedule.put", id_="command-9", tenant="acme", name="bad")


def found(given) -> list[str]:
    return told(poison_isolated.check(given.evidence()))


def reject(given, offset, **other) -> None:
    said = {
        "tenant": "_", "name": "_", "reason": "not_json", "faults": [{"code": "not_json"}],
        "position": {"topic": topics.SCHEDULE_CHANGES, "partition": 0, "offset": offset},
    }  # fmt: skip
    rejection = event("command.rejected", subject="_/_", **said | other)
    given.transaction("scheduler", "12:00:15", [rejection], [(topics.REJECTIONS, rejection)])


@pytest.mark.parametrize("value", [b"\xff", b"", b"[]", b"{}", None, COMMAND])
def test_a_bad_record_that_was_rejected_and_passed_is_isolated(value):
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, value, headers={"sim-poison": "planted"})
    reject(given, 1)
    assert found(given) == []
    assert poison_isolated.observed(given.evidence()) == 1


def test_what_cannot_be_read_is_bad_without_being_called_so():
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, b"\xff")
    given.transaction("scheduler", "12:00:15")
    assert found(given) == ["I11 schedule-changes-0@1: a bad record (is no event) has no rejection"]


def test_a_bad_record_that_was_dropped_in_silence_is_found():
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, COMMAND, headers={"sim-poison": "no definition"})
    given.transaction("scheduler", "12:00:15")
    assert found(given) == ["I11 schedule-changes-0@1: a bad record (no definition) has no rejection"]


def test_a_command_that_its_publisher_appends_again_is_refused_once():
    """Two copies in a wrong partition are both sent on; their owner knows the second one by its id."""
    given = calm()
    for _ in range(2):
        given.append(topics.SCHEDULE_CHANGES, COMMAND | {"source": "upstream"}, headers={"sim-poison": "no job"})
    reject(given, 1, source="upstream", command_id="command-9")
    assert found(given) == []
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, COMMAND | {"source": "upstream"}, headers={"sim-poison": "no job"})
    reject(given, 0, source="another", command_id="command-9")
    assert len(found(given)) == 1


def test_a_bad_record_that_holds_up_its_partition_is_found():
    given = calm()
    given.append(topics.ATTEMPTS, b"\xff")
    assert found(given)[1:] == ["I11 attempts-0@1: a bad record (is no event) holds up dispatcher-0, which is at 1"]


@pytest.mark.parametrize("other", [{"reason": ""}, {"faults": []}])
def test_a_rejection_without_a_reason_is_found(other):
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, b"\xff")
    reject(given, 1, **other)
    assert found(given) == ["I11 schedule-changes-0@1: the rejection of a bad record (is no event) gives no reason"]


def test_a_tombstone_in_the_catalog_is_no_bad_record():
    given = calm()
    given.append(topics.CATALOG, None)
    assert poison_isolated.observed(given.evidence()) == 0


def test_an_event_in_binary_mode_is_no_bad_record():
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, {"tenant": "acme"}, headers={"ce_type": "tidewheel.schedule.put.v1"})
    assert poison_isolated.observed(given.evidence()) == 0
