"""Callers of the API who ask for what only some situations know: changing jobs, other tenants' runs, single skips."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from simulation.cluster.client import ApiNode, Caller
from simulation.cluster.hour import schedule
from simulation.cluster.moments import LastMinute
from simulation.cluster.redoing import Redoer
from simulation.cluster.situations import GIVING_UP, RENEWED
from simulation.cluster.worker import QUEUE, SHARDS
from simulation.evidence import marker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulation.cluster.client import Asking
    from simulation.cluster.site import Site

SECONDS_OF_AN_HOUR = 3600.0
CHANGING = ("initech", "changing")
NAMESAKES = ("acme", "globex", "initech")  # each has a `minutely`
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.5
PAUSE_SECONDS = (1.0, 60.0)  # in which a job is gone


class JobKeeper(Caller):
    """Changes a job again and again. Two of them do not know of each other: versions are theirs to compare."""

    def __init__(self, site: Site, node: ApiNode, name: str) -> None:
        super().__init__(site, node, name)
        self._version: int | None = None  # as far as it knows
        self._edition = 0

    def live(self) -> None:
        """As often as the situation says, half of it each."""
        rate = self._site.options.rate("jobs") / 2
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(rate / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._change()

    def _change(self) -> None:
        self._site.story.fault("jobs", self.name, "changes a job")
        match self.chance.choices(("put", "stale", "blind", "delete", "schedule", "new"), (4, 2, 2, 2, 3, 3))[0]:
            case "put":
                self._put(self._expecting(0))
            case "stale":
                self._put(self._expecting(self.chance.randint(1, 2)))
            case "blind":
                self._put({})
            case "delete":
                self._note(self.call("job.delete", self._subject() | self._expecting(0)))
                self._site.loop.sleep(self.chance.uniform(*PAUSE_SECONDS))
                self._put({})
            case "schedule":
                self._put_both()
            case "new":
                self._put_new()

    def _put(self, more: Mapping[str, Any]) -> Asking | None:
        self._edition += 1
        asking = self.call("job.put", self._agenda.job(*CHANGING, self._edition) | dict(more))
        self._note(asking)
        return asking

    def _put_both(self) -> None:
        """A schedule that names a job, this one or another, as the catalog has it from now on."""
        asking = self._put({})
        definition = self._agenda.edited("initech", "changing-one", self._edition)
        definition["definition"] = definition["definition"] | {
            "job": self.chance.choice(("changing", "report", "none"))
        }
        after = {"after_catalog": asking.position} if asking is not None and asking.position else {}
        self.call("schedule.put", definition | after)

    def _put_new(self) -> None:
        """A job that nobody has heard of, and a schedule of it, mostly another owner's, due three times in a minute."""
        self._edition += 1
        tenant, name = CHANGING[0], f"{self.name}-{self._edition}"
        job = self._agenda.job(*CHANGING) | {"name": name}
        asking = self.call("job.put", job)
        if asking is None or not asking.position:
            return
        due = [f"{self._site.now() + timedelta(seconds=each):%Y-%m-%dT%H:%M:%SZ}" for each in (10, 25, 60)]
        definition = schedule(tenant, {"at": due}, 0, overlap={"policy": "allow_all"}) | {"job": name}
        put = {"tenant": tenant, "name": f"{name}-at", "definition": definition, "after_catalog": asking.position}
        self.call("schedule.put", put)

    def _expecting(self, behind: int) -> dict[str, Any]:
        return {} if self._version is None else {"expected_version": max(0, self._version - behind)}

    def _note(self, asking: Asking | None) -> None:
        if asking is not None and "version" in asking.body:
            self._version = int(asking.body["version"])

    def _subject(self) -> dict[str, Any]:
        return {"tenant": CHANGING[0], "name": CHANGING[1]}


