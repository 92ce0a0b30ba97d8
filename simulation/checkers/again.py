"""What is asked to be done once more is done once: a part of I20.

- Each wish that was granted has one run, `of` the run that it names and with the payload that it gives, or that run's
  own; and no run is of another one without a wish.
- Nothing is run again before its outcome is told, and a dead letter is redriven once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Data, Event, Fact, events, facts
from simulation.evidence import Evidence, Violation

ID = "I20"
WISHES = frozenset({"run.rerun", "run.redrive"})
NAME = tuple[str, str, str]  # tenant, schedule, and the id of a command or a run
CREATED = 201


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that nobody wished for, or not so, and every wish that was granted and led to nothing."""
    wishes = {
        _name(event.data, event.id): event
        for event in events(evidence, topics.SCHEDULE_CHANGES)
        if event.type in WISHES
    }
    made: dict[NAME, Fact] = {}
    redriven: dict[NAME, Fact] = {}
    over = _over(evidence)
    appended = {event.data["run_id"]: event.record.appended_at for event in _reruns(evidence)}
    for fact in facts(evidence, SCHEDULER):
        if fact.type != "run.created" or fact.data["cause"] != "rerun":
            continue
        wish = wishes.get(_of_schedule(fact.data, fact.data.get("command_id", "")))
        if wish is None or wish.data["run_id"] != fact.data.get("of"):
            yield _violation(fact, f"is of {fact.data.get('of')}, and nobody wished for that")
            continue
        yield from _as_wished(wish, fact)
        yield from _once(made, _of_schedule(fact.data, wish.id), fact, f"wish {wish.id}")
        if wish.type == "run.redrive":
            yield from _once(
                redriven, _of_schedule(fact.data, wish.data["run_id"]), fact, f"the letter of {fact.data['of']}"
            )
        ended_at = over.get((fact.data["tenant"], fact.data["of"]))
        created_at = appended.get(fact.data["run_id"])
        if created_at is not None and (ended_at is None or ended_at > created_at):
            yield _violation(fact, f"is of {fact.data['of']}, which is open")
    yield from _granted(evidence, wishes, made)


def _as_wished(wish: Event, fact: Fact) -> Iterator[Violation]:
    payload = wish.data.get("payload")
    if payload is None:
        payload = wish.data["run"]["job"].get("payload")
    if fact.data["job"].get("payload") != payload:
        yield _violation(fact, f"has another payload than wish {wish.id} gives it")


def _once(made: dict[NAME, Fact], of: NAME, fact: Fact, what: str) -> Iterator[Violation]:
    first = made.setdefault(of, fact)
    if first is not fact:
        yield _violation(fact, f"is the second run of {what}: {first.data['run_id']} is the first")


def _granted(evidence: Evidence, wishes: dict[NAME, Event], made: dict[NAME, Fact]) -> Iterator[Violation]:
    for fact in facts(evidence, SCHEDULER):
        if fact.type == "command.remembered" and fact.data["status"] == CREATED:
            name = fact.data["tenant"], fact.data["name"], fact.data["command_id"]
            if name in wishes and name not in made:
                what = f"wish {fact.data['command_id']} for {fact.data['tenant']}/{fact.data['name']} was granted"
                yield Violation(invariant=ID, what=f"{what}, and nothing runs", where=fact.place)


def _reruns(evidence: Evidence) -> Iterator[Event]:
    for event in events(evidence, topics.RUN_EVENTS):
        if event.type == "run.created" and event.data["cause"] == "rerun":
            yield event


def _over(evidence: Evidence) -> dict[tuple[str, str], datetime]:
    """When each outcome first stood in the log."""
    found: dict[tuple[str, str], datetime] = {}
    for event in events(evidence, topics.RUN_OUTCOMES):
        if event.type == "run.finished":
            run, at = (event.data["tenant"], event.data["run_id"]), event.record.appended_at
            found[run] = min(found.get(run, at), at)
    return found


def _of_schedule(data: Data, id_: str) -> NAME:
    return data["tenant"], data["schedule"], id_


def _name(data: Data, id_: str) -> NAME:
    return str(data.get("tenant", "")), str(data.get("name", "")), id_


def _violation(fact: Fact, what: str) -> Violation:
    return Violation(invariant=ID, what=f"{fact.data['tenant']}: run {fact.data['run_id']} {what}", where=fact.place)
