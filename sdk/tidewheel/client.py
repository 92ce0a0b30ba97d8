"""The HTTP API as methods: schedules, jobs, runs, previews.

A write returns once its owner has accepted or refused it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from tidewheel import eventstream
from tidewheel.asking import ALL_TENANTS, Asking, Json, Page, Written, given, instant, path_of
from tidewheel.errors import TidewheelError
from tidewheel.eventstream import Event

__all__ = ["ALL_TENANTS", "Client", "Json", "Page", "Written", "instant"]


FOLLOW_SECONDS = 8.0  # that one question waits for what is written next: below what is waited for any answer


class Client(Asking):
    """Talks to one server. `url`, `tenant` and `token` default to TIDEWHEEL_URL, _TENANT (`default`) and _TOKEN.

    Methods take `tenant` where another than the client's own is meant; lists take ALL_TENANTS. Errors are
    TidewheelError with the server's faults, or Unreachable. Threads may share a client.
    """

    # --- schedules ---

    def put_schedule(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        note: str = "",
        by: str = "",
    ) -> Written:
        """Create or replace a schedule. With `expected_version` only if that is its current one."""
        path = _said(self._path("schedules", name, tenant), note, by)
        return self._write("PUT", path, definition, expected_version, idempotency_key)

    def get_schedule(self, name: str, *, tenant: str | None = None) -> Json:
        """One schedule as it stands."""
        return self._read(self._path("schedules", name, tenant))

    def list_schedules(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Schedules by name; `label`, `state`, `cursor`, `limit` narrow the list."""
        return self._list("schedules", tenant, wanted)

    def versions(self, name: str, *, tenant: str | None = None) -> Json:
        """All versions of a schedule that are remembered."""
        return self._read(f"{self._path('schedules', name, tenant)}/versions")

    def pause_schedule(self, name: str, *, tenant: str | None = None, note: str = "", by: str = "") -> Written:
        """Skip its occurrences from now on."""
        body = given(note=note or None, by=by or None)
        return self._write("POST", f"{self._path('schedules', name, tenant)}:pause", body)

    def resume_schedule(
        self, name: str, *, tenant: str | None = None, note: str = "", by: str = "", backfill: bool = False
    ) -> Written:
        """Its occurrences have runs again from now on; with `backfill` also those that the pause has skipped."""
        body = given(note=note or None, by=by or None, backfill=True if backfill else None)
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

    def delete_schedule(
        self, name: str, *, tenant: str | None = None, cancel_runs: bool = False, note: str = "", by: str = ""
    ) -> Written:
        """End a schedule. Its runs finish, unless they are to be cancelled."""
        said = given(runs="cancel" if cancel_runs else None, note=note or None, by=by or None)
        path = self._path("schedules", name, tenant)
        return self._write("DELETE", f"{path}?{urlencode(said)}" if said else path, None)

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
        beside: Sequence[Mapping[str, Any]] = (),
    ) -> Json:
        """The occurrences that a definition would have; refused for what a put would refuse.

        With `load`: what it would do to the load of its queue. `beside` are documents with `kind` and `name` that would
        be put with it, such as its calendars.
        """
        wanted = {"from": from_, "to": to, "limit": limit, **({"load": "true"} if load else {})}
        document = {**definition, **({"beside": list(beside)} if beside else {})}
        body: Json = self._send("POST", f"/v1/tenants/{quote(tenant or self.tenant)}/preview", wanted, document).body
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
        note: str = "",
        by: str = "",
    ) -> Written:
        """Create or replace a registered job."""
        path = _said(self._path("jobs", name, tenant), note, by)
        return self._write("PUT", path, definition, expected_version, idempotency_key)

    def get_job(self, name: str, *, tenant: str | None = None) -> Json:
        """One registered job."""
        return self._read(self._path("jobs", name, tenant))

    def run_job(
        self,
        name: str,
        *,
        tenant: str | None = None,
        payload: Mapping[str, Any] | None = None,
        overlap: str | None = None,
        after_catalog: str | None = None,
        idempotency_key: str | None = None,
    ) -> Written:
        """One run of a registered job, of no schedule; the answer names it.

        `overlap` skip refuses it while another such run is open. `after_catalog` is the position of the job's put,
        where it is run right behind it.
        """
        given = (("payload", payload), ("overlap", overlap), ("after_catalog", after_catalog))
        body = {key: value for key, value in given if value is not None}
        return self._write("POST", f"{self._path('jobs', name, tenant)}:run", body, None, idempotency_key)

    def list_jobs(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Registered jobs by name; `cursor`, `limit`."""
        return self._list("jobs", tenant, wanted)

    def delete_job(self, name: str, *, tenant: str | None = None, note: str = "", by: str = "") -> Written:
        """Remove a registered job; schedules that name it skip their occurrences."""
        return self._write("DELETE", _said(self._path("jobs", name, tenant), note, by), None)

    # --- calendars, queues, tenants ---

    def put_calendar(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        tenant: str | None = None,
        expected_version: int | None = None,
        note: str = "",
        by: str = "",
    ) -> Written:
        """Create or replace a calendar: days that schedules exclude by its name."""
        return self._write("PUT", _said(self._path("calendars", name, tenant), note, by), definition, expected_version)

    def get_calendar(self, name: str, *, tenant: str | None = None) -> Json:
        """One calendar."""
        return self._read(self._path("calendars", name, tenant))

    def list_calendars(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Calendars by name; `cursor`, `limit`."""
        return self._list("calendars", tenant, wanted)

    def delete_calendar(self, name: str, *, tenant: str | None = None, note: str = "", by: str = "") -> Written:
        """Remove a calendar; schedules that name it exclude nothing by it."""
        return self._write("DELETE", _said(self._path("calendars", name, tenant), note, by), None)

    def put_queue(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        note: str = "",
        by: str = "",
    ) -> Written:
        """Declare a queue, or change its definition."""
        return self._write("PUT", _said(path_of("queues", name), note, by), definition, expected_version)

    def get_queue(self, name: str) -> Json:
        """One declared queue."""
        return self._read(path_of("queues", name))

    def list_queues(self, **wanted: Any) -> Page:
        """Declared queues by name; `cursor`, `limit`."""
        return self._list("queues", ALL_TENANTS, wanted)

    def queue_backlog(self, name: str) -> Json:
        """What waits and runs in a queue, shard by shard; it need not be declared."""
        return self._read(path_of("queues", name) + "/backlog")

    def delete_queue(self, name: str, *, note: str = "", by: str = "") -> Written:
        """Remove a queue's definition; it goes on with the defaults."""
        return self._write("DELETE", _said(path_of("queues", name), note, by), None)

    def pause_queue(self, name: str, *, note: str = "", by: str = "") -> Written:
        """Hand nothing out of a queue until it is resumed; what runs goes on. Refused where somebody changes it too."""
        return self._change_queue(name, {"paused": {"note": note}}, note, by)

    def resume_queue(self, name: str, *, note: str = "", by: str = "") -> Written:
        """Hand out again what waits in a queue."""
        return self._change_queue(name, {"paused": None}, note, by)

    def _change_queue(self, name: str, change: Mapping[str, Any], note: str, by: str) -> Written:
        """Its definition with some fields changed, and all others as they stand; 412 where they stand no longer."""
        try:
            known = self.get_queue(name)
        except TidewheelError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            known = {"version": 0, "definition": {}}
        changed = {key: value for key, value in {**known["definition"], **change}.items() if value is not None}
        return self.put_queue(name, changed, expected_version=known["version"], note=note, by=by)

    def put_tenant(
        self,
        name: str,
        definition: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        note: str = "",
        by: str = "",
    ) -> Written:
        """Declare a tenant, or change its definition."""
        return self._write("PUT", _said(path_of("tenants", name), note, by), definition, expected_version)

    def get_tenant(self, name: str) -> Json:
        """One declared tenant."""
        return self._read(path_of("tenants", name))

    def list_tenants(self) -> Page:
        """Tenants that have schedules or are declared."""
        return self._list("tenants", ALL_TENANTS, {})

    def delete_tenant(self, name: str, *, note: str = "", by: str = "") -> Written:
        """Remove a tenant's definition; what it has stays."""
        return self._write("DELETE", _said(path_of("tenants", name), note, by), None)

    # --- workers ---

    def list_workers(self, **wanted: Any) -> Page:
        """Workers by queue and name, each with what it has in hand.

        `queue`, `state` (present, draining, silent, gone), `worker` (a name or an incarnation), `cursor`, `limit`
        narrow the list; those that are gone are listed for an hour, where that state is asked for.
        """
        return self._list("workers", ALL_TENANTS, wanted)

    # --- runs ---

    def list_runs(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Runs, newest first; `schedule`, `state`, `label`, `from_`, `to`, `cursor`, `limit` narrow the list."""
        return self._list("runs", tenant, wanted)

    def get_run(self, run_id: str, *, tenant: str | None = None) -> Json:
        """One run with its first attempts and events; with `attempts_cursor`, `events_cursor` there are more."""
        return self._read(self._path("runs", run_id, tenant))

    def list_parts(self, part: str, run_id: str, *, tenant: str | None = None, **wanted: Any) -> Page:
        """The `attempts` of a run, or its `events`, in order; `newest`, `cursor`, `limit`."""
        body = self._read(f"{self._path('runs', run_id, tenant)}/{part}", wanted)
        return Page(items=tuple(body.get(part) or ()), cursor=body.get("cursor"), body=body)

    def get_logs(self, run_id: str, *, tenant: str | None = None, **wanted: Any) -> Json:
        """What the attempts of a run wrote, a page of it: `lines`, and the `cursor` of what follows.

        `more` says that there is some already, `complete` that the run is over and these were its last.

        `attempt`, `stream`, `since`, `newest` (the last lines), `cursor` and `limit` narrow it; `wait` waits so many
        seconds, 30 at most, for the first line.
        """
        query = {key: str(value).lower() if isinstance(value, bool) else value for key, value in wanted.items()}
        return self._read(f"{self._path('runs', run_id, tenant)}/logs", query)

    def logs(
        self, run_id: str, *, tenant: str | None = None, follow: bool = False, cursor: str | None = None, **wanted: Any
    ) -> Iterator[Json]:
        """The lines that the attempts of a run wrote, from behind a cursor; with `follow` until the run is over."""
        complete, more, newest = False, True, wanted.pop("newest", None)
        while more or (follow and not complete):
            wait = FOLLOW_SECONDS if follow and not more else None
            page = self.get_logs(run_id, tenant=tenant, cursor=cursor, newest=newest, wait=wait, **wanted)
            yield from page["lines"]
            cursor, more, complete, newest = page["cursor"], page["more"], page["complete"], None

    def cancel_run(self, run_id: str, *, tenant: str | None = None, note: str = "") -> Written:
        """Ask a run to end; the answer says what was true: not handed out yet, asked to stop, already finished."""
        return self._write("POST", f"{self._path('runs', run_id, tenant)}:cancel", {"note": note} if note else {})

    def cancel_runs(
        self, selector: Mapping[str, Any], *, tenant: str | None = None, note: str = "", limit: int | None = None,
        cursor: str | None = None, idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Ask the open runs to end that a selector names, 200 at most; of all tenants with `tenant=ALL_TENANTS`.

        It has `queue`, `schedule`, `state`, `labels`, `from`, `to`; {} is all. The answer has `runs` with the state
        that each was met in, and their `counts`; with its `cursor` the next call goes on.
        """
        chosen = {key: instant(value) if isinstance(value, datetime) else value for key, value in selector.items()}
        body = given(selector=chosen, note=note or None, limit=limit, cursor=cursor)
        tenant = tenant or self.tenant
        whose = "/v1/runs" if tenant == ALL_TENANTS else f"/v1/tenants/{quote(tenant, safe='')}/runs"
        return self._write("POST", f"{whose}:cancel", body, None, idempotency_key)

    def rerun(
        self, run_id: str, *, tenant: str | None = None, definition: str | None = None,
        payload: Mapping[str, Any] | None = None, note: str = "", idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Another run of one that is over, by its own definition (`same`) or the `current` one; the answer names it."""
        body = given(definition=definition, payload=payload, note=note or None)
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
        body = given(definition=definition, payload=payload, note=note or None)
        return self._write("POST", f"{self._path('dead-letters', run_id, tenant)}:redrive", body, None, idempotency_key)

    def redrive_all(
        self, selector: Mapping[str, Any], *, tenant: str | None = None, definition: str | None = None,
        note: str = "", limit: int | None = None, cursor: str | None = None, idempotency_key: str | None = None,
    ) -> Written:  # fmt: skip
        """Redrive dead letters that a selector names (`schedule`, `labels`, `from`, `to`; {} is all), 50 at most.

        The answer says what was `redriven` and what `refused`; with its `cursor` the next call goes on.
        """
        chosen = {key: instant(value) if isinstance(value, datetime) else value for key, value in selector.items()}
        body = given(selector=chosen, definition=definition, note=note or None, limit=limit, cursor=cursor)
        path = f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/dead-letters:redrive"
        return self._write("POST", path, body, None, idempotency_key)

    # --- breakers ---

    def list_breakers(self, *, tenant: str | None = None, **wanted: Any) -> Page:
        """Breakers that are not closed; `queue`, `state`, `cursor`, `limit` narrow or widen the list."""
        return self._list("breakers", tenant, wanted)

    def reset_breaker(
        self, queue: str, breaker: str | None = None, *, tenant: str | None = None, note: str = "", by: str = ""
    ) -> Written:
        """Close a breaker (`job:send-report`, `host:api.example.com`), or all; the answer lists what was not closed."""
        every = True if breaker is None else None
        body = given(queue=queue, breaker=breaker, all=every, note=note or None, by=by or None)
        return self._write("POST", f"/v1/tenants/{quote(tenant or self.tenant, safe='')}/breakers:reset", body)

    # --- what happens ---

    def changes(self, kind: str, name: str, *, tenant: str | None = None, **wanted: Any) -> Page:
        """The changes of a schedule, queue, tenant, job or calendar (`kind` in the plural), newest first: who, why."""
        owned = kind in ("schedules", "jobs", "calendars")
        path = self._path(kind, name, tenant) if owned else path_of(kind, name)
        body = self._read(f"{path}/changes", wanted)
        return Page(items=tuple(body.get("changes") or ()), cursor=body.get("cursor"), body=body)

    def events(
        self, *, tenant: str | None = None, follow: bool = True, cursor: str | None = None, **wanted: Any
    ) -> Iterator[Event]:
        """What happens, as it happens; without `follow` what stands there now. ALL_TENANTS for those of all.

        `schedule`, `run`, `type` (one or several) narrow it. It begins now, with the `last` so many of each partition,
        or behind the `cursor` of an event; a lost connection is made again there.
        """
        tenant = tenant or self.tenant
        path = "/v1/events" if tenant == ALL_TENANTS else f"/v1/tenants/{quote(tenant, safe='')}/events"
        asked = {name.rstrip("_"): value for name, value in wanted.items() if value not in (None, ())}
        return eventstream.follow(self._http, path, {**asked, "follow": str(follow).lower()}, cursor)


def _said(path: str, note: str, by: str) -> str:
    """Who changes something, and why, goes beside it: the body is the thing itself."""
    said = {name: text for name, text in (("note", note), ("by", by)) if text}
    return f"{path}?{urlencode(said)}" if said else path
