"""The log itself, record by record."""

import orjson
import pytest

from runtime.record import Outgoing
from schemas import topics
from tests.api.reads.asking import get

pytestmark = pytest.mark.anyio


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_the_topics_of_the_log_can_be_seen(house):
    shown = await get(house, "/v1/log")
    (changes,) = [each for each in shown["topics"] if each["topic"] == "tidewheel.schedule-changes"]
    assert changes["partitions"] == [
        {"partition": 0, "begin": 0, "end": 0},
        {"partition": 1, "begin": 0, "end": 0},
    ]
    assert shown["cluster_id"] == house.log.cluster_id


async def test_raw_records_are_shown_as_they_stand(house):
    value = b'{"b":1,"a":[1.50]}'
    house.log.append(
        [
            Outgoing(topics.RUNS, 1, b"k", value, (("tw-seq", b"scheduler-0-1"),)),
            Outgoing(topics.RUNS, 1, b"\xff", b"\x00\x01", (("h", b"\xff"),)),
            Outgoing(topics.RUNS, 1, None, None),
        ]
    )
    response = await house.http.get("/v1/log/tidewheel.runs/1")
    assert b'"value":' + value in response.content
    first, second, third = response.json()["records"]
    assert (first["offset"], first["key"], first["value"]) == (0, "k", {"b": 1, "a": [1.5]})
    assert first["headers"] == [{"name": "tw-seq", "value": "scheduler-0-1"}]
    assert (second["key_base64"], second["value_base64"]) == ("/w==", "AAE=")
    assert second["headers"] == [{"name": "h", "value_base64": "/w=="}]
    assert (third["key"], third["value"]) == (None, None)


async def test_the_log_is_read_on_from_where_the_answer_ended(house):
    house.log.append([Outgoing(topics.RUNS, 0, b"k", orjson.dumps(number), ()) for number in range(5)])
    seen, position = [], 0
    while position < (page := await get(house, f"/v1/log/runs/0?from={position}&limit=2"))["end"]:
        seen += [each["value"] for each in page["records"]]
        position = page["next"]
    assert seen == [0, 1, 2, 3, 4]


async def test_reading_past_the_end_is_an_empty_answer(house):
    page = await get(house, "/v1/log/runs/0?from=0")
    assert (page["begin"], page["end"], page["next"], page["records"]) == (0, 0, 0, [])


@pytest.mark.parametrize("path", ["/v1/log/nothing/0", "/v1/log/runs/99"])
async def test_a_partition_that_is_not_there_is_not_found(house, path):
    assert (await house.http.get(path)).status_code == 404


@pytest.mark.anyio
async def test_an_offset_that_no_log_can_have_is_refused(house):
    """A number larger than any offset names its parameter; it does not make us fail."""
    response = await house.http.get("/v1/log/run-events/0", params={"from": "9999999999999999999999999"})
    assert response.status_code == 400
    assert response.json()["faults"][0]["pointer"] == "/from"
