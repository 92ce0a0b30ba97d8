"""What a seed's cluster is asked to do beside the ordinary hour: the schedules and jobs that make its situations.

    jobs        three schedules of two jobs that change while their runs are under way
    owed        catch_up all where runs may not overlap; the windows and limits are about as long as the outages
    saturated   runs that are of no use to anybody a minute later
    long        runs of ten to twenty minutes under leases of ten seconds
    overtime    attempts that end about at their timeout, before and behind it
    namesakes   two tenants more have a `minutely`, one of them a job `report`
    cadence     every second of some minutes, beside once a day; retries in equal steps
    bounds      several expressions, jitter, exclusions, a beginning, an end, and so many runs as an edition says;
                a day on which nothing is due before an edition says otherwise
    overlaps    the policies by which what overlaps makes room, is ended, or waits in a row
    rules       recurrence rules in steps of minutes and hours, and of times of day
    follows     a schedule that follows a quick one, one run at a time, and one that follows three that fare ill;
                one whose occurrences wait for what is quick, and for a while for what is skipped in half of all cases
    rests       two schedules that pause themselves after so many failures, of which every second run is one, and one
                whose interval begins when its run ends
    targets     endpoints that are busy, refuse, break down or answer 202, and a command that fails in two ways
    paced       a backlog that comes by rates, beside what is due now, also where runs exclude each other
    again       a schedule that leaves a dead letter each minute
    updates     five runs at a time for fewer slots, and editions that cancel those of the one before
    calendars   two tenants' schedules of every minute, less what a calendar of the same name says
    freezes     nothing more: tenants and the queue have windows in which what is due is held, or skipped
    moments     nothing more: what is due each minute is changed close to its instants
    shards      nothing more: the queue is split, and runs that a key holds apart stand in one part of it
    floods      nothing more: a schedule is triggered and put as it is, a hundred times at once
    zones       daily schedules at instants that local clocks skip or show twice, in the middle of the hour

Each adds at most three schedules and some hundred runs to an hour; some take the place of an ordinary one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from schemas.topics import Retention
from simulation.cluster import targets
from simulation.cluster.hour import JOB, JOB_DEFINITION, NOON, Definition, each, schedule
from simulation.evidence import marker

if TYPE_CHECKING:
    from simulation.cluster.options import Options

SLOW_TO_DRAIN = ("saturated", "long", "shards")
# For a queue of an hour, a run of twelve minutes that is tried again, or one worker in the shard in which all waits.
DRAIN_SECONDS = 2700.0
CHANGE_AFTER = timedelta(minutes=6)  # of clocks, so that a slice of the hour sees it as well

RENEWED = ("initech", "renewed")  # what situation `updates` edits again and again
GIVING_UP = (("globex", "gives-up"), ("globex", "gives-up-late"))  # in `rests`; somebody resumes them again and again
LOST = ("globex", "lost")
FLOODED = ("initech", "latest")  # in `floods`; its runs take a second
FLOOD = (20, 120)  # commands: more than most batches answer
TRIGGERED_OF = 20  # of them one has a run: some hundred in an hour; the others are one that was answered before
FOLDS = ("first", "second", "both")
CALENDAR = "closed"
CLOSED = ("acme", "initech")  # tenants that have such a calendar
FROZEN = (("tenant", "acme", "_"), ("tenant", "globex", "_"), ("queue", "_", "default"))
WINDOW_SECONDS = (10, 240)  # of a freeze: shorter and longer than a schedule's interval, and than most outages
WINDOWS_MAX = 2

# Longer than anybody is away, shorter than an hour: of what was read nobody asks again.
KEPT = Retention(
    replies=timedelta(minutes=5), dispatch=timedelta(minutes=5), attempts=timedelta(minutes=20),
    runs=timedelta(minutes=40),
)  # fmt: skip
KEPT_LAGS = tuple(timedelta(minutes=minutes) for minutes in (1, 3, 10))  # before what is superseded is compacted

# Where the clocks of a zone change, and when: forward, back, by half an hour, and once by a whole day.
TRANSITIONS = (
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 3, 22, 2, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a situation adds, by tenant and name."""

    schedules: Mapping[tuple[str, str], Definition]
    jobs: Mapping[tuple[str, str], Definition] = field(default_factory=dict)


def began_at(options: Options) -> datetime:
    """When the hour of a seed begins."""
    return _transition(options)[1] - CHANGE_AFTER if options.has("zones") else NOON


def _transition(options: Options) -> tuple[str, datetime]:
    return Random(f"zones {options.seed}").choice(TRANSITIONS)


