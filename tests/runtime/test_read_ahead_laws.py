"""What is decided does not depend on how far is read ahead of what is answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.footer import FOOTER_KEY, read_footer
from runtime.limits import Limits
from runtime.logs.simulated import SimulatedLog
from runtime.record import SEQUENCE_HEADER
from schemas import codec, topics
from schemas.facts import OccurrenceSkipped, RunCreated
from simulation.clock import ManualClock
from simulation.line import Line

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHANGELOG = topics.changelog_topic("scheduler")
ONE = topics.Layout(schedule=1, shard=1)
TICK = timedelta(milliseconds=700)  # occurrences of every second stand apart from what is published
NAMES = ("a", "b", "c")
TENANTS = {"a": "acme", "b": "acme", "c": "globex"}
PLAIN = Limits(records=1000, ahead_records=1000)  # all that there is, in one step

Op = tuple[str, Any]
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("flood"), st.integers(1, 20)),
        st.tuples(st.sampled_from(["pause", "resume", "trigger"]), st.sampled_from(NAMES)),
        st.tuples(st.sampled_from(["poison", "job", "tick", "crash"]), st.none()),
        st.tuples(st.just("step"), st.integers(1, 4)),
    ),
    max_size=30,
)
BOUNDS = st.builds(
    Limits,
    records=st.sampled_from([1, 3, 20]),
    ahead_records=st.sampled_from([1, 4, 30, 1000]),
    ahead_bytes=st.sampled_from([1, 2000, 1 << 20]),
    facts=st.sampled_from([1, 10, 2000]),
    woken_keys=st.sampled_from([1, 2, 512]),
    steps_per_key=st.sampled_from([1, 32]),
)


@settings(max_examples=30, deadline=None)
@given(ops=OPS, bounds=BOUNDS, seed=st.integers(0, 3))
def test_each_occurrence_has_the_same_one_decision_however_much_is_read_ahead(
    ops: list[Op], bounds: Limits, seed: int
) -> None:
    """Pauses are known before what they are about, runs are created once, whoever dies on the way."""
    assert decisions(ops, bounds, seed) == decisions(ops, PLAIN, seed)


@pytest.mark.parametrize("ahead", [1, 10, 1000])
def test_a_pause_behind_a_flood_holds_and_its_neighbours_go_on(ahead: int) -> None:
    """Published before ten seconds of occurrences, and read long after them."""
    ops: list[Op] = [("flood", 200), ("pause", "b"), *[("tick", None), ("step", 1)] * 15]
    found = decisions(ops, Limits(records=5, ahead_records=ahead), 1)
    assert {what for (name, _), what in found.items() if name == "b"} == {"paused"}
    assert {what for (name, _), what in found.items() if name == "c"} == {"created"}
    assert len([name for name, _ in found if name == "c"]) == 10


@settings(max_examples=30, deadline=None)
@given(ops=OPS, bounds=BOUNDS, seed=st.integers(0, 3))
def test_a_footer_speaks_for_no_occurrence_that_is_decided_later(ops: list[Op], bounds: Limits, seed: int) -> None:
    """Whoever audits a log in the middle of a flood believes what the last footer says."""
    check_footers(played(ops, bounds, seed))


def test_a_footer_does_not_speak_for_a_schedule_that_is_new_and_behind() -> None:
    """Its command lay there for twenty seconds, and its occurrences since then need several batches."""
    clock = ManualClock(NOON)
    line = Line(SimulatedLog(1, clock), clock, layout=ONE, limits=Limits(steps_per_key=2))
    for name in NAMES:
        line.command("schedule.put", schedule(name))
    clock.advance(timedelta(seconds=20))
    settle(line)
    check_footers(line)
    assert len(told(line)) == 60


def decisions(ops: list[Op], limits: Limits, seed: int) -> dict[tuple[str, str], str]:
    """What became of each occurrence and of each trigger, once all is settled; it fails where something has two."""
    return told(played(ops, limits, seed))


def played(ops: list[Op], limits: Limits, seed: int) -> Line:
    clock = ManualClock(NOON)
    line = Line(SimulatedLog(seed, clock), clock, layout=ONE, limits=limits)
    for name in NAMES:
        line.command("schedule.put", schedule(name))
    settle(line)
    for number, (what, about) in enumerate(ops):
        play(line, what, about, number)
    settle(line)
    return line


def check_footers(line: Line) -> None:
    """Up to where a transaction says that all is decided, none behind it decides an occurrence."""
    footers = [read_footer(each.value or b"") for each in line.records(CHANGELOG) if each.key == FOOTER_KEY]
    said = {footer.sequence: footer.decided_until for footer in footers}
    for record in line.records(topics.RUN_EVENTS):
        fact = codec.read_fact(record.value or b"")
        before = int((record.header(SEQUENCE_HEADER) or b"").rpartition(b"-")[2]) - 1
        for (name, instant), _ in outcomes(fact):
            if before in said and instant.endswith("Z"):
                nominal = datetime.strptime(instant, "%Y%m%dT%H%M%S%z")
                assert nominal > said[before], f"{name} at {nominal}, behind {said[before]}"


def settle(line: Line) -> None:
    """The scheduler's partition alone: what becomes of its runs is nothing to it here."""
    while line.processors[0].step(0.0):
        pass


def play(line: Line, what: str, about: Any, number: int) -> None:
    match what:
        case "flood":
            for each in range(about):
                trigger(line, "a", f"flood-{number}-{each}")
        case "pause" | "resume":
            line.command(f"schedule.{what}", {"tenant": TENANTS[about], "name": about}, id_=f"{what}-{number}")
        case "trigger":
            trigger(line, about, f"trigger-{number}")
        case "poison":
            line.command("schedule.pause", {"tenant": "acme", "name": "b", "note": 1}, id_=f"poison-{number}")
        case "job":
            job = {"target": {"type": "task", "name": f"t{number}"}}
            line.command("job.put", {"tenant": "acme", "name": "j", "definition": job}, id_=f"job-{number}")
        case "tick":
            line.clock.advance(TICK)
        case "crash":
            line.start()
        case "step":
            for _ in range(about):
                line.processors[0].step(0.0)


def trigger(line: Line, name: str, id_: str) -> None:
    line.command("schedule.trigger", {"tenant": TENANTS[name], "name": name}, id_=id_)


def schedule(name: str) -> dict[str, Any]:
    definition = {
        "trigger": {"cron": "* * * * * *"},
        "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": "work"}},
    }
    return {"tenant": TENANTS[name], "name": name, "definition": definition}


def told(line: Line) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for fact in line.facts(topics.RUN_EVENTS):
        for key, what in outcomes(fact):
            assert key not in found, f"{key} is {found[key]}, and {what}"
            found[key] = what
    return found


def outcomes(fact: Any) -> list[tuple[tuple[str, str], str]]:
    if isinstance(fact, RunCreated):
        return [((fact.schedule, fact.run_id.rpartition(".")[2]), "created")]
    if not isinstance(fact, OccurrenceSkipped):
        return []
    first = fact.nominal_time if fact.range is None else fact.range.from_
    assert first is not None
    count = 1 if fact.range is None else fact.range.count
    seconds = [first + timedelta(seconds=number) for number in range(count)]
    return [((fact.schedule, f"{each:%Y%m%dT%H%M%SZ}"), fact.reason.value) for each in seconds]
