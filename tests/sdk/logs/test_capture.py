"""The lines of one attempt: in order, cut, bounded, and what is left out is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import identity
from tidewheel import jsontext
from tidewheel.logs.capture import Capture, Chunk
from tidewheel.logs.redaction import Redaction
from tidewheel.wire import HandOut

AT = datetime(2026, 3, 8, 2, 0, 0, 250_000, tzinfo=UTC)
LEASE = "default.0.7.0123456789abcdef0123456789abcdef"


def handout(lease: str = LEASE, **job: Any) -> HandOut:
    run: Any = {"run_id": "nightly.20260308T020000Z", "tenant": "acme", "job": job}
    return HandOut(
        incarnation="i", offset=7, lease=lease, lease_seconds=30, start_by_seconds=10, timeout_seconds=60, attempt=2,
        may_have_run=False, run=run,
    )  # fmt: skip


def capture(**fields: Any) -> Capture:
    return Capture(handout(), Redaction(), **fields)


def sent(capture: Capture) -> list[dict[str, Any]]:
    """Everything that waits, taken as a sender does."""
    lines: list[dict[str, Any]] = []
    while chunk := capture.chunk():
        lines += map(jsontext.loads, chunk.lines)
        capture.arrived(chunk)
    return lines


def texts(capture: Capture) -> list[str]:
    return [line["text"] for line in sent(capture)]


def test_a_line_has_its_number_instant_stream_and_level():
    own = capture()
    own.write("log", "hello", level="INFO", at=AT)
    own.write("stderr", "there", at=AT)
    assert sent(own) == [
        {"line": 0, "at": "2026-03-08T02:00:00.250Z", "stream": "log", "level": "INFO", "text": "hello"},
        {"line": 1, "at": "2026-03-08T02:00:00.250Z", "stream": "stderr", "text": "there"},
    ]


def test_a_message_of_several_lines_becomes_several():
    own = capture()
    own.write("log", "Traceback\n  File\r\nValueError")
    assert texts(own) == ["Traceback", "  File", "ValueError"]


def test_what_is_printed_in_parts_is_a_line_once_it_ends():
    own = capture()
    own.print("stdout", "one ")
    own.print("stderr", "other")
    assert texts(own) == []
    own.print("stdout", "line\nnext\nrest")
    assert texts(own) == ["one line", "next"]
    own.close()
    assert texts(own) == ["rest", "other"]


def test_characters_that_are_cut_between_two_reads_are_whole():
    own = capture()
    for byte in "grün 日\n".encode():
        own.output("stdout", bytes([byte]))
    own.output("stdout", b"\xff\n")
    assert texts(own) == ["grün 日", "\N{REPLACEMENT CHARACTER}"]


def test_nothing_is_taken_after_the_end():
    own = capture()
    own.close()
    own.write("log", "late")
    own.close()
    assert texts(own) == []


def test_the_lease_and_what_looks_secret_do_not_leave():
    own = capture()
    own.write("stdout", f"lease {LEASE}, password=hunter2")
    assert texts(own) == ["lease default.0.7.***, password=***"]


def test_a_secret_in_the_last_lines_does_not_leave_either():
    own = capture()
    own.write("stdout", "\n".join("x" for _ in range(20_000)))
    own.write("stdout", f"{LEASE} -----BEGIN PRIVATE KEY-----")
    own.write("stdout", "MIIE")
    own.close()
    assert texts(own)[-2:] == ["default.0.7.*** -----BEGIN PRIVATE KEY-----***", "***"]


def test_nor_does_one_beyond_the_bounds_whose_beginning_was_left_out():
    own = capture()
    for _ in range(11):
        own.write("stdout", "\n".join("x" for _ in range(1_000)))
        sent(own)
    own.write("stdout", f"{LEASE} -----BEGIN PRIVATE KEY-----\n" + "\n".join("MIIE" for _ in range(600)))
    own.write("stdout", "-----END PRIVATE KEY-----\nbye")
    own.close()
    found = texts(own)
    assert found[-2:] == ["-----END PRIVATE KEY-----", "bye"]
    assert "MIIE" not in found


def test_a_long_line_is_cut_and_says_by_how_much():
    own = capture()
    own.write("stdout", "x" * 5_000)
    (line,) = sent(own)
    assert (len(line["text"]), line["cut"]) == (4_096, 904)


def test_a_line_without_an_end_is_taken_in_parts():
    own = capture()
    for _ in range(30):
        own.print("stdout", "x" * 10_000)
    own.close()
    lines = sent(own)
    assert len(lines) == 5
    hidden = 4 * (1_024 - len("***"))  # where each goes on
    assert sum(len(line["text"]) + line.get("cut", 0) for line in lines) == 300_000 - hidden


@pytest.mark.parametrize("start", range(69_985, 70_002))
def test_a_secret_is_not_shown_where_a_line_is_taken_in_parts(start):
    """What is printed in parts of 10,000 is taken at 70,000: before the secret, in it, or behind it."""
    own = Capture(handout(), Redaction(["1234-5678-9012"]))
    text = "x" * start + "1234-5678-9012 and more"
    for begin in range(0, len(text), 10_000):
        own.print("stdout", text[begin : begin + 10_000])
    own.close()
    found = texts(own)
    assert len(found) == 2
    assert not [each for each in found if re.search("[0-9]", each)]


def test_a_private_key_that_is_printed_line_by_line_does_not_leave():
    own = capture()
    for line in ("-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----", "done"):
        own.print("stdout", f"{line}\n")
        own.print("stderr", "meanwhile\n")
    assert [line["text"] for line in sent(own) if line["stream"] == "stdout"] == [
        "-----BEGIN PRIVATE KEY-----***", "***", "-----END PRIVATE KEY-----", "done",
    ]  # fmt: skip


def test_a_character_that_is_cut_by_the_end_is_told():
    own = capture()
    own.output("stdout", "日".encode()[:2])
    own.close()
    assert texts(own) == ["\N{REPLACEMENT CHARACTER}"]


def test_of_a_message_that_is_far_too_long_whole_lines_are_taken_and_the_others_counted():
    own = capture()
    own.write("log", "\n".join("x" * 999 for _ in range(200)))
    own.close()
    lines = sent(own)
    assert sum(line["stream"] == "log" for line in lines) + sum(line.get("dropped", 0) for line in lines) == 200
    assert {len(line["text"]) for line in lines if line["stream"] == "log"} == {999}


def test_text_that_has_no_form_in_utf_8_is_sendable():
    own = capture()
    own.write("stdout", "half \ud800")
    assert texts(own) == ["half ?"]


# --- bounds ---


def test_of_more_lines_than_are_kept_the_first_and_the_last_are_told():
    own, lines = capture(), []
    for number in range(12_000):
        own.write("stdout", str(number))
        lines += sent(own)
    own.close()
    lines += sent(own)
    assert [line["line"] for line in lines] == list(range(10_501))
    assert [line["text"] for line in lines[9_998:10_003]] == [
        "9998", "9999", "1500 lines were left out here: an attempt's log has 10,000 lines or 1 MiB", "11500", "11501",
    ]  # fmt: skip
    assert (lines[10_000]["stream"], lines[10_000]["dropped"], lines[-1]["text"]) == ("worker", 1_500, "11999")


def test_of_more_text_than_is_kept_the_last_is_told_too():
    own, lines = capture(), []
    for number in range(400):
        own.write("stdout", f"{number:04}" + "x" * 4_000)
        lines += sent(own)
    own.close()
    lines += sent(own)
    kept = [line["text"][:4] for line in lines if line["stream"] == "stdout"]
    assert (kept[:2], kept[-1]) == (["0000", "0001"], "0399")
    assert sum(len(line["text"]) for line in lines) < 1024 * 1024 + 64 * 1024 + 200


def test_what_finds_no_room_while_nobody_takes_it_is_told_later_as_far_as_it_was_kept():
    own = capture(slots=1_000)  # 16 KiB for each
    for number in range(1_000):
        own.write("stdout", f"{number:04}" + "x" * 60)
    lines = sent(own)
    told = [int(line["text"][:4]) for line in lines]
    gap = next(number for number, line in enumerate(lines) if "dropped" in line)
    assert told == [*range(gap), *range(500, 1_000)]
    assert lines[gap]["dropped"] == 500 - gap


def test_what_was_left_out_before_the_end_is_told_by_the_worker():
    own = capture(slots=1_000)
    for _ in range(1_000):
        own.write("stdout", "x" * 60)
    own.close()
    said = [line["text"] for line in sent(own) if line["stream"] == "worker"]
    assert len(said) == 1
    assert said[0].endswith(" lines were left out here: they could not be sent in time")


@given(st.lists(st.text(alphabet="ab\n\r", max_size=30), max_size=40), st.booleans())
def test_every_line_is_told_or_counted(parts, taking):
    own, lines = capture(slots=1_000), []
    for part in parts:
        own.print("stdout", part)
        if taking:
            lines += sent(own)
    own.close()
    lines += sent(own)
    joined = "".join(parts)
    ends = joined.count("\n") + (not joined.endswith("\n") and bool(joined))
    told = [line for line in lines if line["stream"] != "worker"]
    assert len(told) + sum(line.get("dropped", 0) for line in lines) == ends
    assert [line["line"] for line in lines] == list(range(len(lines)))


# --- chunks ---


def test_a_chunk_stays_what_it_is_until_it_has_arrived():
    own = capture()
    own.write("stdout", "one")
    first = own.chunk()
    own.write("stdout", "two")
    assert own.chunk() is first
    assert first is not None
    own.arrived(first)
    second = own.chunk()
    assert second is not None
    assert (first.first, second.first, len(second.lines)) == (0, 1, 1)


def test_chunks_are_no_larger_than_a_record_may_be():
    own = capture()
    own.write("stdout", "\n".join("x" * 1_000 for _ in range(200)))
    chunk = own.chunk()
    assert chunk is not None
    assert 60_000 < chunk.size <= 64 * 1024


def test_a_chunk_says_whose_lines_it_has_as_the_server_does():
    own = Capture(handout(log_retention="P3D"), Redaction())
    own.write("stdout", "one")
    chunk = own.chunk()
    assert chunk == Chunk(
        lease=LEASE, run_id="nightly.20260308T020000Z", retention="P3D", first=0, lines=chunk.lines if chunk else ()
    )
    assert chunk.proof == identity.log_proof(LEASE)


@pytest.mark.parametrize("text", ["", "\n"])
def test_empty_lines_are_lines(text):
    own = capture()
    own.write("stdout", text)
    assert texts(own) == text.split("\n")
