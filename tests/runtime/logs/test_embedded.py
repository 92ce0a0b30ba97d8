"""What only the embedded log does: one process, a folder, restarts, a memory of recent records."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from threading import Event, Thread

import pytest
from rocksdict import WriteBatch

from runtime.log import Fenced, LogError
from runtime.logs import partition, upkeep
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.reading import Bounds
from runtime.record import Outgoing, TopicPartition
from runtime.stores import database
from runtime.stores.database import Database
from tests.runtime.logs.words import (
    DEADLINE,
    E0,
    E1,
    EVENTS,
    O0,
    PLENTY,
    S0,
    S1,
    SPECS,
    HandClock,
    keep_house,
    read,
    records_of,
    text,
    texts,
    to,
    tombstone,
    write,
)

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def log(tmp_path, clock):
    log = opened(tmp_path, clock)
    yield log
    log.close()


def opened(path: Path, clock: HandClock, **options) -> EmbeddedLog:
    log = EmbeddedLog(path / "log", clock, **options)
    log.create(SPECS)
    return log


# ------------------------------------------------------------------------------------------------------- restarts


def test_everything_is_there_after_a_restart(log, tmp_path, clock):
    producer = log.open_producer("writer", group="group")
    offsets = write(producer, *to(E0, "a", "b"), *to(S1, "c", key="x"), positions={O0: 17})
    before = (log.cluster_id, log.topic_id("events"), log.topics(), records_of(log, E0), producer.epoch)
    log.close()
    again = opened(tmp_path, clock)
    after = (again.cluster_id, again.topic_id("events"), again.topics(), records_of(again, E0), producer.epoch)
    assert after == before
    assert read(again, E0, S1) == ["a", "b", "c"]
    assert again.end_offset(E0) == offsets[1] + 1
    assert again.committed("group", [O0]) == {O0: 17}
    assert again.open_producer("writer", group="group").epoch > producer.epoch
    again.close()


def test_offsets_and_append_times_go_on_after_a_restart(log, tmp_path, clock):
    last = log.append(to(E0, "a")).offsets[0]
    log.close()
    clock.advance(-HOUR)
    with closing(opened(tmp_path, clock)) as again:
        assert again.append(to(E0, "b")).offsets[0] > last
        first, second = records_of(again, E0)
        assert second.appended_at == first.appended_at == clock.instant + HOUR


def test_a_trimmed_partition_stays_trimmed_and_keeps_its_place_and_its_clock(log, tmp_path, clock):
    log.append(to(E0, "a", "b"))
    clock.advance(2 * HOUR)
    keep_house(log)
    log.close()
    clock.advance(-3 * HOUR)
    with closing(opened(tmp_path, clock)) as again:
        assert (again.begin_offset(E0), again.end_offset(E0)) == (2, 2)
        again.append(to(E0, "c"))
        assert records_of(again, E0, start=2)[0].appended_at == clock.instant + HOUR


def test_compaction_goes_on_after_a_restart_where_it_stopped(log, tmp_path, clock):
    log.append([*to(S0, "a1", key="a"), *to(S0, "b1", key="b"), *tombstone(S0, "c"), *to(S0, "d1", key="d")])
    clock.advance(HOUR)
    keep_house(log)
    log.close()
    with closing(opened(tmp_path, clock)) as again:
        again.append([*to(S0, "a2", key="a"), *to(S0, "e1", key="e")])
        clock.advance(25 * HOUR)
        keep_house(again)
        assert read(again, S0) == ["b1", "d1", "a2", "e1"]


def test_a_changed_retention_holds_from_the_next_start_on(log, tmp_path, clock):
    log.append(to(E0, "a"))
    log.close()
    with closing(EmbeddedLog(tmp_path / "log", clock)) as again:
        again.create({replace(EVENTS, retention=timedelta(days=9)): 3})
        clock.advance(2 * HOUR)
        keep_house(again)
        assert read(again, E0) == ["a"]


def test_a_durable_log_keeps_the_same_promises(tmp_path, clock):
    with closing(opened(tmp_path, clock, durability="disk")) as durable:
        write(durable.open_producer("writer", group="group"), *to(E0, "a"), *to(E1, "b"))
    with closing(opened(tmp_path, clock, durability="disk")) as again:
        assert read(again, E0, E1) == ["a", "b"]


# ------------------------------------------------------------------------------------------- one process, one folder


def test_a_second_writer_is_refused_with_the_name_of_the_folder(log, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(database, "LOCK_TRIES_MAX", 2)
    with pytest.raises(LogError, match=f"{tmp_path}/log is in use"):
        EmbeddedLog(tmp_path / "log", clock)
    log.append(to(E0, "undisturbed"))
    assert read(log, E0) == ["undisturbed"]


def test_a_stopped_log_can_be_looked_at_and_nothing_in_it_changes(log, tmp_path):
    write(log.open_producer("writer", group="group"), *to(E0, "a"), positions={O0: 3})
    cluster_id = log.cluster_id
    log.close()
    before = contents(tmp_path / "log")
    with closing(EmbeddedLog.open_read_only(tmp_path / "log")) as looked_at:
        assert looked_at.cluster_id == cluster_id
        assert read(looked_at, E0) == ["a"]
        assert looked_at.committed("group", [O0]) == {O0: 3}
        for attempt in (
            lambda: looked_at.append(to(E0, "b")),
            lambda: looked_at.open_producer("writer", group="group"),
            lambda: looked_at.create({EVENTS: 3}),
            looked_at.maintain,
        ):
            with pytest.raises(LogError, match="reading only"):
                attempt()
    assert contents(tmp_path / "log") == before


def test_looking_at_a_folder_that_does_not_exist_creates_none(tmp_path):
    with pytest.raises(LogError, match="nowhere"):
        EmbeddedLog.open_read_only(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_written_by_another_layout_is_refused_with_both_versions(log, tmp_path, clock, monkeypatch):
    log.close()
    monkeypatch.setattr("runtime.logs.layout.FORMAT", b"2")
    with pytest.raises(LogError, match="layout b'1'; this version reads b'2'"):
        EmbeddedLog(tmp_path / "log", clock)
    monkeypatch.undo()
    EmbeddedLog(tmp_path / "log", clock).close()


def test_a_closed_log_refuses_everything(log):
    producer = log.open_producer("writer", group="group")
    producer.begin()
    log.close()
    log.close()
    for attempt in (
        lambda: log.append(to(E0, "a")),
        lambda: producer.commit({}),
        lambda: log.open_producer("writer", group="group"),
        lambda: log.open_reader({E0: 0}).poll(records_max=1, bytes_max=1, timeout=0),
        log.maintain,
    ):
        with pytest.raises(LogError, match="closed"):
            attempt()


def test_closing_while_others_write_ends_them_with_an_error_and_loses_nothing_that_was_acknowledged(
    log, tmp_path, clock
):
    acknowledged: list[str] = []
    busy = Event()

    def append_for_ever(name: str) -> None:
        for number in range(1_000_000):
            try:
                log.append(to(E0, f"{name}{number}"))
            except LogError:
                return
            acknowledged.append(f"{name}{number}")
            if len(acknowledged) > 100:
                busy.set()

    threads = [Thread(target=append_for_ever, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    assert busy.wait(DEADLINE)
    log.close()
    for thread in threads:
        thread.join(DEADLINE)
    with closing(opened(tmp_path, clock)) as again:
        assert set(acknowledged) <= set(read(again, E0))


# ------------------------------------------------------------------------------------------------ many threads


def test_after_a_failed_write_nothing_is_written_until_the_log_is_opened_again(log, tmp_path, clock, monkeypatch):
    """Nobody knows what is on the disk; doing the same work again could do it twice."""
    producer = log.open_producer("writer", group="group")
    write(producer, *to(E0, "before"))
    with monkeypatch.context() as failing:
        failing.setattr(Database, "write", raise_no_space)
        with pytest.raises(OSError, match="no space"):
            write(producer, *to(E0, "lost"), positions={O0: 1})
    with pytest.raises(LogError, match="opened again"):
        write(producer, *to(E0, "after"))
    with pytest.raises(LogError, match="opened again"):
        log.append(to(E0, "after"))
    assert read(log, E0) == ["before"]
    assert log.committed("group", [O0]) == {}
    log.close()
    with closing(opened(tmp_path, clock)) as again:
        again.append(to(E0, "after"))
        assert read(again, E0) == ["before", "after"]


def test_records_that_cannot_be_written_down_fail_alone(log):
    producer = log.open_producer("writer", group="group")
    with pytest.raises(TypeError):
        write(producer, *to(E0, "dropped"), Outgoing("events", 0, b"k", b"v", (("name", "no bytes"),)))  # type: ignore[arg-type]
    write(producer, *to(E0, "kept"))
    assert read(log, E0) == ["kept"]


class Gate:
    """Stands before the database: the first write waits until it is let through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = Event()
        self.opened = Event()
        self.passed_by_others = Event()
        write_through = Database.write

        def gated(rocks: Database, batch: WriteBatch) -> None:
            if self.reached.is_set():
                write_through(rocks, batch)
                self.passed_by_others.set()
            else:
                self.reached.set()
                assert self.opened.wait(DEADLINE)
                write_through(rocks, batch)

        monkeypatch.setattr(Database, "write", gated)