class Namesake(Caller):
    """Asks in one tenant for what another one has under the same name."""

    def live(self) -> None:
        """As often as the situation says."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("namesakes") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._ask()

    def _ask(self) -> None:
        mine, other = ({"tenant": tenant, "name": "minutely"} for tenant in self.chance.sample(NAMESAKES, 2))
        self._site.story.fault("namesakes", self.name, f"asks as {mine['tenant']}, where {other['tenant']} has as much")
        match self.chance.choice(("cancel", "trigger", "pause")):
            case "cancel":
                self.call("run.cancel", mine | {"run_id": f"minutely.{self._full_minute()}"})
            case "trigger":
                asking = self.call("schedule.trigger", other)
                run_id = "" if asking is None else str(asking.body.get("run_id", ""))
                if run_id:
                    self.call("run.cancel", mine | {"run_id": run_id})
            case "pause":
                self.call("schedule.pause", mine)
                self._site.loop.sleep(self.chance.uniform(5, 100))
                self.call("schedule.resume", mine)

    def _full_minute(self) -> str:
        minute = self._site.now().replace(second=0, microsecond=0) - timedelta(minutes=self.chance.randint(0, 2))
        return f"{minute:%Y%m%dT%H%M%SZ}"


class Canceller(Caller):
    """Triggers runs that fail, and cancels them when that is least convenient."""

    def live(self) -> None:
        """As often as the situation says."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("cancels") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._ask()

    def _ask(self) -> None:
        subject = {"tenant": "globex", "name": self.chance.choice(("retried", "doomed"))}
        stubborn = self.chance.choice((True, False))  # goes on when it is asked to stop, and fails all the same
        payload = {"seconds": 10, "fails": "always", "stubborn": stubborn, "marker": marker("globex")}
        asking = self.call("schedule.trigger", subject | {"payload": payload})
        run_id = "" if asking is None else str(asking.body.get("run_id", ""))
        when = self.chance.choice(("runs", "has failed"))
        if run_id and self._until(run_id, has_ended=when == "has failed"):
            self._site.story.fault("cancels", self.name, f"{run_id} is cancelled when it {when}")
            self._site.loop.sleep(self.chance.choice((0.0, 0.1, 0.5, 1.0)))
            self.call("run.cancel", subject | {"run_id": run_id})

    def _until(self, run_id: str, *, has_ended: bool) -> bool:
        """Wait until user code runs, or has ended; not for ever."""
        until = self._site.loop.seconds + PATIENCE_SECONDS
        while self._site.loop.seconds < until:
            for each in reversed(self._site.ledger.executions):
                if each.run_id == run_id and (bool(each.outcome) or not has_ended):
                    return True
            self._site.loop.sleep(LOOK_SECONDS)
        return False


class Skipper(Caller):
    """Skips single occurrences to come, and asks for some that are none or were due already."""

    def live(self) -> None:
        """As often as the situation says."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("skips") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._skip()

    def _skip(self) -> None:
        tenant, name = self.chance.choice(self._agenda.subjects)
        full = self._site.now().replace(second=0, microsecond=0) + timedelta(minutes=self.chance.randint(-1, 6))
        nominal = f"{full:%Y-%m-%dT%H:%M:%SZ}"
        self._site.story.fault("skips", self.name, f"skips {nominal} of {tenant}/{name}")
        wish = {"tenant": tenant, "name": name, "nominal_time": nominal}
        self.call("schedule.skip_occurrence", wish)
        if self.chance.randrange(4) == 0:
            self.call("schedule.skip_occurrence", wish)


class Backfiller(Caller):
    """Runs the past minutes of a schedule again and again, and pauses, resumes or cancels that on the way."""

    def live(self) -> None:
        """As often as the situation says."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("backfills") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._backfill()

    def _backfill(self) -> None:
        tenant, name = self.chance.choice(self._agenda.subjects)
        ends = self._site.now().replace(microsecond=0) - timedelta(seconds=self.chance.randint(0, 120))
        begins = ends - timedelta(minutes=self.chance.randint(1, 8))
        how = {
            "from": f"{begins:%Y-%m-%dT%H:%M:%SZ}", "to": f"{ends:%Y-%m-%dT%H:%M:%SZ}",
            "order": self.chance.choice(("oldest", "newest")), "max_active": self.chance.randint(1, 3),
            "reprocess": self.chance.choice(("none", "failed", "completed")), "rate": "10/s",
        }  # fmt: skip
        subject = {"tenant": tenant, "name": name}
        self._site.story.fault("backfills", self.name, f"runs {how['from']} to {how['to']} of {tenant}/{name}")
        asking = self.call("backfill.start", subject | how)
        backfill = {} if asking is None else {"backfill": str(asking.body.get("backfill", ""))}
        if not backfill.get("backfill"):
            return
        for verb in self.chance.choice(((), ("cancel",), ("pause", "resume"), ("pause", "cancel"))):
            self._site.loop.sleep(self.chance.uniform(0, 30))
            self.call(f"backfill.{verb}", subject | backfill)


class Renewer(Caller):
    """Edits what has five runs at a time, mostly while some of them wait for a slot."""

    def live(self) -> None:
        """As often as the situation says."""
        edition = 0
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("updates") / SECONDS_OF_AN_HOUR))
            self._site.loop.sleep(self._to_a_fourth_minute() + self.chance.uniform(0, 40))
            if self._site.under_faults:
                edition += 1
                self._site.story.fault("updates", self.name, f"edits {RENEWED[1]}")
                self.call("schedule.put", self._agenda.edited(*RENEWED, edition))

    def _to_a_fourth_minute(self) -> float:
        now = self._site.now()
        return (-(now.minute * 60 + now.second)) % 240


