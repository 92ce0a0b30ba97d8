"""kill -9 of a process that is committing to an embedded log."""

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from runtime.logs.embedded import EmbeddedLog
from runtime.record import Record, TopicPartition
from tests.runtime.logs.kill.committer import APPENDER, SPAN, WRITERS
from tests.runtime.logs.kill.committer import records_of as sent
from tests.runtime.logs.words import E2, O1, HandClock, read, records_of

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("acknowledgements", [1, 40, 300])
def test_a_transaction_is_whole_or_absent_and_what_was_acknowledged_is_there(tmp_path, acknowledgements):
    """Three times in a row, in the same folder: each start goes on where the last one was killed."""
    for _ in range(3):
        acknowledged = kill_after(tmp_path, acknowledgements)
        log = EmbeddedLog(tmp_path, HandClock())
        found = {place: records_of(log, place) for place in SPAN}
        for writer in WRITERS:
            committed = log.committed(writer, [E2]).get(E2, 0)
            assert committed >= acknowledged[writer]
            expected = [record.value for number in range(1, committed + 1) for record in sent(writer, number)[:1]]
            assert {place: values(records, writer) for place, records in found.items()} == dict.fromkeys(SPAN, expected)
        appended = read(log, O1)
        assert appended == [f"{APPENDER} {number}" for number in range(len(appended))]
        assert len(appended) > acknowledged[APPENDER]
        for records in found.values():
            assert all(a.offset < b.offset for a, b in pairwise(records))
            assert all(a.appended_at <= b.appended_at for a, b in pairwise(records))
        log.close()


def test_a_killed_predecessor_does_not_keep_the_folder(tmp_path):
    kill_after(tmp_path, 5)
    log = EmbeddedLog(tmp_path, HandClock())
    assert log.end_offset(TopicPartition("events", 0)) > 0
    log.close()


def test_a_killed_log_can_be_looked_at_before_anyone_opens_it_again(tmp_path):
    acknowledged = kill_after(tmp_path, 20)
    log = EmbeddedLog.open_read_only(tmp_path)
    for writer in WRITERS:
        assert len(values(records_of(log, SPAN[0]), writer)) >= acknowledged[writer]
    log.close()


def values(records: list[Record], writer: str) -> list[bytes | None]:
    return [record.value for record in records if record.key == writer.encode()]


def kill_after(folder: Path, acknowledgements: int) -> dict[str, int]:
    """The last transaction of each writer that was acknowledged before the kill."""
    command = [sys.executable, "-m", "tests.runtime.logs.kill.committer", str(folder)]
    last = {**dict.fromkeys(WRITERS, 0), APPENDER: -1}
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(acknowledgements):
            note(process.stdout.readline(), last)
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:  # What it had said before it died.
            if line.endswith(b"\n"):
                note(line, last)
    assert process.returncode == -signal.SIGKILL
    return last


def note(line: bytes, last: dict[str, int]) -> None:
    writer, number = line.decode().split()
    last[writer] = int(number)