def test_a_commit_is_not_seen_before_one_that_was_given_earlier_offsets(log, monkeypatch):
    gate = Gate(monkeypatch)
    slow = Thread(target=log.append, args=(to(E0, "first"),))
    slow.start()
    assert gate.reached.wait(DEADLINE)
    found: list[list[str]] = []

    def append_and_read() -> None:
        log.append(to(E0, "second"))
        found.append(read(log, E0))

    fast = Thread(target=append_and_read)
    fast.start()
    assert gate.passed_by_others.wait(DEADLINE)
    assert read(log, E0) == []
    gate.opened.set()
    slow.join(DEADLINE)
    fast.join(DEADLINE)
    assert found == [["first", "second"]]


def test_a_successor_waits_for_the_commit_that_its_predecessor_is_writing(log, monkeypatch):
    old = log.open_producer("writer", group="group")
    gate = Gate(monkeypatch)
    found: list[list[str]] = []
    opening = Event()

    def take_over() -> None:
        opening.set()
        log.open_producer("writer", group="group")
        found.append(read(log, E0))

    committing = Thread(target=write, args=(old, *to(E0, "in flight")))
    committing.start()
    assert gate.reached.wait(DEADLINE)
    successor = Thread(target=take_over)
    successor.start()
    assert opening.wait(DEADLINE)
    gate.opened.set()
    committing.join(DEADLINE)
    successor.join(DEADLINE)
    assert found == [["in flight"]]
    with pytest.raises(Fenced):
        old.begin()


