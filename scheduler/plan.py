"""A definition made ready for deciding: trigger, policies and job recipe, compiled once, shared by equal versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

from scheduler import occurrences, templates
from scheduler.instants import SECOND_MS, from_seconds, seconds, text
from schemas import codec, definitions, durations, rates
from schemas.facts import BreakerPolicy, Concurrency, JobSnapshot, RetryPolicy
from schemas.frozen import frozen

PLANS_MAX = 8_192  # distinct versions at hand: some 30 MB; a miss costs a fifth of a millisecond
JOBS_MAX = 4_096  # distinct versions of registered jobs at hand
RULE_CHARACTERS_MAX = 256  # of several expressions: every run and every skip carries them
GRACE_MIN_MS = SECOND_MS  # a decision comes some milliseconds after its instant; below this, nothing is ever on time

Named = occurrences.CronTrigger | occurrences.UnionTrigger | occurrences.EveryTrigger | occurrences.AtTrigger

CATCH_UP_RATE = "10/s"  # of a schedule that says nothing else
DAY_SECONDS = 86_400
BUDGET_PERCENT = 20  # where a definition does not say
NEVER = occurrences.AtTrigger(())  # of a schedule whose runs only follow others
MILLISECOND = timedelta(milliseconds=1)


@frozen
class Version:
    """A version of a schedule as stored."""

    definition: Mapping[str, Any]
    effective_at: datetime
    tz_version: str


@frozen
class Adopted:
    """A job, calendar, queue or tenant as a partition uses it."""

    version: int
    definition: Mapping[str, Any]


@frozen
class JobRecipe:
    """What a run's snapshot of the job is made from. `render` fills a payload that differs from run to run."""

    snapshot: JobSnapshot
    render: templates.Render | None = None


@frozen
class Plan:
    """What a version of a schedule does.

    `drops`: its policies may leave out local readings. `exclusive`: active runs can stand in an occurrence's way.
    `follows`: runs of other schedules lead to runs of this one; its occurrences wait for `intervals`. Without a trigger
    nothing is ever due.
    For deciding only, see `calendars` and `freezes`: `shut` by calendars, `frozen`, `closed` by either; `used`. What is
    `deferred` is due, and held while the windows last.
    """

    trigger: occurrences.Trigger
    zone: occurrences.Zone
    rule: str
    grace_ms: int
    catch_up: str
    window_ms: int
    catch_up_limit: int
    overlap: str
    overlap_limit: int
    labels: Mapping[str, str]
    job_name: str | None
    recipe: JobRecipe | None
    drops: bool
    exclusive: bool
    exclusions: occurrences.Exclusions | None = None
    calendars: tuple[str, ...] = ()
    closed: occurrences.Exclusions | None = None
    shut: occurrences.Exclusions | None = None
    frozen: occurrences.Exclusions | None = None
    deferred: occurrences.Exclusions | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    max_runs: int | None = None
    jitter_ms: int = 0
    key: str = ""
    buffer: int = 1
    failures_max: int | None = None
    after: tuple[definitions.After, ...] = ()
    follows: bool = False
    intervals: tuple[definitions.After, ...] = ()
    pace_ms: int = 100  # between two that are caught up
    after_finish: int | None = None  # so many seconds behind the end of the run before: see `finishing`
    anchor: int = 0  # where the first such interval begins

    @property
    def heeds_outcomes(self) -> bool:
        """Whether how a run ends decides about others, even where none is in another's way."""
        return self.failures_max is not None or self.follows or self.after_finish is not None

    def due_ms(self, nominal: int) -> int:
        """When an occurrence is due: at its nominal instant, or by its jitter later, but before the next one."""
        if not self.jitter_ms:
            return nominal * SECOND_MS
        following = self.trigger.next_after(nominal)
        gap_ms = self.jitter_ms if following is None else (following - nominal) * SECOND_MS
        digest = sha256(f"{self.key}@{nominal}".encode()).digest()
        return nominal * SECOND_MS + int.from_bytes(digest[:8], "big") % min(self.jitter_ms, gap_ms)

    @property
    def out(self) -> occurrences.Exclusions | None:
        """All that takes occurrences out, as far as it is known here."""
        return self.exclusions if self.closed is None else self.closed

    def next_after(self, after: int) -> int | None:
        """The first occurrence after an instant that may have a run."""
        out = self.out
        return self.trigger.next_after(after) if out is None else out.next_left(self.trigger, after)

    def taken(self, nominal: int, until: int) -> occurrences.Taken | None:
        """An occurrence that rules take out, with its excluded neighbours up to `until`; None for one that is left."""
        if self.exclusions is None or self.exclusions.naming(nominal) is None:
            return None
        return self.exclusions.taken(self.trigger, nominal, until)

    def between(self, after: int, until: int) -> Iterator[int]:
        """The occurrences in (after, until] that may have runs."""
        return occurrences.between(self.trigger, after, until) if self.out is None else self._left(after, until)

    def _left(self, after: int, until: int) -> Iterator[int]:
        due = self.next_after(after)
        while due is not None and due <= until:
            yield due
            due = self.next_after(due)

    def count(self, after: int, until: int, limit: int) -> int:
        """How many occurrences in (after, until] may have runs, at most `limit`."""
        out = self.out
        if out is None:
            return occurrences.count_between(self.trigger, after, until, limit)
        return out.count_left(self.trigger, after, until, limit)


