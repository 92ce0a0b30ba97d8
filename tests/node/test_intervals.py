"""Schedules that wait for others, through the whole line on an embedded log, with owners of different partitions."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from runtime.logs.embedded import EmbeddedLog
from runtime.record import Outgoing
from schemas import identity, topics
from tests.node.line import JOB, PARTITIONS, SOON, judged, opened, put, running, told
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALL = {"overlap": {"policy": "allow_all"}, "job": JOB}  # nobody works: each run expires after a second


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def send(log: EmbeddedLog, type_: str, name: str, **data: Any) -> None:
    body = {"tenant": "acme", "name": name, **data}
    event = {"specversion": "1.0", "id": f"{type_} {name}", "source": "test", "type": f"tidewheel.{type_}.v1"}
    partition = identity.partition_of(f"acme/{name}", PARTITIONS)
    log.append([Outgoing(topics.SCHEDULE_CHANGES, partition, None, orjson.dumps({**event, "data": body}))])


@contextmanager
def line(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with a scheduler and a dispatcher; when they have stopped, the audit finds nothing."""
    with opened(tmp_path) as log:
        with running(log, tmp_path):
            yield log
        assert judged(log).offenders == {}


def test_an_occurrence_has_its_run_when_all_of_another_partition_in_its_window_is_over(tmp_path: Path) -> None:
    assert identity.partition_of("acme/load", PARTITIONS) != identity.partition_of("acme/report", PARTITIONS)
    with line(tmp_path) as log:
        put(log, "load", {"trigger": {"cron": "* * * * * *"}, **ALL})
        after = [{"schedule": "load", "mode": "interval", "condition": "finished", "span": "PT2S"}]
        put(log, "report", {"trigger": {"cron": "*/2 * * * * *"}, "after": after, **ALL})
        eventually(lambda: len(told(log, "run.created", "report")) >= 3, within=SOON, what="three runs that waited")
        ended = {run["run_id"]: instant(run["finished_at"]) for run in told(log, "run.finished", "load")}
        for run in told(log, "run.created", "report")[:3]:
            nominal = instant(run["nominal_time"])
            for back in (0, 1):
                name = identity.occurrence_run_id("load", nominal - timedelta(seconds=back))
                assert name not in ended or ended[name] <= instant(run["created_at"])
        waited = told(log, "occurrence.deferred", "report")
        assert {each["reason"] for each in waited} == {"waiting"}
        assert waited[0]["detail"].startswith("waits for load in (")


def test_b_o23_b_starts_after_the_seventh_run_of_a_serial_backfill_of_the_week_before(tmp_path: Path) -> None:
    """With days in place of `0 0 * * *` and `0 1 * * *`: A at midnight, B seven midnights and a second later."""
    now = datetime.now(UTC).replace(microsecond=0)
    midnight = now.replace(hour=0, minute=0, second=0)
    due = now + timedelta(seconds=4)
    last = due - timedelta(days=1)
    midnights = [midnight - timedelta(days=back) for back in range(9)]
    wanted = [day for day in midnights if last - timedelta(days=7) < day <= last]
    assert len(wanted) == 7
    with line(tmp_path) as log:
        put(log, "a", {"trigger": {"cron": "0 0 * * *"}, **ALL})
        after = [
            {"schedule": "a", "mode": "interval", "condition": "finished", "span": "P7D", "offset": "-P1D"}
        ]  # fmt: skip
        put(log, "b", {"trigger": {"at": [f"{due:%Y-%m-%dT%H:%M:%SZ}"]}, "after": after, **ALL})
        eventually(lambda: bool(told(log, "edge.linked", "b")), within=SOON, what="the edge")
        send(
            log, "backfill.start", "a", max_active=1,
            **{"from": f"{min(wanted):%Y-%m-%dT%H:%M:%SZ}", "to": f"{max(wanted):%Y-%m-%dT%H:%M:01Z}"},
        )  # fmt: skip
        eventually(lambda: bool(told(log, "run.created", "b")), within=SOON, what="the run of b")
        runs = [run for run in told(log, "run.created", "a") if run["cause"] == "backfill"]
        ended = [run for run in told(log, "run.finished", "a") if run["cause"] == "backfill"]
        assert sorted(run["nominal_time"] for run in runs) == sorted(f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in wanted)
        assert len({run["run_id"] for run in runs}) == len(ended) == 7
        (own,) = told(log, "run.created", "b")
        assert instant(own["created_at"]) >= max(instant(run["finished_at"]) for run in ended)
