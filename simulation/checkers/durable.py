"""I18: what was acknowledged is there, once.

A call that was answered as done has its command in the log, judged once and as its caller was told. One that was
refused has changed nothing; refused by the door, it is not even in the log. One whose end its caller does not know has
happened once or not at all.

The same is owed to publishers: every readable command in the log is judged by the time all is at rest, and once. Its
verdict is remembered (`command.remembered`), or names its place (`command.rejected`); a cancel is passed on, and
answered by who has the run. What is judged stands there, and was not given up by its publisher. What a command changes
names its id: no command has changed one thing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from schemas import topics
from simulation.checkers.compatible import KNOWN
from simulation.checkers.reading import DISPATCHER, SCHEDULER, Event, Fact, events, facts
from simulation.evidence import POISON, Evidence, Place, Violation
from simulation.history import FAILED, OK, Call

ID = "I18"
ASKED = {"run.cancel": "run.cancel_requested", "breaker.reset": "breaker.reset_requested"}  # of a dispatcher
ACCEPTED = range(200, 300)
# What commands make true. A trigger makes one run; a cancel only asks, and may ask again.
EFFECTS = {
    "schedule.accepted", "schedule.paused", "schedule.resumed", "schedule.deleted", "run.created", "catalog.entry",
}  # fmt: skip

Key = tuple[str, str]  # source and id of a command


@dataclass(slots=True)
class _Verdict:
    """What became of a command."""

    remembered: list[Fact] = field(default_factory=list)
    rejected: list[Fact] = field(default_factory=list)
    answered: list[Fact] = field(default_factory=list)
    effects: list[Fact] = field(default_factory=list)
    asked: bool = False  # a cancel was passed on

    def statuses(self) -> set[int]:
        """How it was answered."""
        return {fact.data["status"] for fact in (*self.remembered, *self.answered)}


def observed(evidence: Evidence) -> int:
    """How many calls and commands were followed."""
    calls = sum(call.command_id != "" for call in evidence.history)
    return calls + len(_commands(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every promise that was not kept, and everything that happened twice."""
    verdicts = _verdicts(evidence)
    commands = {(event.source, event.id) for event in _commands(evidence)}
    known = {(event.source, event.id) for event in events(evidence, topics.SCHEDULE_CHANGES)}
    sources = {source for source, _ in known}  # an owner remembers of its own what it redrove
    for call in evidence.history:
        if call.command_id:
            yield from _call(call, verdicts.get((call.source, call.command_id), _Verdict()), commands)
    for (source, command_id), verdict in verdicts.items():
        yield from _once(command_id, verdict)
        if verdict.remembered and source in sources and (source, command_id) not in known:
            what = f"command {command_id} is judged, and stands nowhere"
            yield Violation(invariant=ID, what=what, where=verdict.remembered[0].place)
        if (source, command_id) in commands and len(verdict.rejected) > 1:
            what = f"command {command_id} is refused again; first at {verdict.rejected[0].place}"
            yield Violation(invariant=ID, what=what, where=verdict.rejected[1].place)
    if evidence.rested_at is not None:
        yield from _all_judged(evidence, verdicts)


def _call(call: Call, verdict: _Verdict, commands: set[Key]) -> Iterator[Violation]:
    where, stands = f"call {call.number}, {call.kind} {call.command_id}", (call.source, call.command_id) in commands
    if call.result == OK and not stands:
        yield Violation(invariant=ID, what="was done, and its command is not in the log", where=where)
    if call.result == OK and stands and not verdict.statuses() & set(ACCEPTED):
        what = f"was done ({call.status}), and the log says {sorted(verdict.statuses())}"
        yield Violation(invariant=ID, what=what, where=where)
    if call.result == FAILED and not call.reached_log and stands:
        yield Violation(invariant=ID, what="was refused at the door, and its command is in the log", where=where)
    if call.result == FAILED and verdict.effects:
        effect = verdict.effects[0]
        what = f"was refused ({call.status}), and has led to {effect.type} at {effect.place}"
        yield Violation(invariant=ID, what=what, where=where)


def _once(command_id: str, verdict: _Verdict) -> Iterator[Violation]:
    if len(verdict.remembered) > 1:
        what = f"command {command_id} is judged again; first at {verdict.remembered[0].place}"
        yield Violation(invariant=ID, what=what, where=verdict.remembered[1].place)
    seen: dict[tuple[str, str], Fact] = {}
    for effect in verdict.effects:
        first = seen.setdefault((effect.type, effect.data["tenant"]), effect)
        if first is not effect:
            what = f"command {command_id} leads to {effect.type} again; first at {first.place}"
            yield Violation(invariant=ID, what=what, where=effect.place)


def _all_judged(evidence: Evidence, verdicts: dict[Key, _Verdict]) -> Iterator[Violation]:
    rejected = {_place(fact) for verdict in verdicts.values() for fact in verdict.rejected}
    rejected |= {_place(fact) for fact in facts(evidence, SCHEDULER) if fact.type == "command.rejected"}
    for event in _commands(evidence):
        verdict = verdicts.get((event.source, event.id), _Verdict())
        judged = verdict.remembered or (event.type in ASKED and (verdict.asked or verdict.answered))
        if not judged and event.place not in rejected:
            yield Violation(invariant=ID, what=f"command {event.id} ({event.type}) was never judged", where=event.place)


def _commands(evidence: Evidence) -> list[Event]:
    """Readable commands, each place once; a forwarded one stands where it was sent to as well."""
    return [
        event
        for event in events(evidence, topics.SCHEDULE_CHANGES)
        if event.type in KNOWN and event.record.header(POISON) is None and event.record.header("tw-origin") is None
    ]


def _verdicts(evidence: Evidence) -> dict[Key, _Verdict]:
    found: dict[Key, _Verdict] = {}
    by_id: dict[str, _Verdict] = {}  # answers do not name the source
    for fact in facts(evidence, SCHEDULER):
        command_id = fact.data.get("command_id")
        if not command_id:
            continue
        if fact.type == "command.answered":
            by_id.setdefault(command_id, _Verdict()).answered.append(fact)
        elif fact.type == "run.created":
            by_id.setdefault(command_id, _Verdict()).effects.append(fact)
        else:
            _file(found.setdefault((fact.data.get("source", ""), command_id), _Verdict()), fact)
    for fact in facts(evidence, DISPATCHER):
        if fact.type == "command.answered":
            by_id.setdefault(fact.data["command_id"], _Verdict()).answered.append(fact)
    for (_, command_id), verdict in found.items():
        loose = by_id.get(command_id, _Verdict())
        verdict.answered += loose.answered
        verdict.effects += loose.effects
    return found


def _file(verdict: _Verdict, fact: Fact) -> None:
    if fact.type == "command.remembered":
        verdict.remembered.append(fact)
    elif fact.type == "command.rejected":
        verdict.rejected.append(fact)
    elif fact.type in ASKED.values():
        verdict.asked = True
    elif fact.type in EFFECTS:
        verdict.effects.append(fact)


def _place(fact: Fact) -> Place:
    at = fact.data["position"]
    return Place(at["topic"], at["partition"], at["offset"])
