"""Commands that a producer put on the wrong partition: forwarded once, then refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from runtime.logs.simulated import SimulatedLog
from runtime.machine import Output
from runtime.record import Outgoing, Record
from schemas import topics
from schemas.facts import CommandRejected, Position, RunCreated, ScheduleAccepted, SchedulePaused
from schemas.internal import CommandAnswered
from simulation.clock import ManualClock
from simulation.line import Line
from tests.scheduler.harness import Shell, at, definition

FOUR = topics.Layout(schedule=4, shard=1)  # acme/s belongs to partition 2 of four
DATA: dict[str, Any] = {"tenant": "acme", "name": "s", "definition": definition()}
EVENT = {"specversion": "1.0", "id": "7", "source": "upstream", "type": "tidewheel.schedule.put.v1", "data": DATA}


def partition(number: int, now: str = "2024-01-01T10:00:10") -> Shell:
    return Shell(now, layout=FOUR, number=number)


def sent_on(shell: Shell) -> Output:
    (output,) = (output for output in shell.outputs if output.topic == topics.SCHEDULE_CHANGES)
    return output


def headers(output: Output) -> dict[str, bytes]:
    return dict(output.headers)


def arrive(shell: Shell, output: Output, published: str | None = None) -> None:
    """The forwarded record, as the owner of a partition reads it."""
    texts: dict[str, Any] = {name.replace("-", "_"): value.decode() for name, value in output.headers}
    assert output.carried is not None
    shell.record(topics.SCHEDULE_CHANGES, output.carried, published=published, tw_seq="scheduler-0-1", **texts)


def test_a_command_in_a_foreign_partition_is_sent_to_its_own_with_where_and_when_it_stood():
    wrong = partition(0)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT, published="2024-01-01T10:00:00.250", reply_to=5)
    output = sent_on(wrong)
    assert (output.key, output.partition) == ("acme/s", None), "by murmur2 of the key"
    assert headers(output) == {
        "tw-origin": b"tidewheel.schedule-changes-0-1",
        "tw-origin-at": b"2024-01-01T10:00:00.250Z",
        "tw-reply-to": b"5",
    }
    assert wrong.to(topics.REJECTIONS) == []


def test_it_is_the_same_command_that_arrives():
    wrong = partition(0)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT | {"subject": "acme/s", "traceparent": "00-1"})
    carried = orjson.loads(sent_on(wrong).carried or b"")
    assert carried == EVENT | {"subject": "acme/s", "datacontenttype": "application/json"}


def test_a_command_in_binary_mode_is_sent_on_too():
    wrong = partition(0)
    texts = {"ce_specversion": "1.0", "ce_id": "7", "ce_source": "upstream", "ce_type": "tidewheel.schedule.put.v1"}
    pairs = tuple((name, text.encode()) for name, text in texts.items())
    read = wrong.core.read(Record(topics.SCHEDULE_CHANGES, 0, 1, None, orjson.dumps(DATA), pairs, wrong.now))
    assert read is not None
    wrong.decide(*read)
    assert orjson.loads(sent_on(wrong).carried or b"")["data"] == DATA


def test_a_forwarded_command_is_answered_by_its_owner():
    wrong, right = partition(0), partition(2)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT, reply_to=5)
    arrive(right, sent_on(wrong))
    assert (right.answer().status, right.answer().reply_to, right.answer().command_id) == (201, 5, "7")


def test_a_forwarded_command_takes_effect_when_it_first_stood_in_the_log():
    wrong, right = partition(0), partition(2)
    right.put(body=definition(overlap={"policy": "allow_all"}, grace="PT1H"))
    right.sleep_until("2024-01-01T10:05:30")
    pause = EVENT | {"type": "tidewheel.schedule.pause.v1", "data": {"tenant": "acme", "name": "s"}}
    wrong.record(topics.SCHEDULE_CHANGES, pause, published="2024-01-01T10:02:30")
    arrive(right, sent_on(wrong), published="2024-01-01T10:05:00")
    assert right.all(SchedulePaused)[0].effective_at == at("2024-01-01T10:02:30")


@pytest.mark.parametrize("since", ["soon", "", "2024-01-01T10:05:00Z"])
def test_since_when_it_stood_is_never_later_than_where_it_stands_now(since):
    right = partition(2, "2024-01-01T10:10:00")
    right.record(
        topics.SCHEDULE_CHANGES, EVENT, published="2024-01-01T10:01:00", tw_origin="changes-0-1", tw_origin_at=since
    )
    assert right.all(ScheduleAccepted)[0].effective_at == at("2024-01-01T10:01:00")


def test_a_command_that_was_sent_twice_counts_once_wherever_it_stood():
    wrong, right = partition(0), partition(2)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT)
    right.record(topics.SCHEDULE_CHANGES, EVENT)
    arrive(right, sent_on(wrong))
    assert len(right.all(ScheduleAccepted)) == 1


def test_a_forwarded_command_that_is_wrong_again_is_rejected_and_told_where_it_first_stood():
    wrong, still_wrong = partition(0), partition(1)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT, reply_to=5)
    arrive(still_wrong, sent_on(wrong))
    (rejected,) = still_wrong.all(CommandRejected)
    assert rejected.reason == "wrong_partition"
    assert rejected.faults[0].message == "acme/s belongs to partition 2, this is 1"
    assert rejected.position == Position(topic="tidewheel.schedule-changes", partition=0, offset=1)
    assert (still_wrong.answer().status, still_wrong.answer().reply_to) == (421, 5)
    assert [output for output in still_wrong.outputs if output.topic == topics.SCHEDULE_CHANGES] == []


def test_a_forwarded_command_that_is_refused_names_where_it_first_stood():
    wrong, right = partition(0), partition(2)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT | {"data": DATA | {"definition": definition("61 * * * *")}})
    arrive(right, sent_on(wrong))
    assert right.all(CommandRejected)[0].position == Position(topic="tidewheel.schedule-changes", partition=0, offset=1)


def test_what_cannot_be_read_is_not_sent_on():
    wrong = partition(0)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT | {"data": {"tenant": "acme", "name": "s"}})
    assert [fact.reason for fact in wrong.all(CommandRejected)] == ["invalid"]
    assert [output for output in wrong.outputs if output.topic == topics.SCHEDULE_CHANGES] == []


@pytest.mark.parametrize("origin", ["", "x", "a-1", "a-1-", "-1-2", "a-1-2-x", "a-1-9999999999999999999"])
def test_an_origin_that_is_no_place_is_none(origin):
    wrong = partition(0)
    wrong.record(topics.SCHEDULE_CHANGES, EVENT, tw_origin=origin)
    assert headers(sent_on(wrong))["tw-origin"] == b"tidewheel.schedule-changes-0-1"


def test_a_command_about_a_job_is_sent_on_alike():
    wrong = partition(0)
    data = {"tenant": "acme", "name": "s", "definition": {"target": {"type": "task", "name": "t"}}}
    wrong.record(topics.SCHEDULE_CHANGES, EVENT | {"type": "tidewheel.job.put.v1", "data": data})
    assert sent_on(wrong).key == "acme/s"


# --- on a log -----------------------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def line() -> Line:
    clock = ManualClock(NOON)
    return Line(SimulatedLog(1, clock), clock, layout=FOUR)


def append(line: Line, number: int, type_: str, data: dict[str, Any], id_: str) -> None:
    event = EVENT | {"type": f"tidewheel.{type_}.v1", "data": data, "id": id_}
    line.log.append([Outgoing(topics.SCHEDULE_CHANGES, number, b"k", orjson.dumps(event), (("tw-reply-to", b"0"),))])


def test_whatever_partition_a_producer_chooses_its_schedule_runs(line: Line):
    for number in range(4):
        append(line, number, "schedule.put", DATA, "one")
    line.settle()
    line.advance(timedelta(minutes=1))
    accepted = [fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, ScheduleAccepted)]
    assert [(fact.version, fact.effective_at) for fact in accepted] == [(1, NOON)]
    runs = [fact for fact in line.facts(topics.RUNS) if isinstance(fact, RunCreated)]
    assert [run.run_id for run in runs] == ["s.20260301T120100Z"]
    answers = [fact for fact in line.facts(topics.REPLIES) if isinstance(fact, CommandAnswered)]
    assert [answer.status for answer in answers] == [201, 201, 201, 201]


def test_a_schedule_that_names_where_its_job_was_written_never_misses_it(line: Line):
    """The whole way: the position of the job's answer goes with the command of the schedule."""
    job = {"tenant": "acme", "name": "load", "definition": DATA["definition"]["job"]}
    append(line, 3, "job.put", job, "job")
    line.processors[3].step(0.0)
    (answer,) = line.records(topics.REPLIES)
    assert answer.header("tw-seq") == b"scheduler-3-1"
    body = {"trigger": {"cron": "* * * * *"}, "job": "load"}
    schedule = {"tenant": "acme", "name": "s", "definition": body, "after_catalog": "scheduler-3-1"}
    append(line, 2, "schedule.put", schedule, "s")
    line.settle()
    (accepted,) = (fact for fact in line.facts(topics.RUN_EVENTS) if isinstance(fact, ScheduleAccepted))
    assert (accepted.warnings, accepted.effective_at) == ((), NOON)