def _jobs(_options: Options, _began_at: datetime) -> Added:
    quick = JOB_DEFINITION | {"payload": {"seconds": 70, "marker": marker("initech")}, "retry": {"max_attempts": 2}}
    named = schedule("initech", each(2), 0, overlap={"policy": "allow_all"}) | {"job": "changing"}
    return Added(
        jobs={("initech", "changing"): quick},
        schedules={
            ("initech", "changing"): named,
            ("initech", "changing-one"): named | {"trigger": each(1), "overlap": {"policy": "buffer_one"}},
        },
    )


def _owed(_options: Options, _began_at: datetime) -> Added:
    def owed(seconds: float, policy: str, window: str, limit: int) -> Definition:
        return schedule(
            "acme", each(1), seconds, grace="PT10S", overlap={"policy": policy},
            catch_up={"policy": "all", "window": window, "limit": limit},
        )  # fmt: skip

    return Added(
        schedules={
            ("acme", "owed-skip"): owed(30, "skip", "PT3M", 100),
            ("acme", "owed-buffer"): owed(70, "buffer_one", "PT5M", 3),
            ("acme", "owed-each"): owed(40, "allow_all", "PT3M", 3),
        }
    )


def _saturated(_options: Options, _began_at: datetime) -> Added:
    urgent = schedule("acme", each(2), 5, overlap={"policy": "allow_all"}, job={"deadline": "PT1M"})
    fresh = schedule("acme", each(2), 25, overlap={"policy": "allow_all"}, job={"start_within": "PT20S"})
    return Added(schedules={("acme", "urgent"): urgent, ("acme", "fresh"): fresh})


def _long(_options: Options, began_at: datetime) -> Added:
    def at(minutes: int) -> str:
        return f"{began_at + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"

    return Added(
        schedules={
            ("globex", "long"): schedule("globex", {"at": [at(1), at(20)]}, 1250, job={"lease": "PT10S"}),
            ("globex", "long-stubborn"): schedule(
                "globex",
                each(15),
                720,
                overlap={"policy": "buffer_one"},
                payload={"stubborn": True},
                job={"timeout": "PT11M", "lease": "PT10S"},
            ),
        }
    )  # fmt: skip


def _overtime(_options: Options, _began_at: datetime) -> Added:
    def overtime(seconds: float, lease: str) -> Definition:
        return schedule(
            "globex", each(2), seconds, overlap={"policy": "allow_all"}, payload={"stubborn": True},
            job={"timeout": "PT30S", "lease": lease, "retry": {"max_attempts": 2, "initial": "PT1S"}},
        )  # fmt: skip

    return Added(
        schedules={
            ("globex", "overtime"): overtime(40, "PT30S"),  # between 20 and 40 s
            ("globex", "overtime-leased"): overtime(90, "PT10S"),
        }
    )


def _namesakes(_options: Options, _began_at: datetime) -> Added:
    tenant, name = "acme", JOB[1]
    job = JOB_DEFINITION | {"payload": {"seconds": 40, "marker": marker(tenant)}}
    return Added(
        jobs={(tenant, name): job},
        schedules={
            ("globex", "minutely"): schedule("globex", each(1), 20),
            ("initech", "minutely"): schedule("initech", each(2), 100, overlap={"policy": "buffer_one"}),
            (tenant, "named"): schedule(tenant, each(4), 0) | {"job": name},
        },
    )


def _cadence(_options: Options, began_at: datetime) -> Added:
    def at(minutes: int) -> datetime:
        return began_at + timedelta(minutes=minutes)

    second = {"cron": f"* {at(4).minute},{at(34).minute} * * * *"}
    retry = {"jitter": "none", "initial": "PT3S", "factor": 1.0, "max_attempts": 4}
    return Added(
        schedules={
            ("acme", "each-second"): schedule("acme", second, 2, overlap={"policy": "skip", "limit": 3}),
            ("acme", "daily"): schedule("acme", {"cron": f"{at(7).minute} {at(7).hour} * * *"}, 5),
            ("globex", "retried"): schedule("globex", each(3), 5, payload={"fails": "always"}, job={"retry": retry}),
        }
    )


def _bounds(_options: Options, began_at: datetime) -> Added:
    def at(minutes: int) -> str:
        return f"{began_at + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"

    out = ",".join(str((began_at.minute + minute) % 60) for minute in (5, 6, 7, 8, 25, 40, 41))
    shared = {"cron": ["*/2 * * * *", "*/3 * * * *"], "jitter": "PT45S", "exclude": {"cron": [f"{out} * * * *"]}}
    ended = {"cron": "*/30 * * * * *", "start_at": at(2), "end_at": at(50), "max_runs": 12, "jitter": "PT10S"}
    days = [f"{began_at + timedelta(days=day):%Y-%m-%d}" for day in (0, 1)]
    return Added(
        schedules={
            ("initech", "jittered"): schedule("initech", shared, 20, catch_up={"policy": "all", "window": "PT3M"}),
            ("initech", "ended"): schedule("initech", ended, 5, overlap={"policy": "allow_all"}),
            ("acme", "not-today"): schedule("acme", each(1) | {"exclude": {"dates": days}}, 5),
        }
    )