@lru_cache(maxsize=PLANS_MAX)
def of_version(row: bytes, hash_key: str) -> Plan:
    """The plan of a stored version. It was checked when it was accepted."""
    version = codec.load(Version, codec.parse(row))
    return of_schedule(definitions.Schedule.model_validate(version.definition), hash_key)


def of_schedule(schedule: definitions.Schedule, hash_key: str, *, anchor: int | None = None) -> Plan:
    """The plan of a definition; `CronError` or `ZoneError` when its trigger cannot be meant."""
    if schedule.trigger is None:
        return _without_trigger(schedule, hash_key)
    trigger = trigger_of(schedule.trigger, hash_key, anchor=anchor)
    return _plan(
        schedule,
        hash_key,
        trigger=trigger,
        zone=occurrences.zone(schedule.trigger.timezone),
        rule=_rule(schedule.trigger, trigger),
        drops=_drops(trigger),
        exclusions=exclusions_of(schedule.trigger, hash_key),
        calendars=tuple(dict.fromkeys((schedule.trigger.exclude.calendars or ()) if schedule.trigger.exclude else ())),
        max_runs=schedule.trigger.max_runs,
        jitter_ms=(schedule.trigger.jitter or timedelta()) // MILLISECOND,
        **_after_finish(schedule.trigger, anchor),
    )


def _without_trigger(schedule: definitions.Schedule, hash_key: str) -> Plan:
    """Nothing is due by itself: runs follow those of other schedules."""
    names = ", ".join(each.schedule for each in schedule.after or ())
    rule = f"after {names}"[:RULE_CHARACTERS_MAX]
    return _plan(schedule, hash_key, trigger=NEVER, zone=occurrences.zone("UTC"), rule=rule, drops=False)