def test_a_poll_sees_all_of_a_transaction_or_nothing(log):
    reader = log.open_reader({E0: 0, O0: 0})

    def transact() -> None:
        producer = log.open_producer("writer", group="group")
        for number in range(200):
            write(producer, *to(E0, str(number)), *to(O0, str(number)))

    thread = Thread(target=transact)
    thread.start()
    seen = 0
    while seen < 400:
        batch = reader.poll(records_max=PLENTY, bytes_max=PLENTY, timeout=DEADLINE)
        there = {name: [text(record) for record in batch if record.topic == name] for name in ("events", "others")}
        assert there["events"] == there["others"]
        seen += len(batch)
    thread.join()


def test_a_reader_gets_nothing_behind_the_end_that_it_has_asked_for(log, tmp_path, clock):
    """Ends are asked for together, between two transactions; later records belong to the next poll."""
    log.append(to(E0, "a", "b", "c"))
    bounds = Bounds(PLENTY, PLENTY, oversize=True)
    assert texts(log.fetch(E0, 0, 2, bounds).records) == ["a", "b"]
    log.close()
    with closing(opened(tmp_path, clock)) as again:
        assert texts(again.fetch(E0, 0, 2, bounds).records) == ["a", "b"]


def test_a_poll_that_waits_looks_again_only_when_something_has_happened(log, monkeypatch):
    looked: list[object] = []
    ends = EmbeddedLog.ends

    def counted(log: EmbeddedLog, partitions: Sequence[TopicPartition]) -> list[int]:
        looked.append(partitions)
        return ends(log, partitions)

    monkeypatch.setattr(EmbeddedLog, "ends", counted)
    reader = log.open_reader({E0: 0})
    log.append(to(E0, "a"))
    assert texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=0)) == ["a"]
    looked.clear()
    assert reader.poll(records_max=10, bytes_max=PLENTY, timeout=0.05) == []
    assert len(looked) <= 2


