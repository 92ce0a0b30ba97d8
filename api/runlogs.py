"""What runs write: taken from workers, and given to whoever asks, also while they run.

Workers send lines with the lease of their attempt. From it follows the proof that the record carries; the lease itself
goes no further. A lease that is known to be another attempt's is refused; one that nobody has heard of yet may be of
an attempt that has only just begun: its lines stand on the topic, and are shown once the owner says that it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from api import leases, reports, requests, views
from api.document import takes
from api.problems import Problem, not_found, overloaded
from api.reading import json_response, read_instant
from api.runs import RUN_ID_MAX
from projections.logs import LINES_MAX, TEXT_MAX, WORD_MAX
from projections.store.reader import LogFilter, LogPage, RowsAway, Scope
from runtime.log import LogError
from runtime.record import Outgoing, TopicPartition
from schemas import codec, identity, models, topics
from schemas.internal import LogLine, RunLogged

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices

SOURCE = "tidewheel/api"
ATTEMPTS_MAX = 1_000  # in one call: as many as a worker has slots
LINES_AT_ONCE_MAX = 1_000  # of one attempt in one call: as much as one record holds
PENDING_MAX = 200  # records of logs that wait to be appended: reports and commands stand in the same line
FOLLOWERS_MAX = 500  # on one node: each has a connection open
WAIT_SECONDS_MAX = 30.0  # below what proxies commonly cut off
LOOK_SECONDS = 0.5  # between two looks for a follower
COMPLETION_FIRST = 11_000  # the number of the first line that comes with a completion; a worker's own are below
COMPLETION_LINES_MAX = LINES_MAX - COMPLETION_FIRST - 1

Stream = Annotated[str, Field(min_length=1, max_length=WORD_MAX, pattern=r"^[a-z][a-z0-9_-]*$")]
Counted = Annotated[int, Field(strict=True, ge=0, lt=2**53)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(_Model):
    """A line that an attempt wrote; `line` counts from 0 in each attempt."""

    line: Annotated[int, Field(strict=True, ge=0, lt=COMPLETION_FIRST)]
    at: AwareDatetime
    stream: Stream
    text: Annotated[str, Field(max_length=TEXT_MAX)]
    level: Annotated[str, Field(max_length=WORD_MAX)] = ""
    cut: Annotated[Counted, Field(description="characters that were cut off its end")] = 0
    dropped: Annotated[Counted, Field(description="lines that were left out before it")] = 0


class AttemptLines(_Model):
    """Lines of one attempt. Sent again, they are the same lines under the same numbers."""

    lease: reports.Lease
    run_id: Annotated[str, Field(min_length=1, max_length=RUN_ID_MAX)]
    retention: Annotated[models.Duration | None, Field(description="the job's log_retention")] = None
    lines: Annotated[tuple[Line, ...], Field(max_length=LINES_AT_ONCE_MAX)]


class Written(_Model):
    """What attempts wrote."""

    attempts: Annotated[tuple[AttemptLines, ...], Field(max_length=ATTEMPTS_MAX)]


class LogQuery(BaseModel):
    """Which lines of a run. `wait`: seconds to wait for the first one behind the cursor."""

    model_config = ConfigDict(extra="forbid")

    attempt: Annotated[int | None, Field(ge=1, lt=2**31)] = None
    stream: list[str] = []
    since: str | None = None
    newest: bool = False
    cursor: str | None = None
    limit: Annotated[int | None, Field(ge=1)] = None
    wait: Annotated[float, Field(ge=0, le=WAIT_SECONDS_MAX)] = 0


class RunLogRoutes:
    """`/v1/…/runs/{run_id}/logs` and `/v1/leases:log`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._followers = 0
        self._writer = LogWriter(services, reads)

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter()
        router.add_api_route(
            "/v1/leases:log", self.write, methods=["POST"], tags=["workers"], summary="Say what attempts wrote",
            openapi_extra=takes(Written),
        )  # fmt: skip
        router.add_api_route(
            "/v1/tenants/{tenant}/runs/{run_id}/logs", self.read, methods=["GET"], tags=["runs"],
            summary="What the attempts of a run wrote",
        )  # fmt: skip
        return router

    async def write(self, request: Request) -> Response:
        body = reports.read(Written, await requests.raw_body(request))
        refused = await self._writer.write(body.attempts)
        return json_response({"refused": refused})

    async def read(self, request: Request, tenant: str, run_id: str, wanted: Annotated[LogQuery, Query()]) -> Response:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        read_instant(wanted.since, "/since")
        if wanted.wait and self._followers >= FOLLOWERS_MAX:
            raise overloaded("Too many clients follow logs on this node.")
        self._followers += 1
        try:
            return await self._read(request, scope, run_id, wanted)
        finally:
            self._followers -= 1

    async def _read(self, request: Request, scope: Scope, run_id: str, wanted: LogQuery) -> Response:
        until = _time() + wanted.wait
        with self._reads.moving(self._services.progress, self._services.log_progress) as moved:
            while True:
                moved.clear()
                looked_at = _time()
                answered = await self._reads.ask(request, self._services.reader.run, scope, run_id)
                if answered.value is None:
                    raise not_found(f"run {run_id[:RUN_ID_MAX]} of {scope.tenant}")
                complete = answered.value["outcome"] is not None and await self._all_read(run_id)
                page = await self._reads.off_loop(_page, self._services, scope, run_id, wanted)
                if page.lines or page.more or complete or _time() >= until:
                    return answered.json(_shown(page, complete=complete))
                await _within(moved, until - _time())
                await asyncio.sleep(min(until - _time(), max(0.0, looked_at + LOOK_SECONDS - _time())))

    async def _all_read(self, run_id: str) -> bool:
        """Whether everything that was appended before now is in the rows: a worker writes before it says it is done."""
        log = self._services.log
        place = await self._reads.off_loop(place_of, log, run_id)
        return await self._reads.reach(
            self._services.log_progress, {place: await self._reads.off_loop(log.end_offset, place)}
        )


