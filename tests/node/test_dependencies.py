"""A schedule that follows others, through the whole line on an embedded log, with owners of different partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import identity
from tests.node.line import JOB, PARTITIONS, SOON, judged, opened, put, running, told
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

FOLLOWING = {"after": [{"schedule": "load", "mode": "run", "condition": "failed"}], "job": JOB}


def test_every_expired_run_of_another_partition_is_followed_by_one_and_the_audit_agrees(tmp_path: Path) -> None:
    assert identity.partition_of("acme/load", PARTITIONS) != identity.partition_of("acme/report", PARTITIONS)
    with opened(tmp_path) as log:
        with running(log, tmp_path):
            put(log, "report", FOLLOWING)
            put(log, "load", {"trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"}, "job": JOB})
            eventually(
                lambda: len(told(log, "run.created", "report")) >= 3, within=SOON, what="three runs that follow"
            )  # fmt: skip
        loaded = {run["run_id"] for run in told(log, "run.created", "load")}
        followed = told(log, "run.created", "report")
        assert len({run["upstream"]["run_id"] for run in followed}) == len(followed)
        assert {run["upstream"]["run_id"] for run in followed} <= loaded
        assert {(run["cause"], tuple(run["chain"]), run.get("nominal_time")) for run in followed} == {
            ("dependency", ("load",), None)
        }
        report = judged(log)
        assert report.offenders == {}
        assert report.created == len(loaded)