# ------------------------------------------------------------------------------------------- memory and bounded steps


@pytest.mark.parametrize("bound", [{"RECENT_RECORDS_MAX": 10}, {"RECENT_BYTES_MAX": 200}])
def test_what_memory_has_forgotten_is_read_from_the_disk_and_nothing_is_missing(log, monkeypatch, bound):
    for name, value in bound.items():
        monkeypatch.setattr(partition, name, value)
    reader = log.open_reader({E0: 0, E1: 0})
    for number in range(100):
        log.append([*to(E0, str(number)), *to(E1, str(number))])
        remembered = sum(len(log._topics.partition(name).recent.records) for name in (E0, E1))
        assert remembered <= 12
    batch = reader.poll(records_max=150, bytes_max=PLENTY, timeout=0)
    batch += reader.poll(records_max=150, bytes_max=PLENTY, timeout=0)
    for place in (E0, E1):
        values = [text(record) for record in batch if record.partition == place.partition]
        assert values == [str(number) for number in range(100)]


def test_records_that_nobody_reads_are_not_kept_in_memory_and_are_all_there_for_who_comes_later(log):
    """`a` and `c` are written while nobody reads; whoever reads across all of them misses none."""
    log.append(to(E0, "a"))
    assert log._topics.partition(E0).recent.records == []
    first = log.open_reader({E0: 0})
    log.append(to(E0, "b"))
    assert [text(record) for record in log._topics.partition(E0).recent.records] == ["b"]
    assert texts(first.poll(records_max=9, bytes_max=PLENTY, timeout=0)) == ["a", "b"]
    first.close()
    log.append(to(E0, "c"))
    assert log._topics.partition(E0).recent.records == []
    with closing(log.open_reader({E0: 1})) as later:
        log.append(to(E0, "d"))
        assert texts(later.poll(records_max=9, bytes_max=PLENTY, timeout=0)) == ["b", "c", "d"]


def test_a_record_is_the_same_from_memory_and_from_the_disk(log, tmp_path, clock):
    headers = ((), (("empty", b""), ("ü", b"\x00\xff")))
    shapes = product((None, b"", b"k"), (None, b"", b"v"), headers)
    with closing(log.open_reader({E0: 0})):
        log.append([Outgoing("events", 0, *shape) for shape in shapes])
        from_memory = records_of(log, E0)
    log.close()
    with closing(opened(tmp_path, clock)) as again:
        assert records_of(again, E0) == from_memory


def test_a_step_of_compaction_is_bounded_and_says_when_more_is_waiting(log, clock, monkeypatch):
    monkeypatch.setattr(upkeep, "RECORDS_A_STEP", 10)
    log.append(to(S0, *map(str, range(25)), key="a"))
    clock.advance(HOUR)
    left = []
    while log.maintain():
        left.append(len(read(log, S0)))
    # Ten are looked at in a step: nine of the first ten go, then ten more, then the rest.
    assert left[:2] == [16, 6]
    assert read(log, S0) == ["24"]


def test_a_large_topic_does_not_keep_the_upkeep_from_the_others(log, clock, monkeypatch):
    monkeypatch.setattr(upkeep, "RECORDS_A_STEP", 10)
    log.append([*to(S0, *map(str, range(1000)), key="a"), *to(S1, "b1", "b2", key="b")])
    clock.advance(HOUR)
    log.maintain()
    log.maintain()
    assert read(log, S1) == ["b2"]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that holds data; RocksDB's diary is none."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("LOG")}


def raise_no_space(*_: object) -> None:
    raise OSError("no space")
