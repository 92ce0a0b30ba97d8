"""Names that are functions of content are the same everywhere, also in other languages."""

from datetime import UTC, datetime

import pytest

from schemas import identity


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_hash_is_that_of_apache_kafkas_java_producer(key, expected):
    """The values stand in Kafka's own tests, as signed 32-bit integers."""
    assert identity.murmur2(key) == expected & 0xFFFFFFFF


def test_a_key_goes_to_the_partition_a_java_producer_would_choose():
    assert identity.partition_of("foobar", 12) == (-790332482 & 0x7FFFFFFF) % 12


def test_a_scheduled_run_is_named_for_its_schedule_and_nominal_time():
    run_id = identity.occurrence_run_id("nightly.report", datetime(2026, 3, 8, 7, 0, 5, tzinfo=UTC))
    assert run_id == "nightly.report.20260308T070005Z"
    assert identity.schedule_of(run_id) == "nightly.report"


def test_a_command_always_names_the_same_manual_run_and_another_command_another():
    first = identity.manual_run_id("acme", "nightly", "tidewheel/api", "c1")
    assert first == "nightly.m-61fda3f10c02f003"
    assert identity.manual_run_id("acme", "nightly", "tidewheel/api", "c1") == first
    assert identity.manual_run_id("acme", "nightly", "tidewheel/ap", "ic1") != first
    assert identity.schedule_of(first) == "nightly"


@pytest.mark.parametrize("text", ["a", "A-1_b.c", "0", "x" * 128])
def test_a_name_is_letters_digits_and_a_little_more(text):
    assert identity.is_name(text)


@pytest.mark.parametrize("text", ["", "_", ".a", "-a", "a b", "a/b", "é", "x" * 129, "a\n"])
def test_what_could_be_mistaken_for_something_else_is_no_name(text):
    assert not identity.is_name(text)


def test_the_shard_of_a_run_follows_from_its_tenant_and_what_holds_it():
    """As Java's murmur2 of tenant/key has it."""
    assert [identity.shard_of("acme", name, 4) for name in ("s", "t", "u", "v", "db-1")] == [2, 1, 1, 0, 2]
    assert identity.shard_of("other", "s", 4) == 1
    assert {identity.shard_of("acme", f"s{number}", 1) for number in range(100)} == {0}
