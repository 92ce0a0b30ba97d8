"""The web page: the same read model, for people. It works without JavaScript, and shows everything as text.

Nothing can be changed here, so there is nothing to forge; templates escape all they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict

from api import changes, moments, problems, queues, requests, views
from api.backlog import held
from api.changes import CALENDAR, JOB, QUEUE, TENANT, Meant
from api.explain import coming, decided
from api.fleet import WorkerQuery, page_of
from api.problems import Problem, not_found
from api.runlogs import LogQuery, log_filter
from api.runs import PageQuery, PartQuery, RunQuery, in_full, run_filter
from api.schedules import outlook
from projections.store import history
from projections.store.reader import ALL, OPEN_STATES, WORKER_STATES, RunFilter, Scope, Span
from schemas import identity
from schemas.commands import EVERYONE
from schemas.facts import Outcome
from schemas.faults import Refused

if TYPE_CHECKING:
    from fastapi import FastAPI

    from api.reading import Reads
    from api.services import ApiServices

HERE = Path(__file__).parent
RECENT = timedelta(hours=24)
ROWS = 50
TROUBLES = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.DEAD_LETTERED, Outcome.EXPIRED)
COMING_SHOWN = 10
LOG_LINES = 200  # of an attempt: the end, where it says what went wrong; all of it is the API's to tell
LOG_ATTEMPTS = 5
SCHEDULES_LOOKED_AT = 200  # for what comes next: beyond that the list of schedules says more
RUN_TABS = ("", "open", "queued", "running", "retry_wait", "succeeded", *(each.value for each in TROUBLES), "cancelled")
SCHEDULE_TABS = ("", "active", "paused", "deleted")
VALUE_CHARACTERS = 300  # of what a field was and is: whoever changes more opens the whole definition


class ScheduleQuery(PageQuery):
    """Which schedules."""

    tenant: str | None = None
    state: str | None = None


class RunsQuery(RunQuery):
    """Which runs."""

    tenant: str | None = None


class StoryQuery(BaseModel):
    """Which part of a run's attempts and of its events."""

    model_config = ConfigDict(extra="forbid")

    attempts: str | None = None
    events: str | None = None