def _overlaps(_options: Options, _began_at: datetime) -> Added:
    def overlapping(minutes: int, seconds: float, **policy: Any) -> Definition:
        return schedule("globex", each(minutes), seconds, overlap=policy)

    return Added(
        schedules={
            ("globex", "makes-room"): overlapping(2, 170, policy="cancel_other"),
            ("globex", "in-a-row"): overlapping(1, 130, policy="buffer_all", buffer=3),
            ("globex", "buffered"): overlapping(3, 200, policy="terminate_other"),
        }
    )


def _rules(_options: Options, began_at: datetime) -> Added:
    at = began_at + timedelta(minutes=9)
    daily = f"FREQ=DAILY;BYHOUR={at.hour};BYMINUTE={at.minute},{(at.minute + 1) % 60};BYSECOND=0,30"
    return Added(
        schedules={
            ("acme", "ruled"): schedule("acme", {"rrule": "FREQ=MINUTELY;INTERVAL=3;BYSECOND=10"}, 5),
            ("acme", "ruled-daily"): schedule("acme", {"rrule": daily}, 5, overlap={"policy": "allow_all"}),
            ("acme", "hourly"): schedule("acme", {"rrule": "FREQ=HOURLY;BYMINUTE=30"}, 10, catch_up={"policy": "all"}),
        }
    )


def _rests(_options: Options, _began_at: datetime) -> Added:
    once = {"max_attempts": 1}
    fails = schedule(
        "globex", each(1), 5, payload={"fails": "always"}, job={"retry": once}, overlap={"policy": "allow_all"}
    )
    unsure = fails | {"job": fails["job"] | {"payload": fails["job"]["payload"] | {"fails": "half"}}}
    return Added(
        schedules={
            GIVING_UP[0]: fails | {"pause_on_failure": 2},
            GIVING_UP[1]: unsure | {"trigger": {"every": "PT20S"}, "pause_on_failure": 3},
            ("acme", "behind-itself"): schedule("acme", {"every": "PT1M", "from": "finish"}, 40),
        }
    )


def _targets(_options: Options, _began_at: datetime) -> Added:
    retry = {"initial": "PT1S", "max_attempts": 3, "budget": "100%"}  # less would have a queue of retries to drain

    def calling(tenant: str, seconds: int, **job: Any) -> Definition:
        all_at_once = {"policy": "allow_all"}
        return schedule(tenant, {"every": f"PT{seconds}S"}, 5, job=job, overlap=all_at_once)

    http = {"type": "http", "url": targets.URL, "headers": {"x-reason": "simulation"}}
    command = {"type": "command", "name": targets.COMMAND}
    return Added(
        schedules={
            ("acme", "called"): calling("acme", 30, target=http, timeout="PT50S", retry=retry),
            ("globex", "commanded"): calling(
                "globex", 60, target=command, retry=retry | {"never_on": [targets.REFUSED]}
            ),
        }
    )


def _paced(_options: Options, _began_at: datetime) -> Added:
    def paced(seconds: float, each_: int, rate: str, policy: str) -> Definition:
        return schedule(
            "initech", {"every": f"PT{each_}S"}, seconds, grace="PT5S", overlap={"policy": policy, "buffer": 3},
            catch_up={"policy": "all", "window": "PT20M", "limit": 200, "rate": rate},
        )  # fmt: skip

    return Added(
        schedules={
            ("initech", "paced"): paced(2, 20, "12/m", "allow_all"),
            ("initech", "paced-one"): paced(6, 15, "30/m", "buffer_all"),
        }
    )


def _again(_options: Options, _began_at: datetime) -> Added:
    twice = {"max_attempts": 2, "initial": "PT1S", "budget": "100%"}  # less would have a queue of retries to drain
    lost = schedule(
        "globex", each(1), 5, payload={"fails": "always"}, job={"retry": twice}, overlap={"policy": "allow_all"}
    )
    return Added(schedules={LOST: lost})


def _follows(_options: Options, _began_at: datetime) -> Added:
    def after(*names: str) -> list[dict[str, str]]:
        return [{"schedule": name, "mode": "run", "condition": "finished"} for name in names]

    one = schedule("acme", each(7), 7, overlap={"policy": "buffer_one"}, after=after("minutely"))
    all_ = schedule("globex", each(9), 7, overlap={"policy": "allow_all"}, after=after("retried", "doomed", "crowded"))
    window = {"mode": "interval", "span": "PT3M", "offset": "-PT1M"}
    waits = [
        {"schedule": "minutely", "deadline": "PT6M", **window},
        {"schedule": "slow", "deadline": "PT3M", "on_unmet": "run_anyway", "condition": "finished", **window},
    ]
    third = schedule("acme", each(3), 7, overlap={"policy": "buffer_one"}, after=waits)
    return Added(schedules={("acme", "follows"): one, ("globex", "follows"): all_, ("acme", "waits"): third})


