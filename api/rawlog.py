"""The log as it is: raw records for an audit from outside, and for whoever looks for the truth at night."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response

from api.problems import Problem, not_found
from api.reading import json_response
from runtime.log import OffsetOutOfRange, UnknownTopic
from runtime.record import TopicPartition
from schemas.topics import PREFIX

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices
    from runtime.log import Log
    from runtime.record import Record

LIMIT = 100
LIMIT_MAX = 5_000
OFFSET_MAX = 2**63 - 1  # what an offset is made of, here and in Kafka
BYTES_MAX = 4 * 1024 * 1024  # of records in one answer; one is always given


class LogRoutes:
    """`/v1/log`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["log"])
        router.add_api_route("/v1/log", self.topics, methods=["GET"], summary="Topics and their partitions")
        router.add_api_route(
            "/v1/log/{topic}/{partition}", self.records, methods=["GET"], summary="Raw records of a partition"
        )  # fmt: skip
        return router

    async def topics(self) -> Response:
        topics = await self._reads.off_loop(_topics, self._services.log)
        return json_response({"cluster_id": self._services.log.cluster_id, "topics": topics})

    async def records(
        self, topic: str, partition: int, from_: Annotated[int | None, Query(alias="from", ge=0, le=OFFSET_MAX)] = None,
        limit: Annotated[int, Query(ge=1)] = LIMIT,
    ) -> Response:  # fmt: skip
        name = topic if topic.startswith(PREFIX) else PREFIX + topic
        body = await self._reads.off_loop(
            raw_records, self._services.log, TopicPartition(name, partition), from_, min(limit, LIMIT_MAX)
        )
        return Response(body, media_type="application/json")


def raw_records(log: Log, place: TopicPartition, from_: int | None, limit: int) -> bytes:
    """The answer's JSON: records from an offset on, and where to read on."""
    try:
        if not 0 <= place.partition < log.partitions(place.topic):
            raise not_found(f"partition {place.partition} of {place.topic}")
        begin, end = log.begin_offset(place), log.end_offset(place)
        start = begin if from_ is None else from_
        records, then = _read(log, place, start, end, limit)
    except UnknownTopic as error:
        raise not_found(f"topic {place.topic}") from error
    except OffsetOutOfRange as error:
        more = {"begin": log.begin_offset(place), "end": log.end_offset(place)}
        raise Problem(410, "trimmed", f"Records before {more['begin']} are no longer kept.", more=more) from error
    head = {"topic": place.topic, "partition": place.partition, "begin": begin, "end": end, "next": then}
    return orjson.dumps({**head, "records": [_view(record) for record in records]}, option=orjson.OPT_UTC_Z)


def _read(log: Log, place: TopicPartition, start: int, end: int, limit: int) -> tuple[list[Record], int]:
    if start >= end:
        return [], start
    reader = log.open_reader({place: start})
    try:
        records = reader.poll(records_max=limit, bytes_max=BYTES_MAX, timeout=1.0)
        return records, reader.position(place)
    finally:
        reader.close()


def _view(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "appended_at": record.appended_at,
        **_text("key", record.key),
        "headers": [{"name": name, **_text("value", value)} for name, value in record.headers],
        **_value(record.value),
    }


def _value(value: bytes | None) -> dict[str, Any]:
    """JSON as JSON, copied byte for byte; anything else in base64."""
    if value is None:
        return {"value": None}
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}
    return {"value": orjson.Fragment(value)}


def _text(name: str, raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        return {name: None}
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(raw).decode()}


def _topics(log: Log) -> list[dict[str, Any]]:
    return [
        {
            "topic": name,
            "key": spec.key,
            "cleanup": spec.cleanup.value,
            "internal": spec.internal,
            "partitions": [
                {"partition": number, "begin": log.begin_offset(place), "end": log.end_offset(place)}
                for number in range(log.partitions(name))
                for place in [TopicPartition(name, number)]
            ],
        }
        for name, spec in sorted(log.topics().items())
    ]
