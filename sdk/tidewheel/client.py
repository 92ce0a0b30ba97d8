"""The HTTP API as methods: schedules, jobs, runs, previews.

A write returns once its owner has accepted or refused it. It carries an idempotency key, so that it can be repeated
after a lost answer without doing anything twice. What a client has written it sees in its next read.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from tidewheel import connection, jsontext
from tidewheel.errors import TidewheelError, Unreachable

ALL_TENANTS = "*"
ATTEMPTS_MAX = 4  # Together with their pauses they bridge the restart of a server.
PAUSE_SECONDS_MAX = 2.0
ANSWER_SECONDS = 15.0  # The server itself waits up to 10 s for the owner of what is written.

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a list. `cursor` leads to the next part; None at the end. `body` is the answer as it came."""

    items: tuple[Json, ...]
    cursor: str | None
    body: Json

    def __iter__(self) -> Iterator[Json]:
        return iter(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write did: `created`, `updated`, `unchanged` or `deleted`; `body` is the owner's answer."""

    status: int
    body: Json

    @property
    def change(self) -> str:
        """In one word, what changed."""
        if self.status == httpx.codes.CREATED:
            return "created"
        return "unchanged" if self.body.get("changed") is False else "updated"


class Client:
    """Talks to one server. `url`, `tenant` and `token` default to TIDEWHEEL_URL, _TENANT (`default`) and _TOKEN.

    Methods take `tenant` where another than the client's own is meant; lists take ALL_TENANTS. Errors are
    TidewheelError with the server's faults, or Unreachable. Threads may share a client.
    """

    def __init__(
        self,
        url: str | None = None,
        tenant: str | None = None,
        token: str | None = None,
        *,
        position: str | None = None,
    ) -> None:
        self.url = connection.server_url(url)
        self.tenant = tenant or os.environ.get("TIDEWHEEL_TENANT") or "default"
        self.position = position  # of the last write: reads wait until they show it
        self._http = httpx.Client(
            base_url=self.url,
            headers=connection.headers(token),
            trust_env=not connection.is_here(self.url),
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=connection.CONNECT_SECONDS),
        )
        self._retrying = Retrying(
            retry=retry_if_exception_type(Unreachable),
            stop=stop_after_attempt(ATTEMPTS_MAX),
            wait=wait_random_exponential(multiplier=0.1, max=PAUSE_SECONDS_MAX),
            reraise=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    # --- schedules ---

    def put_schedule(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Create or replace a schedule. With `expected_version` only if that is its current one."""
        return self._write("PUT", self._path("schedules", name, tenant), definition, expected_version, idempotency_key)

    def get_schedule(self, name: str, *, tenant: str | None = None) -> Json:
        """One schedule as it stands."""
        return self._read(self._path("schedules", name, tenant))

    def list_schedules(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Schedules by name; `label`, `state`, `cursor`, `limit` narrow the list."""
        return self._list("schedules", tenant, wanted)

    def versions(self, name: str, *, tenant: str | None = None) -> Json:
        """All versions of a schedule that are remembered."""
        return self._read(f"{self._path('schedules', name, tenant)}/versions")

    def pause_schedule(self, name: str, *, tenant: str | None = None, note: str = "") -> Written:
        """Skip its occurrences from now on."""
        return self._write("POST", f"{self._path('schedules', name, tenant)}:pause", {"note": note} if note else {})

    def resume_schedule(
        self, name: str, *, tenant: str | None = None, note: str = "", backfill: bool = False
    ) -> Written:
        """Its occurrences have runs again from now on; with `backfill` also those that the pause has skipped."""
        body: Json = {**({"note": note} if note else {}), **({"backfill": True} if backfill else {})}
        return self._write("POST", f"{self._path('schedules', name, tenant)}:resume", body)

    def trigger_schedule(
        self,
        name: str,
        *,
        tenant: str | None = None,
        payload: Mapping[str, Any] | None = None,
        overlap: str | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """One run now; the answer names it."""
        body = {key: value for key, value in (("payload", payload), ("overlap", overlap)) if value is not None}
        return self._write("POST", f"{self._path('schedules', name, tenant)}:trigger", body, None, idempotency_key)

    def skip_occurrence(
        self, name: str, nominal_time: datetime, *, tenant: str | None = None, note: str = ""
    ) -> Written:
        """One occurrence to come has no run. What is due already is refused with what became of it."""
        body = {"nominal_time": instant(nominal_time), **({"note": note} if note else {})}
        return self._write("POST", f"{self._path('schedules', name, tenant)}:skip", body)

    def delete_schedule(self, name: str, *, tenant: str | None = None, cancel_runs: bool = False) -> Written:
        """End a schedule. Its runs finish, unless they are to be cancelled."""
        path = self._path("schedules", name, tenant)
        return self._write("DELETE", f"{path}?runs=cancel" if cancel_runs else path, None)

    def occurrences(
        self,
        name: str,
        *,
        tenant: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        limit: int | None = None,
    ) -> Json:
        """What was and will be decided about each occurrence in [from, to), and why."""
        wanted = {"from": from_, "to": to, "limit": limit}
        return self._read(f"{self._path('schedules', name, tenant)}/occurrences", wanted)

    def preview(
        self,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        limit: int | None = None,
        load: bool = False,
    ) -> Json:
        """The occurrences that a definition would have; refused for what a put would refuse.

        With `load`: what it would do to the load of its queue.
        """
        wanted = {"from": from_, "to": to, "limit": limit, **({"load": "true"} if load else {})}
        body: Json = self._send("POST", f"/v1/tenants/{quote(tenant or self.tenant)}/preview", wanted, definition).body
        return body

    def forecast(
        self,
        *,
        days: int | None = None,
        from_: datetime | None = None,
        queue: str | None = None,
        tenant: str | None = None,
    ) -> Json:
        """How many runs are due in the days to come, of all tenants or one, and which minutes are crowded."""
        return self._read("/v1/forecast", {"days": days, "from": from_, "queue": queue, "tenant": tenant})

    # --- backfills ---

    def start_backfill(
        self,
        name: str,
        *,
        from_: datetime,
        to: datetime | None = None,
        tenant: str | None = None,
        idempotency_key: str | None = None,
        **wanted: Any,
    ) -> Written:
        """Run the occurrences of a past range of a schedule; `to` is now where it is not given.

        `order`, `reprocess`, `max_active`, `rate`, `as_of`, `note` say how; `dry_run` only asks what would be done.
        """
        span = {"from": instant(from_), **({} if to is None else {"to": instant(to)})}
        body = {**span, **{key: value for key, value in wanted.items() if value is not None}}
        path = f"{self._path('schedules', name, tenant)}/backfills"
        return self._write("POST", path, body, None, idempotency_key)

    def get_backfill(self, name: str, backfill: str, *, tenant: str | None = None) -> Json:
        """How far a backfill has come."""
        return self._read(f"{self._path('schedules', name, tenant)}/backfills/{quote(backfill, safe='')}")

    def list_backfills(self, name: str | None = None, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Backfills of a schedule, or of all of all tenants, newest first; `state`, `cursor`, `limit`."""
        path = "/v1/backfills" if name is None else f"{self._path('schedules', name, tenant)}/backfills"
        body = self._read(path, wanted)
        return Page(items=tuple(body.get("backfills") or ()), cursor=body.get("cursor"), body=body)

    def pause_backfill(self, name: str, backfill: str, *, tenant: str | None = None, note: str = "") -> Written:
        """No further runs until it is resumed."""
        return self._change_backfill("pause", name, backfill, tenant, note)

    def resume_backfill(self, name: str, backfill: str, *, tenant: str | None = None, note: str = "") -> Written:
        """It goes on where it stood."""
        return self._change_backfill("resume", name, backfill, tenant, note)

    def cancel_backfill(self, name: str, backfill: str, *, tenant: str | None = None, note: str = "") -> Written:
        """End it; the answer says how many of its runs are open, of which those that nobody has begun are cancelled."""
        return self._change_backfill("cancel", name, backfill, tenant, note)

    def _change_backfill(self, verb: str, name: str, backfill: str, tenant: str | None, note: str) -> Written:
        path = f"{self._path('schedules', name, tenant)}/backfills/{quote(backfill, safe='')}:{verb}"
        return self._write("POST", path, {"note": note} if note else {})

    # --- jobs ---

    def put_job(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """Create or replace a registered job."""
        return self._write("PUT", self._path("jobs", name, tenant), definition, expected_version, idempotency_key)

    def get_job(self, name: str, *, tenant: str | None = None) -> Json:
        """One registered job."""
        return self._read(self._path("jobs", name, tenant))

    def list_jobs(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Registered jobs by name; `cursor`, `limit`."""
        return self._list("jobs", tenant, wanted)

    def delete_job(self, name: str, *, tenant: str | None = None) -> Written:
        """Remove a registered job; schedules that name it skip their occurrences."""
        return self._write("DELETE", self._path("jobs", name, tenant), None)

    # --- calendars, queues, tenants ---

    def put_calendar(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        expected_version: int | None = None,
    ) -> Written:
        """Create or replace a calendar: days that schedules exclude by its name."""
        return self._write("PUT", self._path("calendars", name, tenant), definition, expected_version)

    def get_calendar(self, name: str, *, tenant: str | None = None) -> Json:
        """One calendar."""
        return self._read(self._path("calendars", name, tenant))

    def list_calendars(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Calendars by name; `cursor`, `limit`."""
        return self._list("calendars", tenant, wanted)

    def delete_calendar(self, name: str, *, tenant: str | None = None) -> Written:
        """Remove a calendar; schedules that name it exclude nothing by it."""
        return self._write("DELETE", self._path("calendars", name, tenant), None)

    def put_queue(self, name: str, definition: Mapping[str, Any], *, expected_version: int | None = None) -> Written:
        """Declare a queue, or change its definition."""
        return self._write("PUT", _path("queues", name), definition, expected_version)

    def get_queue(self, name: str) -> Json:
        """One declared queue."""
        return self._read(_path("queues", name))

    def list_queues(self, **wanted: Any) -> Page:
        """Declared queues by name; `cursor`, `limit`."""
        return self._list("queues", ALL_TENANTS, wanted)

    def delete_queue(self, name: str) -> Written:
        """Remove a queue's definition; it goes on with the defaults."""
        return self._write("DELETE", _path("queues", name), None)

    def pause_queue(self, name: str, *, note: str = "") -> Written:
        """Hand nothing out of a queue until it is resumed; what runs goes on. Refused where somebody changes it too."""
        return self._change_queue(name, {"paused": {"note": note}})

    def resume_queue(self, name: str) -> Written:
        """Hand out again what waits in a queue."""
        return self._change_queue(name, {"paused": None})

    def _change_queue(self, name: str, change: Mapping[str, Any]) -> Written:
        """Its definition with some fields changed, and all others as they stand; 412 where they stand no longer."""
        try:
            known = self.get_queue(name)
        except TidewheelError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            known = {"version": 0, "definition": {}}
        changed = {key: value for key, value in {**known["definition"], **change}.items() if value is not None}
        return self.put_queue(name, changed, expected_version=known["version"])

    def put_tenant(self, name: str, definition: Mapping[str, Any], *, expected_version: int | None = None) -> Written:
        """Declare a tenant, or change its definition."""
        return self._write("PUT", _path("tenants", name), definition, expected_version)

    def get_tenant(self, name: str) -> Json:
        """One declared tenant."""
        return self._read(_path("tenants", name))

    def list_tenants(self) -> Page:
        """Tenants that have schedules or are declared."""
        return self._list("tenants", ALL_TENANTS, {})

    def delete_tenant(self, name: str) -> Written:
        """Remove a tenant's definition; what it has stays."""
        return self._write("DELETE", _path("tenants", name), None)

    # --- runs ---

    def list_runs(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Runs, newest first; `schedule`, `state`, `label`, `from_`, `to`, `cursor`, `limit` narrow the list."""
        return self._list("runs", tenant, wanted)

    def get_run(self, run_id: str, *, tenant: str | None = None) -> Json:
        """One run with its attempts and events."""
        return self._read(self._path("runs", run_id, tenant))

    def cancel_run(self, run_id: str, *, tenant: str | None = None, note: str = "") -> Written:
        """Ask a run to end; the answer says what was true: not handed out yet, asked to stop, already finished."""
        return self._write("POST", f"{self._path('runs', run_id, tenant)}:cancel", {"note": note} if note else {})

    def rerun(
        self, run_id: str, *, tenant: str | None = None, definition: str | None = None,
        payload: Mapping[str, Any] | None = None, note: str = "", idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Another run of one that is over, by its own definition (`same`) or the `current` one; the answer names it."""
        body = _given(definition=definition, payload=payload, note=note or None)
        return self._write("POST", f"{self._path('runs', run_id, tenant)}:rerun", body, None, idempotency_key)

    def list_dead_letters(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Runs that were given up, newest first; `schedule`, `label`, `from_`, `to`, `cursor`, `limit` narrow them."""
        query = {key.rstrip("_"): value for key, value in wanted.items()}
        body = self._read(f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/dead-letters", query)
        return Page(items=tuple(body.get("dead_letters") or ()), cursor=body.get("cursor"), body=body)

    def redrive(
        self, run_id: str, *, tenant: str | None = None, definition: str | None = None,
        payload: Mapping[str, Any] | None = None, note: str = "", idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Another run of one that was given up, once: a second redrive is refused and names the first one's run."""
        body = _given(definition=definition, payload=payload, note=note or None)
        return self._write("POST", f"{self._path('dead-letters', run_id, tenant)}:redrive", body, None, idempotency_key)

    def redrive_all(
        self, selector: Mapping[str, Any], *, tenant: str | None = None, definition: str | None = None,
        note: str = "", limit: int | None = None, cursor: str | None = None, idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Redrive dead letters that a selector names (`schedule`, `labels`, `from`, `to`; {} is all), 50 at most.

        The answer says what was `redriven` and what `refused`; with its `cursor` the next call goes on.
        """
        chosen = {key: instant(value) if isinstance(value, datetime) else value for key, value in selector.items()}
        body = _given(selector=chosen, definition=definition, note=note or None, limit=limit, cursor=cursor)
        path = f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/dead-letters:redrive"
        return self._write("POST", path, body, None, idempotency_key)

    # --- asking ---

    def _path(self, kind: str, name: str, tenant: str | None) -> str:
        return f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/{kind}/{quote(name, safe='')}"

    def _list(self, kind: str, tenant: str | None, wanted: Mapping[str, Any]) -> Page:
        tenant = tenant or self.tenant
        path = f"/v1/{kind}" if tenant == ALL_TENANTS else f"/v1/tenants/{quote(tenant, safe='')}/{kind}"
        body = self._read(path, {key.rstrip("_"): value for key, value in wanted.items()})
        return Page(items=tuple(body.get(kind) or body.get("items") or ()), cursor=body.get("cursor"), body=body)

    def _read(self, path: str, wanted: Mapping[str, Any] | None = None) -> Json:
        return self._send("GET", path, wanted).body

    def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        headers = {"Idempotency-Key": idempotency_key or secrets.token_hex(16)}
        if expected_version is not None:
            headers["If-Match"] = str(expected_version)
        return self._send(method, path, None, body, headers)

    def _send(
        self,
        method: str,
        path: str,
        wanted: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Written:
        """One request, repeated while the server cannot be reached: a read, or a write with its key."""
        request = self._http.build_request(
            method,
            path,
            params=_query(wanted) or None,
            content=None if body is None else _encoded(body),
            headers={**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})},
        )
        if self.position is not None and method in {"GET", "POST"}:
            request.headers["Tidewheel-At-Least"] = self.position
        return self._retrying(self._send_once, request)

    def _send_once(self, request: httpx.Request) -> Written:
        try:
            response = self._http.send(request)
        except httpx.TransportError as error:
            raise Unreachable(f"{self.url} cannot be reached: {str(error) or type(error).__name__}") from error
        answer = connection.read(response)
        if response.status_code == httpx.codes.ACCEPTED:
            where = response.headers.get("Location", "")
            raise Unreachable(
                f"the command stands in the log, but its owner has not answered yet; see {where}", status=202
            )
        if not isinstance(answer, dict):
            raise TidewheelError(f"{request.url} answered a {type(answer).__name__}: is it a Tidewheel server?")
        self.position = response.headers.get("Tidewheel-Position", self.position)
        return Written(status=response.status_code, body=answer)


def _given(**fields: Any) -> Json:
    """What was given of a body."""
    return {key: value for key, value in fields.items() if value is not None}


def _path(kind: str, name: str) -> str:
    """Of what belongs to no tenant."""
    return f"/v1/{kind}/{quote(name, safe='')}"


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return jsontext.dumps_strictly(dict(body))
    except ValueError as error:
        raise TidewheelError(f"this cannot be sent as JSON: {error}") from error


def _query(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    given = {key: value for key, value in (wanted or {}).items() if value is not None}
    return {key: instant(value) if isinstance(value, datetime) else value for key, value in given.items()}


def instant(at: datetime) -> str:
    """RFC 3339 in UTC; a reading without a zone is taken for UTC."""
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).isoformat().replace("+00:00", "Z")