def _calendars(_options: Options, _began_at: datetime) -> Added:
    def open_days(tenant: str, minutes: int, **more: Any) -> Definition:
        return schedule(tenant, each(minutes) | {"exclude": {"calendars": [CALENDAR]}}, 5, **more)

    all_ = {"policy": "all", "window": "PT5M"}
    return Added(
        schedules={("acme", "open"): open_days("acme", 1), ("initech", "open"): open_days("initech", 2, catch_up=all_)}
    )


def calendar(now: datetime, chance: Random) -> tuple[str, Definition | None]:
    """A tenant, and what its calendar says from now on: today is taken out, or not; None: there is none any more."""
    days = [f"{now + timedelta(days=day):%Y-%m-%d}" for day in (-1, 0, 1)]
    drawn = [day for day in days if chance.choice((True, False))]
    return chance.choice(CLOSED), None if chance.randrange(5) == 0 else {"dates": drawn}


def freezes(now: datetime, chance: Random) -> tuple[tuple[str, str, str], Definition]:
    """A tenant or the queue, and its windows from now on: of now, to come, or none; some come again."""
    return chance.choice(FROZEN), {"freezes": [_window(now, chance) for _ in range(chance.randint(0, WINDOWS_MAX))]}


def _window(now: datetime, chance: Random) -> Definition:
    seconds, action = chance.randint(*WINDOW_SECONDS), {"action": chance.choice(("defer", "defer", "skip"))}
    if chance.randrange(4) == 0:
        return {"cron": f"*/{chance.randint(6, 9)} * * * *", "duration": f"PT{seconds}S"} | action
    begins = (now + timedelta(seconds=chance.randint(-60, 60))).replace(microsecond=0)
    span = {"from": begins, "to": begins + timedelta(seconds=seconds)}
    return {name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in span.items()} | action


def _freezes(_options: Options, _began_at: datetime) -> Added:
    return Added(schedules={})


def _moments(_options: Options, _began_at: datetime) -> Added:
    return Added(schedules={})


def _shards(_options: Options, _began_at: datetime) -> Added:
    return Added(schedules={})


def _floods(_options: Options, _began_at: datetime) -> Added:
    return Added(schedules={})


def _updates(_options: Options, _began_at: datetime) -> Added:
    five = {"cron": "0-20/5 */4 * * * *"}
    renewed = schedule("initech", five, 40, overlap={"policy": "allow_all"}, on_update="cancel")
    return Added(schedules={RENEWED: renewed})


def _zones(options: Options, _began_at: datetime) -> Added:
    name, change = _transition(options)
    zone, minute = ZoneInfo(name), timedelta(minutes=1)
    before = (change - minute).astimezone(zone).utcoffset() or timedelta(0)
    skipped = (change + 5 * minute + before).replace(tzinfo=None)  # as if the clocks had not been changed
    shown = (change + 3 * minute).astimezone(zone)

    def daily(local: datetime, **policies: str) -> Definition:
        cron = {"cron": f"{local.minute} {local.hour} * * *", "timezone": name}
        return schedule("acme", cron | policies, 5, overlap={"policy": "allow_all"})

    chance = Random(f"policies {options.seed}")
    return Added(
        schedules={
            ("acme", "at-the-change"): daily(
                skipped, gap_policy=chance.choice(("shift", "skip")), fold_policy=chance.choice(FOLDS)
            ),
            ("acme", "behind-the-change"): daily(shown, fold_policy=chance.choice(FOLDS)),
            ("acme", "hourly"): schedule("acme", {"cron": "*/10 * * * *", "timezone": name}, 5),
        }
    )


ADDED: Mapping[str, Callable[[Options, datetime], Added]] = {
    "jobs": _jobs,
    "owed": _owed,
    "saturated": _saturated,
    "long": _long,
    "overtime": _overtime,
    "namesakes": _namesakes,
    "cadence": _cadence,
    "bounds": _bounds,
    "overlaps": _overlaps,
    "rules": _rules,
    "rests": _rests,
    "targets": _targets,
    "paced": _paced,
    "again": _again,
    "follows": _follows,
    "updates": _updates,
    "calendars": _calendars,
    "freezes": _freezes,
    "moments": _moments,
    "shards": _shards,
    "floods": _floods,
    "zones": _zones,
}