def _plan(schedule: definitions.Schedule, hash_key: str, **of_trigger: Any) -> Plan:
    inline = schedule.job if isinstance(schedule.job, definitions.Job) else None
    after = schedule.after or ()
    return Plan(
        **of_trigger,
        grace_ms=max(GRACE_MIN_MS, schedule.grace // MILLISECOND),
        catch_up=schedule.catch_up.policy,
        window_ms=schedule.catch_up.window // MILLISECOND,
        catch_up_limit=schedule.catch_up.limit,
        pace_ms=pace_ms(schedule.catch_up.rate or CATCH_UP_RATE),
        overlap=schedule.overlap.policy,
        overlap_limit=schedule.overlap.limit,
        labels=schedule.labels,
        job_name=schedule.job if isinstance(schedule.job, str) else None,
        recipe=None if inline is None else recipe(inline),
        exclusive=schedule.overlap.policy != "allow_all",
        key=hash_key,
        buffer=(schedule.overlap.buffer or 1) if schedule.overlap.policy == "buffer_all" else 1,
        failures_max=schedule.pause_on_failure,
        after=after,
        follows=any(each.mode == "run" for each in after),
        intervals=tuple(each for each in after if each.mode == "interval"),
    )


def pace_ms(text_: str) -> int:
    """The time between two, rounded up: never more than the rate says."""
    rate = rates.parse(text_)
    return max(1, -(-(rate.per // MILLISECOND) // rate.count))


def _after_finish(trigger: definitions.Trigger, anchor: int | None) -> dict[str, Any]:
    if trigger.from_ is None or trigger.every is None:
        return {}
    begins = seconds(trigger.anchor) if trigger.anchor is not None else anchor
    return {"after_finish": trigger.every // timedelta(seconds=1), "anchor": begins}


def trigger_of(trigger: definitions.Trigger, hash_key: str, *, anchor: int | None = None) -> occurrences.Trigger:
    """The trigger that a definition's words mean. `anchor` stands in for one that is not given."""
    named = _unbounded(trigger, hash_key, anchor)
    start, end = _seconds(trigger.start_at), _seconds(trigger.end_at)
    if isinstance(named, occurrences.CronTrigger) and isinstance(named.expression, occurrences.Recurrence):
        start, end = _of_rule(named.expression, dtstart(trigger, anchor), start, end)
    return named if start is None and end is None else occurrences.WindowTrigger(named, start, end)


def _of_rule(rule: occurrences.Recurrence, anchor: int, start: int | None, end: int | None) -> tuple[int, int | None]:
    """Bounds that are at least as narrow as those of a rule itself: its DTSTART, and its UNTIL, which still counts."""
    ends = [at for at in (end, None if rule.until is None else rule.until + 1) if at is not None]
    return max(anchor, anchor if start is None else start), min(ends, default=None)


def _seconds(instant: datetime | None) -> int | None:
    return None if instant is None else seconds(instant)


def _unbounded(trigger: definitions.Trigger, hash_key: str, anchor: int | None) -> Named:
    if trigger.every is not None:
        given = anchor if trigger.anchor is None else seconds(trigger.anchor)
        assert given is not None, "an accepted interval has an anchor"
        if trigger.from_ is not None:
            given += trigger.every // timedelta(seconds=1)
        return occurrences.EveryTrigger(trigger.every // timedelta(seconds=1), given)
    if trigger.at is not None:
        return occurrences.AtTrigger(tuple(seconds(instant) for instant in trigger.at))
    if trigger.rrule is not None:
        return rule_of(trigger, anchor)
    assert trigger.cron is not None, "one trigger kind is given"
    if isinstance(trigger.cron, str):
        return cron_of(trigger, trigger.cron, hash_key)
    parts = tuple(cron_of(trigger, text, hash_key) for text in dict.fromkeys(trigger.cron))
    return parts[0] if len(parts) == 1 else occurrences.UnionTrigger(parts)


def cron_of(trigger: definitions.Trigger, text: str, hash_key: str) -> occurrences.CronTrigger:
    """One expression of a trigger on its clocks."""
    expression = occurrences.parse(text, dialect=trigger.dialect, day_rule=trigger.day_rule, hash_key=hash_key)
    zone = occurrences.zone(trigger.timezone)
    return occurrences.CronTrigger(expression, zone, trigger.gap_policy, trigger.fold_policy)


def rule_of(trigger: definitions.Trigger, anchor: int | None) -> occurrences.CronTrigger:
    """The recurrence rule of a trigger on its clocks, not yet bounded by instants."""
    assert trigger.rrule is not None, "asked for a rule only"
    zone = occurrences.zone(trigger.timezone)
    first = dtstart(trigger, anchor)
    rule = occurrences.parse_rule(trigger.rrule, first + zone.offset(first))
    return occurrences.CronTrigger(rule, zone, trigger.gap_policy, trigger.fold_policy)


def dtstart(trigger: definitions.Trigger, accepted: int | None) -> int:
    """The instant that a rule counts from: its anchor, or the midnight before its first acceptance.

    Not the acceptance itself: a rule takes minute and second from there, and nobody means those.
    """
    if trigger.anchor is not None:
        return seconds(trigger.anchor)
    assert accepted is not None, "an accepted rule has an anchor"
    zone = occurrences.zone(trigger.timezone)
    reading = accepted + zone.offset(accepted)
    midnight = reading - reading % DAY_SECONDS
    return (zone.instants(midnight) or zone.instants(midnight - DAY_SECONDS))[0]


def exclusions_of(trigger: definitions.Trigger, hash_key: str) -> occurrences.Exclusions | None:
    """What a trigger's words take out again; None when they take out nothing."""
    given = trigger.exclude
    if given is None or not (given.dates or given.cron):
        return None
    dates = (occurrences.Exclusion.of_dates(given.dates),) if given.dates else ()
    crons = (excluded_cron(trigger, text, hash_key) for text in dict.fromkeys(given.cron))
    return occurrences.Exclusions(occurrences.zone(trigger.timezone), (*dates, *crons))


def excluded_cron(trigger: definitions.Trigger, text: str, hash_key: str) -> occurrences.Exclusion:
    """One expression that takes out."""
    expression = occurrences.parse(text, dialect=trigger.dialect, day_rule=trigger.day_rule, hash_key=hash_key)
    return occurrences.Exclusion.of_cron(expression)


def recipe(job: definitions.Job, *, name: str | None = None, version: int | None = None) -> JobRecipe:
    """What runs of a job carry."""
    document = definitions.normal_form(job)
    retry = RetryPolicy(
        max_attempts=job.retry.max_attempts, initial=job.retry.initial, factor=job.retry.factor, max=job.retry.max,
        jitter=job.retry.jitter, never_on=job.retry.never_on,
        budget_percent=BUDGET_PERCENT if job.retry.budget is None else int(job.retry.budget.rstrip("%")),
    )  # fmt: skip
    limited = job.concurrency
    snapshot = JobSnapshot(
        queue=job.queue, target=document["target"], payload=job.payload, priority=job.priority, timeout=job.timeout,
        deadline=job.deadline, lease=job.lease, retry=retry, name=name, version=version,
        log_retention=job.log_retention, start_within=job.start_within,
        concurrency=None if limited is None else Concurrency(key=limited.key, limit=limited.limit),
        breaker=None if job.breaker is None else breaker_of(job.breaker),
    )  # fmt: skip
    return JobRecipe(snapshot=snapshot, render=templates.compiled(job.payload))


def breaker_of(given: definitions.Breaker) -> BreakerPolicy:
    """When a job's breaker opens."""
    return BreakerPolicy(
        failures=given.failures, percent=int(given.share.rstrip("%")), window=given.window, wait=given.wait,
        probes=given.probes,
    )  # fmt: skip


@lru_cache(maxsize=JOBS_MAX)
def adopted_recipe(row: bytes, name: str) -> JobRecipe:
    """The recipe of a registered job as adopted."""
    adopted = codec.load(Adopted, codec.parse(row))
    return recipe(definitions.Job.model_validate(adopted.definition), name=name, version=adopted.version)


def with_payload(snapshot: JobSnapshot, payload: Mapping[str, Any]) -> JobSnapshot:
    """The job with another payload."""
    return replace(snapshot, payload=payload)


def _drops(trigger: occurrences.Trigger) -> bool:
    """Whether a policy can ever leave something out: only for fixed times, on clocks that are moved."""
    return any(part.expression.fixed_time and len(part.zone.near.segments) > 1 for part in occurrences.clocks(trigger))


def _rule(words: definitions.Trigger, trigger: occurrences.Trigger) -> str:
    """The trigger as every decision quotes it: short, and enough to see why then."""
    match trigger:
        case occurrences.WindowTrigger(trigger=named):
            return _rule(words, named)
        case occurrences.CronTrigger(expression=expression, zone=zone):
            return f"{'cron' if words.rrule is None else 'rrule'} {expression} {zone.name}"
        case occurrences.UnionTrigger(parts=parts):
            return f"cron {_quoted([str(part.expression) for part in parts])} {parts[0].zone.name}"
        case occurrences.EveryTrigger() if words.from_ is not None:
            return f"every {durations.render(words.every or timedelta())} from finish"
        case occurrences.EveryTrigger(anchor=anchor):
            return f"every {durations.render(words.every or timedelta())} from {text(from_seconds(anchor))}"
        case _:
            return "at"


def _quoted(expressions: list[str]) -> str:
    shown = " | ".join(expressions)
    return shown if len(shown) <= RULE_CHARACTERS_MAX else f"{expressions[0]} and {len(expressions) - 1} more"
