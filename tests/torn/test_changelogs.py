"""What a changelog must look like, and what gives damage away: histories of one partition, written by hand."""

from datetime import UTC, datetime

import pytest

from runtime.footer import DECISION_KEY, FOOTER_KEY, DecisionHead, Footer, decision_parts, footer_bytes
from runtime.record import Record
from tests.torn.changelogs import Changelog

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 13, tzinfo=UTC)


def decision(sequence: int, *facts: bytes) -> Record:
    head = DecisionHead(
        role="scheduler", partition=0, epoch=1, sequence=sequence, part=0, last=False, now=NOON, read_until=NOON,
        decided_until=NOON, entropy="", positions=(),
    )  # fmt: skip
    return record(DECISION_KEY + b"0000", decision_parts(head, facts)[0])


def footer(sequence: int, *, facts: int = 1, outputs: int = 0, mark: datetime = NOON, decisions: int = 1) -> Record:
    written = Footer(
        role="scheduler", partition=0, epoch=1, sequence=sequence, clock_mark=mark, decided_until=mark, positions=(),
        facts=facts, outputs=outputs, rows=0, decision_parts=decisions,
    )  # fmt: skip
    return record(FOOTER_KEY, footer_bytes(written))


def record(key: bytes, value: bytes) -> Record:
    return Record("changelog", 0, 7, key, value, (), NOON)


def faults(*records: Record, outputs: int = 0) -> list[str]:
    changelog = Changelog()
    changelog.take(records)
    changelog.settle(changelog.owing(), {"scheduler-0-1": outputs})
    return changelog.faults


WHOLE = (decision(1, b"1"), footer(1))


@pytest.mark.parametrize(
    "history",
    [
        (*WHOLE, decision(2, b"2"), footer(2)),
        (*WHOLE, footer(2, decisions=0, facts=0)),
        (*WHOLE, decision(2, b"2")),
        (*WHOLE, decision(2, b"2"), decision(2, b"2"), footer(2)),
    ],
    ids=["one after another", "a heartbeat", "a torn one", "a torn one rolled forward"],
)
def test_nothing_is_wrong_with(history):
    assert faults(*history) == []


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ((*WHOLE, decision(2, b"2"), decision(2, b"3"), footer(2)), "@7: 2 was decided twice"),
        ((*WHOLE, decision(3, b"3"), footer(3)), "@7: decision 3, expected 2"),
        ((*WHOLE, *WHOLE), "@7: decision 1, expected 2"),
        ((*WHOLE, footer(2)), "@7: footer 2 without its decision"),
        ((*WHOLE, decision(2, b"2", b"3"), footer(2)), "@7: footer 2 counts 1 facts"),
        ((decision(1, b"1"), footer(1, mark=LATER), decision(2, b"2"), footer(2)), "@7: the marks of footer 2 go back"),
    ],
)
def test_damage_is_told(history, fault):
    assert fault in faults(*history)


def test_outputs_that_a_footer_counts_are_missed_when_fewer_are_there():
    torn = (decision(1, b"1"), footer(1, outputs=2))
    assert faults(*torn, outputs=1) == [": footer 1 counts 2 outputs, 1 are there"]
    assert faults(*torn, outputs=4) == []
