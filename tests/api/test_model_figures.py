"""What a process with an API tells Prometheus of the read model."""

from typing import Any

import pytest
from prometheus_client import generate_latest

from node.model_figures import ModelFigures
from runtime.telemetry import Telemetry
from tests.api.house import SECONDS
from tests.projections import histories
from tests.projections.test_backfills import ended, progressed, started

pytestmark = pytest.mark.anyio


def lines(telemetry: Telemetry, name: str) -> list[str]:
    text = generate_latest(telemetry.registry).decode()
    return [line for line in text.splitlines() if line.startswith(f"tidewheel_{name}")]


async def test_a_read_model_that_follows_has_nothing_left_to_fold(house):
    telemetry = Telemetry()
    house.happened(started())
    assert house.projector.stop(SECONDS)  # it has followed, and what it says of that moves no more
    ModelFigures(house.log, house.services.reader, house.projector, telemetry).look()
    assert lines(telemetry, "projection_lag_records") == ["tidewheel_projection_lag_records 0.0"]
    assert float(lines(telemetry, "read_model_as_of")[0].rpartition(" ")[2]) == house.projector.as_of.timestamp()


async def test_what_stands_in_the_log_and_not_in_the_rows_is_the_lag(house):
    telemetry = Telemetry()
    house.happened(started())
    assert house.projector.stop(SECONDS)
    house.log.append([histories.record(progressed(5, 2)), histories.record(progressed(6, 3))])
    ModelFigures(house.log, house.services.reader, house.projector, telemetry).look()
    assert lines(telemetry, "projection_lag_records") == ["tidewheel_projection_lag_records 2.0"]


async def test_a_backfill_is_open_with_what_it_has_left_to_decide_until_it_is_over(house):
    """Five occurrences, of which two are decided."""
    telemetry = Telemetry()
    house.happened(started(), progressed(5, 2))
    figures = ModelFigures(house.log, house.services.reader, house.projector, telemetry)
    figures.look()
    assert 'tidewheel_backfills_open{state="running"} 1.0' in lines(telemetry, "backfills_open")
    assert 'tidewheel_backfill_occurrences_left{state="running"} 3.0' in lines(telemetry, "backfill_occurrences_left")
    house.happened(ended())
    figures.look()
    assert 'tidewheel_backfills_open{state="running"} 0.0' in lines(telemetry, "backfills_open")


async def test_a_database_that_is_away_has_no_old_figures(house):
    telemetry = Telemetry()
    away: Any = Away(house.services.reader)
    figures = ModelFigures(house.log, away, house.projector, telemetry)
    figures.look()
    figures.start()
    assert figures.ready(SECONDS)
    assert figures.stop(SECONDS)
    assert lines(telemetry, "projection_lag_records") == ["tidewheel_projection_lag_records NaN"]
    assert lines(telemetry, "backfills_open") == []


class Away:
    """Answers once."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._asked = reader, 0

    def positions(self) -> Any:
        self._asked += 1
        if self._asked > 1:
            raise OSError("connection refused")
        return self._reader.positions()

    def backfills_left(self) -> Any:
        return self._reader.backfills_left()