class PageRoutes:
    """`/`, `/schedules…`, `/runs…`, `/workers`, `/…/changes`, `/static/…`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= {
            "utc": moments.utc, "local": moments.local, "distance": moments.distance, "span": moments.span,
            "pretty": _pretty, "words": lambda text: str(text).replace("_", " "), "instant": _instant,
            "told": _told,
        }  # fmt: skip

    def mount(self, app: FastAPI) -> None:
        """Put the page into an application; it is no part of the API's document."""
        router = APIRouter(include_in_schema=False)
        add = router.add_api_route
        add("/", self.overview, methods=["GET"])
        add("/schedules", self.schedules, methods=["GET"])
        add("/schedules/{tenant}/{name}", self.schedule, methods=["GET"])
        add("/schedules/{tenant}/{name}/changes", self.changes_of_schedule, methods=["GET"])
        add("/jobs/{tenant}/{name}/changes", self.changes_of_job, methods=["GET"])
        add("/calendars/{tenant}/{name}/changes", self.changes_of_calendar, methods=["GET"])
        add("/queues/{queue}/changes", self.changes_of_queue, methods=["GET"])
        add("/tenants/{tenant}/changes", self.changes_of_tenant, methods=["GET"])
        add("/runs", self.runs, methods=["GET"])
        add("/runs/{tenant}/{run_id}", self.run, methods=["GET"])
        add("/workers", self.workers, methods=["GET"])
        app.include_router(router)
        app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    # --- pages ----------------------------------------------------------------------------------------------------

    async def overview(self, request: Request) -> Response:
        return await self._answer(request, self._overview)

    async def schedules(self, request: Request, wanted: Annotated[ScheduleQuery, Query()]) -> Response:
        return await self._answer(request, self._schedules, wanted)

    async def schedule(self, request: Request, tenant: str, name: str) -> Response:
        return await self._answer(request, self._schedule, tenant, name)

    async def runs(self, request: Request, wanted: Annotated[RunsQuery, Query()]) -> Response:
        return await self._answer(request, self._runs, wanted)

    async def run(self, request: Request, tenant: str, run_id: str, wanted: Annotated[StoryQuery, Query()]) -> Response:
        return await self._answer(request, self._run, tenant, run_id, wanted)

    async def workers(self, request: Request, wanted: Annotated[WorkerQuery, Query()]) -> Response:
        return await self._answer(request, self._workers, wanted)

    async def changes_of_schedule(
        self, request: Request, tenant: str, name: str, wanted: Annotated[PageQuery, Query()]
    ) -> Response:
        return await self._answer(request, self._changes_of_schedule, tenant, name, wanted)

    async def changes_of_job(
        self, request: Request, tenant: str, name: str, wanted: Annotated[PageQuery, Query()]
    ) -> Response:
        return await self._answer(request, self._changes, JOB, tenant, name, wanted)

    async def changes_of_calendar(
        self, request: Request, tenant: str, name: str, wanted: Annotated[PageQuery, Query()]
    ) -> Response:
        return await self._answer(request, self._changes, CALENDAR, tenant, name, wanted)

    async def changes_of_queue(self, request: Request, queue: str, wanted: Annotated[PageQuery, Query()]) -> Response:
        return await self._answer(request, self._changes, QUEUE, EVERYONE, queue, wanted)

    async def changes_of_tenant(self, request: Request, tenant: str, wanted: Annotated[PageQuery, Query()]) -> Response:
        return await self._answer(request, self._changes, TENANT, tenant, EVERYONE, wanted)

    async def _answer(self, request: Request, page: Callable[..., str], *args: Any) -> Response:
        """A page, or what is wrong as a page too."""
        status = 200
        try:
            html = (await self._reads.ask(request, page, *args)).value
        except Refused as error:
            problem = problems.refused(error.faults)
            status, html = problem.status, await self._reads.off_loop(self._render, "problem", problem=problem)
        except Problem as problem:
            status, html = problem.status, await self._reads.off_loop(self._render, "problem", problem=problem)
        return Response(html, status, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")

    # --- what they show; in a thread ------------------------------------------------------------------------------

    def _overview(self) -> str:
        now = self._services.now()
        counts = self._services.reader.counts(ALL, now - RECENT)
        wanted = RunFilter(states=tuple(each.value for each in TROUBLES), from_=now - RECENT)
        troubles = [views.run(row) for row in self._services.reader.runs(ALL, wanted, limit=COMING_SHOWN).rows]
        page = self._services.reader.schedules(ALL, limit=SCHEDULES_LOOKED_AT)
        shown = [self._view(row) for row in page.rows]
        soon = sorted((each for each in shown if "next_run_at" in each), key=lambda each: each["next_run_at"])
        return self._render(
            "overview", open_states=OPEN_STATES, outcomes=[each.value for each in Outcome], counts=counts,
            troubles=troubles, zones=self._zones(troubles), coming=soon[:COMING_SHOWN], schedules=len(shown),
            more_schedules=page.cursor is not None, unready=self._services.unready(),
        )  # fmt: skip

    def _schedules(self, wanted: ScheduleQuery) -> str:
        page = self._services.reader.schedules(
            Scope(tenant=wanted.tenant), state=wanted.state or None, cursor=wanted.cursor, limit=ROWS
        )
        tabs = [(each, _link("/schedules", tenant=wanted.tenant, state=each)) for each in SCHEDULE_TABS]
        more = _link("/schedules", tenant=wanted.tenant, state=wanted.state, cursor=page.cursor)
        return self._render(
            "schedules", schedules=[self._view(row) for row in page.rows], tabs=tabs, state=wanted.state or "",
            tenant=wanted.tenant, more=more if page.cursor else None, later=wanted.cursor is not None,
        )  # fmt: skip

    def _schedule(self, tenant: str, name: str) -> str:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        row = self._services.reader.schedule(scope, requests.name(name, "schedule"))
        if row is None:
            raise not_found(f"schedule {tenant}/{name}")
        now = self._services.now()
        span = Span(from_=now - RECENT, to=now, limit=ROWS, newest=True)
        past = decided(self._services, scope, name, span)
        ahead = coming(self._services, row, now, now + RECENT, COMING_SHOWN + 1)
        runs = self._services.reader.runs(scope, RunFilter(schedule=name), limit=COMING_SHOWN)
        story = history.story(self._services.reader, scope, name, newest=True, limit=COMING_SHOWN)
        backfills = self._services.reader.backfills(scope, schedule=name, limit=COMING_SHOWN)
        dependants = views.dependants(self._services.reader.schedules(scope, after=name).rows, name)
        return self._render(
            "schedule", schedule=self._view(row), held=held(self._services, row), decided=past,
            truncated=len(past) >= ROWS, ahead=ahead[:COMING_SHOWN],
            more_ahead=len(ahead) > COMING_SHOWN, runs=[views.run(each) for each in runs.rows],
            events=[views.event(each) for each in story.rows], refers=self._refers(scope, row["definition"] or {}),
            backfills=[views.backfill(each) for each in backfills.rows], dependants=dependants,
        )  # fmt: skip

    def _refers(self, scope: Scope, definition: Mapping[str, Any]) -> Mapping[str, Any]:
        """The calendars and the registered job that a schedule names, and its runs' queue, as far as it is known."""
        job, excluded = definition.get("job"), (definition.get("trigger") or {}).get("exclude") or {}
        named = {"calendars": excluded.get("calendars") or ()} | ({JOB: job} if isinstance(job, str) else {})
        if isinstance(job, str):
            entry = self._services.reader.entry(scope, JOB, job)
            job = None if entry is None else entry["definition"]
        return named | ({QUEUE: job.get("queue", "default")} if isinstance(job, dict) else {})

    def _changes_of_schedule(self, tenant: str, name: str, wanted: PageQuery) -> str:
        requests.name(tenant, "tenant")
        requests.name(name, "schedule")
        found = changes.of_schedule(self._services.reader, tenant, name, wanted.cursor, ROWS)
        if found is None:
            raise not_found(f"schedule {tenant}/{name}")
        link = f"/schedules/{quote(tenant)}/{quote(name)}"
        return self._render_changes(found, "schedule", link, tenant, name, wanted)

    def _changes(self, kind: str, tenant: str, name: str, wanted: PageQuery) -> str:
        meant = Meant(kind=kind, tenant=tenant, name=name)
        for text in {tenant, name} - {EVERYONE}:
            requests.name(text, kind)
        found = changes.of_reference(self._services.reader, meant, wanted.cursor, ROWS)
        if found is None and kind in changes.OWNED:
            raise not_found(f"{kind} {meant.shown}")
        owner = tenant if kind in changes.OWNED else None
        return self._render_changes(found, kind, "", owner, tenant if kind == TENANT else name, wanted)

    def _render_changes(
        self, found: changes.Changes | None, kind: str, link: str, tenant: str | None, name: str, wanted: PageQuery
    ) -> str:  # fmt: skip
        rows = [] if found is None else [
            (change, [(each, _part(was, each), _part(change["definition"], each)) for each in change.get("fields", ())])
            for change, was in zip(found.shown, found.before, strict=True)
        ]  # fmt: skip
        cursor = None if found is None else found.cursor
        return self._render(
            "changes", changes=rows, kind=kind, tenant=tenant, thing=name, link=link, declared=found is not None,
            more=_link("", cursor=cursor) if cursor else None, later=wanted.cursor is not None,
        )  # fmt: skip

    def _runs(self, wanted: RunsQuery) -> str:
        page = self._services.reader.runs(
            Scope(tenant=wanted.tenant), run_filter(wanted), cursor=wanted.cursor, limit=ROWS
        )  # fmt: skip
        runs = [views.run(row) for row in page.rows]
        kept = {"tenant": wanted.tenant, "schedule": wanted.schedule}
        state = ",".join(wanted.state)
        more = _link("/runs", **kept, state=state, cursor=page.cursor)
        return self._render(
            "runs", runs=runs, zones=self._zones(runs), state=state, later=wanted.cursor is not None,
            tabs=[(each, _link("/runs", **kept, state=each)) for each in RUN_TABS], more=more if page.cursor else None,
            tenant=wanted.tenant, schedule=wanted.schedule,
        )  # fmt: skip

    def _run(self, tenant: str, run_id: str, wanted: StoryQuery) -> str:
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        attempts, events = (PartQuery(newest=True, cursor=at, limit=ROWS) for at in (wanted.attempts, wanted.events))
        run = in_full(self._services, scope, run_id, attempts, events)
        if run is None:
            raise not_found(f"run {run_id} of {tenant}")
        run |= {name: run[name][::-1] for name in ("attempts", "events")}  # read as a story
        zone = self._zones([run]).get((tenant, run["schedule"]))
        earlier = {
            name: f"{_link('', **{**wanted.model_dump(), name: run[f'{name}_cursor']})}#{name}"
            for name in ("attempts", "events") if f"{name}_cursor" in run
        }  # fmt: skip
        return self._render(
            "run", run=run, zone=zone, logs=self._logs(scope, run), log_lines=LOG_LINES, earlier=earlier,
            later=bool(wanted.attempts or wanted.events),
        )  # fmt: skip

    def _logs(self, scope: Scope, run: views.Json) -> Sequence[tuple[int, Sequence[views.Row]]]:
        """The last lines of its last attempts, by attempt."""
        numbers = sorted({attempt["attempt"] for attempt in run["attempts"]})[-LOG_ATTEMPTS:]
        reader, run_id = self._services.reader, run["run_id"]
        found = []
        for number in numbers:
            wanted = log_filter(self._services, LogQuery(attempt=number, newest=True))
            found.append((number, reader.log(scope, run_id, wanted, cursor=None, limit=LOG_LINES).lines))
        return [(number, lines) for number, lines in found if lines]

    def _workers(self, wanted: WorkerQuery) -> str:
        workers, cursor = page_of(self._services.reader, ALL, wanted, self._services.now(), ROWS)
        kept = {"queue": wanted.queue, "worker": wanted.worker}
        of_queue = wanted.queue is not None and identity.is_name(wanted.queue)
        waits = queues.backlog(self._services.reader, wanted.queue or "") if of_queue else None
        more = _link("/workers", **kept, state=wanted.state, cursor=cursor)
        return self._render(
            "workers", workers=workers, state=wanted.state or "", queue=wanted.queue, later=wanted.cursor is not None,
            backlog=waits,
            tabs=[(each, _link("/workers", **kept, state=each)) for each in ("", *WORKER_STATES)],
            more=more if cursor else None,
        )  # fmt: skip

    def _view(self, row: views.Row) -> views.Json:
        return views.schedule(row, outlook(self._services, row))

    def _zones(self, runs: Sequence[views.Row]) -> Mapping[tuple[str, str], str]:
        return self._services.reader.timezones({(run["tenant"], run["schedule"]) for run in runs})

    def _render(self, name: str, **context: Any) -> str:
        return self._templates.get_template(f"{name}.html").render(
            now=self._services.now(), as_of=self._services.progress.as_of, **context
        )


def _pretty(value: Any) -> str:
    """JSON for reading."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode()


def _part(document: Any, pointer: str) -> str | None:
    """What stands at a place of a definition, in short; None where nothing does."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(document, dict) or name not in document:
            return None
        document = document[name]
    text = orjson.dumps(document, option=orjson.OPT_UTC_Z).decode()
    return text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…"


def _told(event: views.Json) -> str:
    """What an event adds to its name, in a line."""
    data = event["data"]
    error = data.get("error") or {}
    said = (
        f"attempt {data['attempt']}" if "attempt" in data else "",
        f"on {data['worker']}" if "worker" in data else "",
        str(data.get("outcome") or data.get("reason") or data.get("reported") or "").replace("_", " "),
        f"not before {moments.utc(_instant(data['retry_at']))}" if "retry_at" in data else "",
        f"{error.get('type')}: {error.get('message', '')}" if error else "",
        f"by {data['by']}" if data.get("by") else "",
        str(data.get("note") or ""),
    )
    return ", ".join(part for part in said if part)[:500]


def _instant(value: Any) -> Any:
    """An instant out of an event, where it is still text."""
    return datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else value


def _link(path: str, **query: str | None) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
