"""How a backfill stands, after which events."""

from typing import Any

import orjson
import pytest

from schemas.facts import BackfillCounts, BackfillFinished, BackfillProgressed, BackfillStarted, Cause
from tests.projections.histories import at, created
from tests.projections.memory import rows_after
from tests.projections.test_schedules import millis, only

OF: dict[str, Any] = {"tenant": "acme", "schedule": "report", "backfill": "b-1"}


def started() -> BackfillStarted:
    return BackfillStarted(
        **OF, version=3, from_=at(-600), to=at(-300), order="oldest", reprocess="failed", max_active=2, rate="10/s",
        occurrences=5, started_at=at(0), by="ada",
    )  # fmt: skip


def progressed(second: float, decided: int, state: str = "running") -> BackfillProgressed:
    return BackfillProgressed(
        **OF, state=state, cursor=at(-500), decided=decided, occurrences=5, counts=BackfillCounts(created=decided),
        progressed_at=at(second), expected_at=at(60),
    )  # fmt: skip


def ended() -> BackfillFinished:
    counts = BackfillCounts(created=4, left_out={"succeeded": 1}, ended={"failed": 1, "succeeded": 3})
    return BackfillFinished(
        **OF, outcome="completed", cursor=at(-300), decided=5, occurrences=5, counts=counts, finished_at=at(20)
    )  # fmt: skip


def test_a_started_one_runs_and_says_what_it_is_about():
    row = only(rows_after([started()], "backfills"))
    assert (row["id"], row["state"], row["version"], row["occurrences"], row["decided"]) == ("b-1", "running", 3, 5, 0)
    assert (row["range_from"], row["range_to"]) == (millis(at(-600)), millis(at(-300)))
    assert (row["reprocess"], row["rate"], row["by"]) == ("failed", "10/s", "ada")


def test_the_newest_word_stands_and_an_echo_of_an_older_one_changes_nothing():
    row = only(rows_after([started(), progressed(5, 1), progressed(10, 3, "paused"), progressed(5, 1)], "backfills"))
    assert (row["state"], row["decided"], row["told_at"]) == ("paused", 3, millis(at(10)))


@pytest.mark.parametrize("echo", [started(), progressed(5, 1), ended()], ids=["started", "progressed", "finished"])
def test_what_is_over_stays_over(echo):
    row = only(rows_after([started(), progressed(5, 1), ended(), echo], "backfills"))
    assert (row["state"], row["decided"], row["finished_at"]) == ("completed", 5, millis(at(20)))
    assert orjson.loads(row["counts"])["ended"] == {"failed": 1, "succeeded": 3}


def test_one_whose_start_is_not_kept_any_more_is_known_by_its_progress():
    row = only(rows_after([progressed(5, 1)], "backfills"))
    assert (row["tenant"], row["schedule"], row["id"], row["decided"], row["started_at"]) == (
        "acme", "report", "b-1", 1, None,
    )  # fmt: skip


def test_a_run_names_the_backfill_that_made_it():
    row = only(rows_after([created("report", 0, cause=Cause.BACKFILL, backfill="b-1")], "runs"))
    assert (row["cause"], row["backfill"]) == ("backfill", "b-1")
