"""What an upstream answers to those that wait for a window of its occurrences.

A question is judged when all up to the end of its window is decided, in the order of instants with the outcomes. The
first occurrence in it that has no outcome, or else the first that is wrong, stands in the way: the question is judged
again when that one has another fate, from a late success or a backfill. So an outcome costs what the questions cost
that it stands in the way of, and a question a few look-ups; the ledger tells a million occurrences in a few segments.

What rules took out, `excluded`, was no occurrence. What else was skipped has neither succeeded nor finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from scheduler import fates, fills, keys, ledger, timeline
from scheduler.context import Context
from scheduler.instants import from_millis, from_seconds, millis, seconds
from scheduler.links import listeners
from scheduler.links.state import Asked, Links, Question
from scheduler.links.windows import Fate
from schemas import codec, identity
from schemas.facts import Fact, RunCreated, SkipReason
from schemas.linking import EdgeUnlisted, WindowAsked, WindowJudged, WindowNoted

if TYPE_CHECKING:
    from runtime.machine import Rows
    from scheduler.state import Backfill, ScheduleState, Segment

T = TypeVar("T")

NOWHERE = 0  # where questions are stuck whose schedule is not there
NO_OUTCOME = "had no outcome"


def noted(state: ScheduleState, word: WindowAsked, appended_ms: int) -> tuple[Fact, ...]:
    """A question of one that is listed. Asked again it is judged again, and answered."""
    listener = listeners.find(state, word.schedule)
    if listener is None or listener.mode != "interval":
        return ()
    return (
        WindowNoted(
            tenant=state.tenant, schedule=state.name, downstream=word.schedule, nominal_time=word.nominal_time,
            after=word.after, until=word.until, condition=word.condition, once=word.once, expires_at=word.expires_at,
            appended_at=from_millis(appended_ms),
        ),
    )  # fmt: skip


def ready_ms(state: ScheduleState) -> int | None:
    """When the first question can be judged: all up to the end of its window is decided."""
    asked = state.links.asked
    if asked is None:
        return None
    due, _, _, taken = timeline.upcoming(state)
    if due is None or due.nominal > asked.until or (taken is not None and asked.until <= taken.last):
        return asked.at_ms
    return None


def judge(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """The first question is answered."""
    question = _find(state.rows, next(_named(state.rows, keys.QUESTION_DUE)))
    assert question is not None, "what is noted stands in its row"
    fate, instant, detail = _judged(state, question)
    return (
        WindowJudged(
            tenant=state.tenant, schedule=state.name, downstream=question.downstream,
            nominal_time=from_seconds(question.nominal), version=state.version, fate=fate.value, judged_at=context.now,
            instant=None if instant is None else from_seconds(instant), detail=detail,
        ),
    )  # fmt: skip


# --- how it stands ------------------------------------------------------------------------------------------------


def _judged(state: ScheduleState, question: Question) -> tuple[Fate, int | None, str]:
    if not state.version:
        return Fate.UNKNOWN, None, "there is no such schedule"
    first, last = question.after + 1, question.until
    opened = min(_open(state, first, last), default=None)
    if opened is not None:
        return Fate.OPEN, opened, NO_OUTCOME
    filled = {} if state.filled_from is None else dict(fills.between(state.rows, first, last))
    wrong = min(_wrong(state, first, last, question.condition, filled), default=None)
    return (Fate.MET, None, "") if wrong is None else (Fate.UNMET, *wrong)


def _open(state: ScheduleState, first: int, last: int) -> Iterator[int]:
    """Of each kind of what has no outcome the first one in the window."""
    start, end = (keys.RUN + identity.occurrence_run_id(state.name, from_seconds(at)).encode() for at in (first, last))
    for _, value in state.rows.scan(start, end + b"\0"):
        run = codec.load(RunCreated, codec.parse(value))
        assert run.nominal_time is not None, "it is named after it"
        yield seconds(run.nominal_time)
        break
    yield from (each.nominal for each in (state.waiting, state.backlog) if each and first <= each.nominal <= last)
    for prefix in (keys.WAITING, keys.PACED, keys.AWAITED):
        for row, _ in state.rows.scan(keys.number(prefix, first), keys.number(prefix, last + 1)):
            yield int.from_bytes(row[len(prefix) :], "big")
            break
    if state.filled_from is not None:
        again = (nominal for nominal, outcome in fills.between(state.rows, first, last) if outcome == fills.OPEN)
        yield from _first(again)
    for backfill in state.backfills:
        yield from _first(_ahead(state, backfill, first, last))


def _ahead(state: ScheduleState, backfill: Backfill, first: int, last: int) -> Iterator[int]:
    """What a backfill has still to give a run and was never due: what was skipped stands in the way as it is."""
    begins, ends = (
        (backfill.from_, backfill.cursor - 1) if backfill.newest else (backfill.cursor, backfill.to - 1)
    )  # fmt: skip
    plan = fates.plan_of(state, backfill.version)
    if plan is None or backfill.state == "cancelling" or max(begins, first) > min(ends, last):
        return
    for stretch in fates.stretches(state, plan, backfill.version, max(begins, first), min(ends, last)):
        nominal = plan.trigger.next_after(stretch.after) if stretch.fate == fates.NEVER else None
        if nominal is not None and nominal <= stretch.until:
            yield nominal


def _wrong(
    state: ScheduleState, first: int, last: int, condition: str, filled: dict[int, str]
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """The first occurrence that did not come right, by the ledger and by what backfills made of it since."""
    if condition == "succeeded":
        yield from _first((at, outcome) for at, outcome in sorted(filled.items()) if outcome != "succeeded")
    for segment in ledger.between(state, first, last):
        what = _fault(segment, condition)
        for nominal in _nominals(state, segment, first, last) if what else ():
            if nominal not in filled:
                yield nominal, what
                return


def _fault(segment: Segment, condition: str) -> str:
    if segment.decision == ledger.SKIPPED:
        return "" if segment.reason == SkipReason.EXCLUDED else f"was skipped: {segment.reason}"
    is_wrong = condition == "succeeded" and segment.outcome not in {"", "succeeded"}
    return segment.outcome if is_wrong else ""


def _nominals(state: ScheduleState, segment: Segment, first: int, last: int) -> Iterator[int]:
    """Its occurrences in the window. Of a version whose definition is gone only the ends of a stretch are known."""
    begins, ends = max(first, segment.from_), min(last, segment.to)
    plan = fates.plan_of(state, segment.version)
    if plan is None or plan.after_finish is not None:
        yield from dict.fromkeys(at for at in (segment.from_, segment.to) if begins <= at <= ends)
        return
    nominal = begins if begins == segment.from_ else plan.trigger.next_after(begins - 1)
    while nominal is not None and nominal <= ends:
        yield nominal
        nominal = plan.trigger.next_after(nominal)


def _first(found: Iterator[T]) -> Iterator[T]:
    return islice(found, 1)


# --- rows ---------------------------------------------------------------------------------------------------------


def _name(downstream: str, nominal: int) -> bytes:
    return keys.number(f"{downstream}/".encode(), nominal)


def _find(rows: Rows, name: bytes) -> Question | None:
    row = rows.get(keys.QUESTION + name)
    return None if row is None else codec.load(Question, codec.parse(row))


def _named(rows: Rows, prefix: bytes, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """The names of questions in an index."""
    end = keys.end_of(prefix) if last is None else keys.number(prefix, last + 1)
    for row, _ in rows.scan(keys.number(prefix, first), end):
        yield row[len(prefix) + 8 :]


def _index(question: Question) -> bytes:
    place = keys.number(keys.QUESTION_DUE, question.until)
    if question.stuck is not None:
        place = keys.number(keys.QUESTION_STUCK, question.stuck)
    return place + _name(question.downstream, question.nominal)


def _put(rows: Rows, question: Question) -> None:
    rows.put(keys.QUESTION + _name(question.downstream, question.nominal), codec.dump(question))
    rows.put(_index(question), b"")


def _delete(rows: Rows, question: Question) -> None:
    rows.delete(keys.QUESTION + _name(question.downstream, question.nominal))
    rows.delete(_index(question))


def _links(state: ScheduleState) -> Links:
    """The links with the first question that is to be judged."""
    name = next(_named(state.rows, keys.QUESTION_DUE), None)
    question = None if name is None else _find(state.rows, name)
    asked = None if question is None else Asked(until=question.until, at_ms=question.at_ms)
    return replace(state.links, asked=asked)


def _of(rows: Rows, downstream: str) -> list[Question]:
    start = f"{downstream}/".encode()
    found = rows.scan(keys.QUESTION + start, keys.end_of(keys.QUESTION + start))
    return [codec.load(Question, codec.parse(value)) for _, value in found]


# --- what facts make of it ----------------------------------------------------------------------------------------


def entered(state: ScheduleState, fact: WindowNoted) -> Links:
    """One more question, in the place of those of the same schedule that are over."""
    at_ms, nominal = millis(fact.appended_at), seconds(fact.nominal_time)
    for question in _of(state.rows, fact.downstream):
        if question.expires_ms < at_ms or question.nominal == nominal:
            _delete(state.rows, question)
    question = Question(
        downstream=fact.downstream, nominal=nominal, after=seconds(fact.after), until=seconds(fact.until),
        condition=fact.condition, once=fact.once, expires_ms=millis(fact.expires_at), at_ms=at_ms,
    )  # fmt: skip
    _put(state.rows, question)
    return _links(state)


def judged(state: ScheduleState, fact: WindowJudged) -> Links:
    """The question is over, or stuck at what stands in the way."""
    question = _find(state.rows, _name(fact.downstream, seconds(fact.nominal_time)))
    assert question is not None, "it was asked"
    _delete(state.rows, question)
    if fact.fate != Fate.MET and not (fact.fate == Fate.UNMET and question.once):
        _put(state.rows, replace(question, stuck=NOWHERE if fact.instant is None else seconds(fact.instant)))
    return _links(state)


def moved(state: ScheduleState, first: int, last: int, at_ms: int = 0) -> Links:
    """Occurrences in [first, last] have another fate: questions that were stuck there are judged again."""
    if not state.links.intervals:
        return state.links
    for name in list(_named(state.rows, keys.QUESTION_STUCK, first, last)):
        question = _find(state.rows, name)
        assert question is not None, "what is indexed stands in its row"
        _delete(state.rows, question)
        _put(state.rows, replace(question, stuck=None, at_ms=max(at_ms, question.at_ms)))
    return _links(state)


def unlisted(state: ScheduleState, fact: EdgeUnlisted) -> Links:
    """One that follows no longer asks nothing."""
    for question in _of(state.rows, fact.downstream):
        _delete(state.rows, question)
    return _links(state)
