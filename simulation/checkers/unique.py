"""I1: at most one run entity for an occurrence, and one for any other cause.

A run is written to `runs` (for the dispatcher) and to `run-events` (for everyone), and after a failure perhaps again;
its id is a function of what it is for and its event id one of its content. So all that is said to create one run must
be one event, and all runs of one (tenant, schedule, nominal time) must be one run, those `of` another left out. The run
of an occurrence goes by its schedule and its nominal time.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import Event, events, instant
from simulation.evidence import Evidence, Violation

ID = "I1"
OF_OCCURRENCES = {"schedule", "catch_up", "backfill"}  # design §5: whose ids are no hashes


def observed(evidence: Evidence) -> int:
    """How many times a run was created."""
    return len(_created(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every second run for one thing."""
    first_of_run: dict[tuple[str, str], Event] = {}
    first_of_occurrence: dict[tuple[str, str, str], Event] = {}
    for event in _created(evidence):
        tenant, run_id, nominal = event.data["tenant"], event.data["run_id"], event.data.get("nominal_time")
        first = first_of_run.setdefault((tenant, run_id), event)
        if first.id != event.id:
            yield Violation(
                invariant=ID, what=f"{tenant}: run {run_id} is created as another than at {first.place}",
                where=event.place,
            )  # fmt: skip
        if nominal is None or event.data.get("of") is not None:
            continue
        expected = f"{event.data['schedule']}.{instant(nominal):%Y%m%dT%H%M%SZ}"
        if event.data["cause"] in OF_OCCURRENCES and run_id != expected:
            what = f"{tenant}: the run for {nominal} is called {run_id}, not {expected}"
            yield Violation(invariant=ID, what=what, where=event.place)
        first = first_of_occurrence.setdefault((tenant, event.data["schedule"], nominal), event)
        if first.data["run_id"] != run_id:
            yield Violation(
                invariant=ID,
                what=f"{tenant}: run {run_id} is for {nominal}, as is {first.data['run_id']} at {first.place}",
                where=event.place,
            )


def _created(evidence: Evidence) -> list[Event]:
    return evidence.once(
        "created runs",
        lambda: [
            event
            for topic in (topics.RUN_EVENTS, topics.RUNS)
            for event in events(evidence, topic)
            if event.type == "run.created"
        ],
    )