class LogWriter:
    """Puts lines on the topic, as far as their lease is not known to be another's."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._pending = 0

    async def write(self, attempts: Sequence[AttemptLines]) -> list[dict[str, str]]:
        """Return when the lines are in the log: those of which leases are not, and why."""
        proofs = [identity.log_proof(each.lease) for each in attempts]
        known = await self._known(attempts, proofs)
        refused, facts = [], []
        for each, proof in zip(attempts, proofs, strict=True):
            if reason := _objection(each, known.get(identity.log_check(proof)), known.values()):
                refused.append({"lease": each.lease, "reason": reason})
            elif each.lines:
                facts.append(_fact(each, proof))
        await self._append(facts)
        return refused

    async def complete(self, lease: str, text: str) -> str:
        """Keep what came with a completion; says why not, where it can't be: the outcome counts all the same."""
        try:
            run = self._services.leases.run_of(lease)
            proof = identity.log_proof(lease)
            if run is None:
                found = await self._reads.off_loop(self._services.reader.log_attempts, (), (identity.log_check(proof),))
                if not found:
                    return "unknown_attempt"
                run = found[0]["run_id"], None
            lines = lines_of(text, self._services.now())
            await self._append([RunLogged(run_id=run[0], proof=proof, retention=run[1], lines=lines)] if lines else [])
        except (RowsAway, LogError, Problem) as error:
            return f"unavailable: {error}"[:200]
        return ""

    async def _known(self, attempts: Sequence[AttemptLines], proofs: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """The attempts of these runs, by their check. A read model that is away refuses nobody: readers judge again."""
        checks = {identity.log_check(proof) for proof in proofs}
        runs = {each.run_id for each in attempts}
        try:
            rows = await self._reads.off_loop(self._services.reader.log_attempts, runs, checks)
        except RowsAway:
            return {}
        return {row["log_check"]: row for row in rows}

    async def _append(self, facts: Sequence[RunLogged]) -> None:
        if self._pending + len(facts) > PENDING_MAX and self._pending:
            raise overloaded("Too much of what runs write waits to be appended.")
        self._pending += len(facts)
        try:
            await asyncio.gather(*map(self._append_one, facts))
        finally:
            self._pending -= len(facts)

    async def _append_one(self, fact: RunLogged) -> None:
        place = place_of(self._services.log, fact.run_id)
        _, value = codec.encode(fact, source=SOURCE, time=self._services.now())
        await self._services.appender.append(Outgoing(place.topic, place.partition, fact.run_id.encode(), value))


def place_of(log: Any, run_id: str) -> TopicPartition:
    """Where a run's lines stand, all of them."""
    return TopicPartition(topics.LOGS, identity.partition_of(run_id, log.partitions(topics.LOGS)))


def lines_of(text: str, now: datetime) -> tuple[LogLine, ...]:
    """The last lines of a text that came with a completion; the first of them says how many were left out."""
    lines = text.splitlines()
    dropped = max(0, len(lines) - COMPLETION_LINES_MAX)
    return tuple(
        LogLine(
            line=COMPLETION_FIRST + number, at=now, stream="stdout", text=line[:TEXT_MAX],
            cut=max(0, len(line) - TEXT_MAX), dropped=0 if number else dropped,
        )
        for number, line in enumerate(lines[dropped:])
    )  # fmt: skip


def log_filter(services: ApiServices, wanted: LogQuery) -> LogFilter:
    """What the query parameters ask for."""
    now = services.now()
    streams = tuple(word for text in wanted.stream for word in text.split(",") if word)
    return LogFilter(
        now=now, kept_since=now - services.settings.logs, attempt=wanted.attempt, streams=streams,
        since=read_instant(wanted.since, "/since"), newest=wanted.newest,
    )  # fmt: skip


def _page(services: ApiServices, scope: Scope, run_id: str, wanted: LogQuery) -> LogPage:
    found = log_filter(services, wanted)
    return services.reader.log(scope, run_id, found, cursor=wanted.cursor, limit=wanted.limit)


def _shown(page: LogPage, *, complete: bool) -> dict[str, Any]:
    """`complete`: the run is over, and these are its last lines."""
    lines = [views.log_line(line) for line in page.lines]
    return {"lines": lines, "cursor": page.cursor, "more": page.more, "complete": complete and not page.more}


def _objection(each: AttemptLines, own: Mapping[str, Any] | None, others: Any) -> str:
    """Why the lines are not taken, or nothing."""
    if leases.place_of(each.lease) is None:
        return "unknown_lease"
    if own is not None:
        return "" if own["run_id"] == each.run_id else "other_run"
    handout = int(each.lease.rsplit(".", 2)[1])
    # The same hand-out of the same run, with another lease: its key was made up.
    same = (row for row in others if row["run_id"] == each.run_id and row["handout"] == handout and row["log_check"])
    return "other_lease" if next(same, None) is not None else ""


def _fact(each: AttemptLines, proof: str) -> RunLogged:
    lines = tuple(
        LogLine(
            line=line.line, at=line.at.astimezone(UTC), stream=line.stream, text=line.text, level=line.level,
            cut=line.cut, dropped=line.dropped,
        )
        for line in each.lines
    )  # fmt: skip
    return RunLogged(run_id=each.run_id, proof=proof, retention=each.retention, lines=lines)


async def _within(moved: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await moved.wait()
    except TimeoutError:
        return


def _time() -> float:
    return asyncio.get_running_loop().time()
