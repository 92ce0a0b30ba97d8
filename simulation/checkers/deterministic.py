"""I10: the fold of a changelog is one state, and decisions are a function of the log.

- Folded whole, or as compaction leaves it and restores read it (each key's last value up to the last footer), a
  changelog is the same rows: no row of a torn transaction may outlive what made it whole.
- A decision that was rolled forward is the torn one, word for word.
- Every decision about time names the tz version that its partition had adopted by then, and no partition goes back to
  an older one.
- An event id is a function of content: the first 128 bits of SHA-256 over type, subject and data as written. An
  outcome that is repeated goes by its first id, and a forwarded command by its sender's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import (
    SCHEDULER,
    Changelog,
    Event,
    Fact,
    Written,
    changelogs,
    events,
    sequence_of,
    topics_of_events,
)
from simulation.checkers.state_is_fold import SHOWN_MAX, Rows, folded
from simulation.evidence import Evidence, Violation

ID = "I10"
DATA = b',"data":'  # the last field of an owner's events; a quote inside of a text before it would be escaped
TZ_NAMED = frozenset({"run.created", "occurrence.skipped", "schedule.accepted"})


def observed(evidence: Evidence) -> int:
    """How many transactions were folded, and events identified."""
    return sum(len(log.written) for log in changelogs(evidence)) + len(_owners_events(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every state that hangs on how it was read, and every decision on how time was cut."""
    for log in changelogs(evidence):
        yield from _folds_alike(log)
        yield from _decided_again(log)
    for log in changelogs(evidence, SCHEDULER):
        yield from _tz_versions([*log.facts()])
    for event in _owners_events(evidence):
        yield from _identified(event)


def _folds_alike(log: Changelog) -> Iterator[Violation]:
    if not log.whole or log.whole[-1].footer_at is None:
        return
    end = log.whole[-1].footer_at
    whole, _ = folded(log, end.offset + 1)
    compacted = _last_values(log, end.offset)
    differing = sorted(key for key in whole.keys() | compacted.keys() if whole.get(key) != compacted.get(key))
    if differing:
        shown = ", ".join(repr(key) for key in differing[:SHOWN_MAX])
        what = f"{len(differing)} rows of torn transactions outlive them: {shown}"
        yield Violation(invariant=ID, what=what, where=end)


def _last_values(log: Changelog, until: int) -> Rows:
    rows: dict[bytes, bytes | None] = {}
    for written in log.written:
        if written.at.offset <= until:
            rows.update(written.rows)
    return {key: value for key, value in rows.items() if value is not None}


def _decided_again(log: Changelog) -> Iterator[Violation]:
    torn: dict[int, Written] = {}
    for written in log.written:
        if written.head is None:
            continue
        sequence = written.head["sequence"]
        before = torn.get(sequence)
        if before is not None and _words(before) != _words(written):
            what = f"transaction {sequence} is decided again, and otherwise than at {before.at}"
            yield Violation(invariant=ID, what=what, where=written.at)
        if written.footer is None and written.whole:
            torn[sequence] = written


def _words(written: Written) -> list[tuple[str, str, object]]:
    return [(fact.type, fact.id, fact.data) for fact in written.facts()]


def _tz_versions(facts: list[Fact]) -> Iterator[Violation]:
    adopted: str | None = None
    for fact in facts:
        if fact.type == "tz.adopted":
            if adopted is not None and fact.data["version"] < adopted:
                what = f"adopts tz {fact.data['version']} after {adopted}"
                yield Violation(invariant=ID, what=what, where=fact.place)
            adopted = fact.data["version"]
        elif fact.type in TZ_NAMED and fact.data["tz_version"] != adopted:
            what = (
                f"{fact.type} of {fact.data['schedule']} names tz {fact.data['tz_version']}, and {adopted} is adopted"
            )
            yield Violation(invariant=ID, what=what, where=fact.place)


def _owners_events(evidence: Evidence) -> list[Event]:
    everything = (
        event
        for topic in topics_of_events(evidence)
        if topic != topics.SCHEDULE_CHANGES
        for event in events(evidence, topic)
    )
    return evidence.once(
        "events of owners",
        lambda: [e for e in everything if sequence_of(e.record) is not None and not e.data.get("repeat")],
    )


def _identified(event: Event) -> Iterator[Violation]:
    raw = event.record.value or b""
    data = raw[raw.find(DATA) + len(DATA) : -1]
    content = b"\0".join((f"tidewheel.{event.type}.v1".encode(), event.subject.encode(), data))
    if hashlib.sha256(content).hexdigest()[:32] != event.id:
        what = f"the id of {event.type} of {event.subject} is none of its content"
        yield Violation(invariant=ID, what=what, where=event.place)