class LimitKeeper(Caller):
    """Gives tenants and their queue limits, and takes them away again; at last there are none."""

    def __init__(self, site: Site, node: ApiNode, name: str) -> None:
        super().__init__(site, node, name)
        self._limited: set[tuple[str, str]] = set()

    def live(self) -> None:
        """As often as the situation says; without a limit nothing is left to wait for when faults are over."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("limits") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._change()
        for subject in sorted(self._limited):
            while not self._put(subject, {}):
                self._site.loop.sleep(LOOK_SECONDS)

    def _change(self) -> None:
        subject = self.chance.choice((*((tenant, "_") for tenant in NAMESAKES), ("_", QUEUE)))
        definition = self._of_tenant() if subject[1] == "_" else self._of_queue()
        self._limited.add(subject)
        self._site.story.fault("limits", self.name, f"{'/'.join(subject)} has {definition}")
        self._put(subject, definition)
        if self.chance.choice((True, False)):
            self._site.loop.sleep(self.chance.uniform(5, 100))
            self._put(subject, {})

    def _of_tenant(self) -> dict[str, Any]:
        all_limits: tuple[dict[str, Any], ...] = (
            {"running": 1}, {"running": 2}, {"running": 3}, {"queued": 1}, {"queued": 3}, {"rate": "12/m"},
            {"rate": "1/s"}, {"rate": "40/s"}, {"paused": {"note": "a tenant is drained"}},
        )  # fmt: skip
        one, other = self.chance.sample(all_limits, 2)
        return {"quota": {"queues": {self.chance.choice((QUEUE, "*")): one | other}}}

    def _of_queue(self) -> dict[str, Any]:
        all_limits: tuple[dict[str, Any], ...] = (
            {"weights": {"acme": 5}}, {"weights": {"acme": 3, "globex": 2}}, {"rate": "30/m"}, {"rate": "2/s"},
            {"rate": "60/s"}, {"paused": {"note": "the queue is moved"}},
        )  # fmt: skip
        one, other = self.chance.sample(all_limits, 2)
        return one | other

    def _put(self, subject: tuple[str, str], definition: dict[str, Any]) -> bool:
        kind = "tenant.put" if subject[1] == "_" else "queue.put"
        whole = {**definition, "freezes": self._site.freezes.get(subject, [])}  # which stand in the same definition
        if subject[1] == QUEUE and self._site.shards > 1:
            whole["shards"] = self._site.shards
        asking = self.call(kind, {"tenant": subject[0], "name": subject[1], "definition": whole})
        return asking is not None and asking.status is not None and asking.status < HTTPStatus.MULTIPLE_CHOICES


class ShardKeeper(Caller):
    """Splits the queue, and gives it another number of shards while runs are under way; limits are put by others."""

    def live(self) -> None:
        """At once, and then as often as the situation says."""
        while self._site.under_faults:
            self._site.shards = self.chance.choice(
                [number for number in range(1, SHARDS + 1) if number != self._site.shards]
            )
            self._site.story.fault("shards", self.name, f"the queue has {self._site.shards}")
            definition = {"shards": self._site.shards, "freezes": self._site.freezes.get(("_", QUEUE), [])}
            self.call("queue.put", {"tenant": "_", "name": QUEUE, "definition": definition})
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("shards") / SECONDS_OF_AN_HOUR))


class Resumer(Caller):
    """Resumes what pauses itself after failures, a while later."""

    def live(self) -> None:
        """About every minute."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.uniform(20, 90))
            if self._site.under_faults:
                tenant, name = self.chance.choice(GIVING_UP)
                self.call("schedule.resume", {"tenant": tenant, "name": name})


def askers(site: Site, node: ApiNode) -> list[Caller]:
    """Those whom the situations of a seed bring along."""
    found: list[Caller] = []
    if site.options.has("jobs"):
        found += (JobKeeper(site, node, f"keeper-{number}") for number in range(2))
    if site.options.has("cancels"):
        found.append(Canceller(site, node, "canceller"))
    if site.options.has("namesakes"):
        found.append(Namesake(site, node, "namesake"))
    if site.options.has("skips"):
        found.append(Skipper(site, node, "skipper"))
    if site.options.has("limits"):
        found.append(LimitKeeper(site, node, "limit-keeper"))
    if site.options.has("shards"):
        found.append(ShardKeeper(site, node, "shard-keeper"))
    if site.options.has("again"):
        found.append(Redoer(site, node, "redoer"))
    if site.options.has("rests"):
        found.append(Resumer(site, node, "resumer"))
    if site.options.has("backfills"):
        found.append(Backfiller(site, node, "backfiller"))
    if site.options.has("moments"):
        found += (LastMinute(site, node, f"last-minute-{number}") for number in range(2))
    if site.options.has("updates"):
        found.append(Renewer(site, node, "renewer"))
    return found
