"""What a store promises, of each adapter."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.store import StoreError

keys = st.binary(max_size=3)


def test_a_store_is_empty_at_first(store):
    assert store.get(b"a") is None
    assert list(store.scan(b"", None)) == []


def test_what_was_applied_is_read(store):
    store.apply({b"a": b"1", b"b": b"2"})
    store.apply({b"b": b"3"})
    assert (store.get(b"a"), store.get(b"b"), store.get(b"c")) == (b"1", b"3", None)


def test_none_deletes_and_absent_keys_may_be_deleted(store):
    store.apply({b"a": b"1", b"b": b"2"})
    store.apply({b"a": None, b"never": None})
    assert list(store.scan(b"", None)) == [(b"b", b"2")]


def test_empty_and_odd_bytes_are_values_and_keys_like_others(store):
    store.apply({b"": b"", b"\x00": b"\x00", b"\xff\xff": b"\xff" * 100_000})
    assert list(store.scan(b"", None)) == [(b"", b""), (b"\x00", b"\x00"), (b"\xff\xff", b"\xff" * 100_000)]
    assert store.get(b"") == b""


def test_a_scan_walks_from_its_start_to_before_its_end_in_byte_order(store):
    store.apply({b"b": b"2", b"a\xff": b"1", b"a": b"0", b"c": b"4", b"b\x00": b"3"})
    assert [key for key, _ in store.scan(b"a", b"c")] == [b"a", b"a\xff", b"b", b"b\x00"]
    assert [key for key, _ in store.scan(b"aa", b"b")] == [b"a\xff"]
    assert [key for key, _ in store.scan(b"b", None)] == [b"b", b"b\x00", b"c"]


def test_a_reverse_scan_walks_the_same_entries_the_other_way(store):
    store.apply({b"b": b"2", b"a\xff": b"1", b"a": b"0", b"c": b"4", b"b\x00": b"3"})
    assert [key for key, _ in store.scan(b"a", b"c", reverse=True)] == [b"b\x00", b"b", b"a\xff", b"a"]
    assert list(store.scan(b"b", None, reverse=True)) == [(b"c", b"4"), (b"b\x00", b"3"), (b"b", b"2")]


@pytest.mark.parametrize("reverse", [False, True])
def test_an_empty_range_has_no_entries(store, reverse):
    store.apply({b"a": b"1", b"c": b"3"})
    assert list(store.scan(b"b", b"c", reverse=reverse)) == []
    assert list(store.scan(b"a", b"a", reverse=reverse)) == []
    assert list(store.scan(b"c", b"a", reverse=reverse)) == []
    assert list(store.scan(b"d", None, reverse=reverse)) == []


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_sees_the_store_as_it_was_when_it_began(store, reverse):
    store.apply({bytes([number]): b"old" for number in range(100)})
    scan = store.scan(b"", None, reverse=reverse)
    first = next(scan)
    store.apply({bytes([number]): b"new" for number in range(0, 200, 2)})
    store.apply({bytes([number]): None for number in range(1, 100, 2)})
    store.clear()
    expected = [(bytes([number]), b"old") for number in range(100)]
    assert [first, *scan] == (expected[::-1] if reverse else expected)


def test_a_scan_may_be_left_before_its_end(store):
    store.apply({bytes([number]): b"x" for number in range(100)})
    assert next(store.scan(b"\x05", None)) == (b"\x05", b"x")
    store.apply({b"\x05": b"y"})
    assert next(store.scan(b"\x05", None)) == (b"\x05", b"y")


def test_many_scans_of_many_ranges_do_not_disturb_each_other(store):
    store.apply({b"%03d" % number: b"x" for number in range(300)})
    scans = [store.scan(b"%03d" % start, b"%03d" % (start + 10)) for start in range(0, 290, 7)]
    found = [[int(key) for key, _ in scan] for scan in scans]
    assert found == [list(range(start, start + 10)) for start in range(0, 290, 7)]


def test_clear_forgets_everything_and_the_store_can_be_used_again(store):
    store.apply({b"a": b"1", b"": b"0", b"\xff" * 500: b"2"})
    store.clear()
    assert list(store.scan(b"", None)) == []
    store.apply({b"a": b"3"})
    assert list(store.scan(b"", None)) == [(b"a", b"3")]


def test_a_store_that_is_set_aside_is_empty_and_can_be_used_again(store):
    store.apply({b"a": b"1"})
    assert store.set_aside()
    assert list(store.scan(b"", None)) == []
    store.apply({b"a": b"2"})
    assert store.get(b"a") == b"2"


def test_closing_twice_is_fine_and_using_a_closed_store_is_not(store):
    store.close()
    store.close()
    attempts: list[Callable[[], object]] = [
        lambda: store.get(b"a"),
        lambda: store.apply({b"a": b"1"}),
        lambda: store.scan(b"", None),
        store.clear,
    ]
    for attempt in attempts:
        with pytest.raises(StoreError):
            attempt()


def test_a_scan_of_a_store_that_was_closed_does_not_end_as_if_it_were_complete(store):
    store.apply({bytes([number]): b"x" for number in range(100)})
    scan = store.scan(b"", None)
    next(scan)
    store.close()
    with pytest.raises(StoreError):
        list(scan)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.dictionaries(keys, st.none() | st.binary(max_size=5), max_size=6), max_size=6),
    start=keys,
    end=st.none() | keys,
    reverse=st.booleans(),
)
def test_a_store_is_a_sorted_dictionary(store, batches, start, end, reverse):
    store.clear()
    model: dict[bytes, bytes] = {}
    for batch in batches:
        store.apply(batch)
        model.update({key: value for key, value in batch.items() if value is not None})
        for key, value in batch.items():
            if value is None:
                model.pop(key, None)
    expected = sorted(item for item in model.items() if start <= item[0] and (end is None or item[0] < end))
    assert list(store.scan(start, end, reverse=reverse)) == (expected[::-1] if reverse else expected)
    assert {key: store.get(key) for key in model} == model
