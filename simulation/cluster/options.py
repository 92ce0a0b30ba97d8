"""What a seed draws: sizes, limits, and a random few of the faults at random rates.

Beside the faults a seed has a few situations, in which other code is at work: long runs, full queues, namesakes.

Few faults at a time find more than all of them always: each seed has another mixture (swarm testing), some of it calm
enough that much is done, some of it so rough that little is. Options print as one line and are read back from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from random import Random

import orjson

# name in the catalogue → (what happens, at most so many times an hour)
FAULTS: Mapping[str, tuple[str, float]] = {
    "A1": ("an owner dies after it has read a batch, before it begins a transaction", 6),
    "A2": ("an owner dies when it has begun a transaction and sent nothing", 6),
    "A3": ("an owner dies when it has sent some of a transaction's records", 6),
    "A4": ("an owner dies when all is sent, before positions and commit", 6),
    "A5": ("an owner dies while its commit is on the way", 6),
    "A6": ("an owner dies when its commit may have been made and nobody has told it", 6),
    "A7": ("an owner dies when its commit was acknowledged, before its store has it", 6),
    "A8": ("an owner dies while its store takes the batch: all of it is there, or nothing", 6),
    "A9": ("an owner dies when its store has the batch, before it reads on", 6),
    "A10": ("an owner dies while it restores a partition", 6),
    "A11": ("an owner is asked to stop and killed before it has", 6),
    "A12": ("an owner dies while it gives up a transaction", 6),
    "A13": ("an API node dies when a command stands in the log, before it has told", 6),
    "A14": ("a projector dies between its rows and its positions in the group", 6),
    "A15": ("a worker dies when its task has ended, before it says so", 10),
    "A16": ("a worker dies when it has said so, before it is answered", 10),
    "B1": ("an owner stands still for longer than its session, and goes on in the middle of a transaction", 6),
    "B2": ("a former owner opens a partition after the rightful one has", 6),
    "B5": ("processes join and leave one after another for minutes", 2),
    "B7": ("two processes have one name", 2),
    "B9": ("a process and its group do not hear of each other for longer than its session, all else goes on", 6),
    "B10": ("the roles shrink to one process and grow again", 3),
    "C1": ("a commit is held up in the network, repeated, and arrives once more in a later transaction", 10),
    "C2": ("an abort is held up in the network and arrives in a later transaction", 10),
    "C3": ("records are held up in the network and arrive after their transaction has ended", 10),
    "C4": ("answers of the broker get lost", 10),
    "C5": ("the coordinators of groups and transactions move to another broker", 8),
    "C6": ("a transaction is open for longer than the broker allows", 6),
    "C7": ("a broker is away for some seconds, and what was open then is left without an end", 6),
    "C8": ("a broker is away for some seconds", 8),
    "C9": ("all brokers are away for a minute or more", 2),
    "C12": ("the coordinator has forgotten a transactional id", 10),
    "D1": ("a disk is empty after a restart", 6),
    "D2": ("a bit of a store flips", 6),
    "D3": ("a store says that it is ahead of its changelog", 4),
    "D4": ("a store is put back to what it was some time ago", 6),
    "D8": ("a disk is full for a while", 4),
    "E4": ("a group's positions are forgotten", 4),
    "F1": ("records that cannot be read are published", 20),
    "F2": ("records that are too large are published", 6),
    "F3": ("changes are published twice", 20),
    "F4": ("changes are published in the wrong order, stale ones too", 20),
    "F5": ("records of a type that nobody knows are published", 10),
    "F7": ("processes stop and come back in the next version or in this one, of which both own partitions", 20),
    "F8": ("records stand where they do not belong: another tenant's subject, another partition", 10),
    "F9": ("publishers give up transactions of their own", 20),
    "G1": ("a wall clock jumps by minutes or years, and is set right later", 4),
    "G2": ("a wall clock is set by some hundred milliseconds", 20),
    "G3": ("wall clocks differ by seconds", 0),
    "G9": ("a machine sleeps for minutes", 3),
    "H1": ("a worker cannot reach anybody for longer than its leases", 6),
    "H3": ("reports come late, twice and in another order", 30),
    "H7": ("some runs kill whatever worker takes them", 0),
    "H8": ("workers are killed and come back", 20),
    "H9": ("the clocks of workers are wrong by up to an hour", 0),
    "H10": ("reports are forged or repeated: of a wrong run, lease key or tenant", 20),
    "H11": ("all workers are away for minutes", 2),
    "J2": ("two projectors follow the same partitions", 3),
    "J3": ("the database is away for a while, or refuses a single question", 10),
    "K1": ("a process is killed at any time", 12),
    "K4": ("a process is slow: each of its calls takes long", 6),
}
# What is no fault, and what faults are felt in: more schedules, other habits of those who work and ask.
# name → (what is the case, at most so many times an hour; 0: it is the case all the time)
SITUATIONS: Mapping[str, tuple[str, float]] = {
    "jobs": ("registered jobs change, go and come back while runs of older versions are under way", 40),
    "owed": ("runs that may not overlap are all owed after outages of their schedulers, up to a window and a limit", 8),
    "saturated": ("there are fewer slots than due runs, and queues grow", 0),
    "long": ("runs take longer than ten minutes, and than many leases", 0),
    "overtime": ("attempts reach their timeout, and user code goes on beyond it", 0),
    "strays": ("reports stand in a wrong partition, claim leases in others' names, or come late; runs come twice", 30),
    "namesakes": ("tenants have schedules, jobs and runs of the same names, and ask for each other's runs", 30),
    "cadence": ("a schedule of every second stands beside daily ones, and retries have no jitter", 0),
    "zones": ("clocks of a time zone change in the middle, and schedules there are due around it", 0),
    "cancels": ("runs are cancelled while they fail, and between their attempts", 40),
    "kept": ("topics are trimmed and compacted as brokers do it, after minutes in place of hours", 60),
    "bounds": ("triggers have jitter and exclusions, begin and end, and give so many runs that later puts change", 0),
    "overlaps": ("what overlaps makes room, is ended, or waits in a row", 0),
    "rules": ("triggers are recurrence rules", 0),
    "skips": ("single occurrences to come are skipped by whoever asks", 40),
    "updates": ("edits cancel the runs of older versions that nobody has begun", 60),
    "backfills": ("past minutes of schedules are run by backfills, which are paused, resumed and cancelled", 40),
    "follows": (
        "runs follow those of other schedules, and occurrences wait for them, some of which do not end well",
        0,
    ),
    "rests": ("schedules pause after failures, and count their interval from the end of the run before", 0),
    "targets": ("runs call endpoints that answer late, are busy, refuse, or never say how it ended; and commands", 0),
    "paced": ("what outages leave behind is caught up slowly, and a run every few seconds is due meanwhile", 8),
    "limits": ("quotas, rates, weights and pauses of tenants and their queue come and go", 60),
    "again": ("runs that are over are run again, and dead letters redriven, some of them twice, some too early", 60),
    "calendars": ("calendars that schedules name change, go and come back", 40),
    "freezes": (
        "freezes of tenants and of the queue are put, moved and lifted, some that skip and some that defer",
        40,
    ),
    "moments": ("schedules are paused, resumed, edited, deleted and put again within a second of what is due", 120),
    "shards": ("the queue has two or three shards, and is given another number of them", 6),
    "floods": ("a tenant publishes a hundred commands at once, and others publish behind them", 20),
}
# Drawn apart from the others and after them: what a seed drew before there were these is what it draws.
LATER = frozenset(
    {
        "again", "backfills", "bounds", "follows", "limits", "overlaps", "paced", "rests", "rules", "skips", "targets",
        "updates",
    }
)  # fmt: skip
LATER_MAX = 2
LATEST = frozenset({"calendars", "freezes"})  # likewise, apart from those and after them
LATEST_MAX = 1
NEWEST = frozenset({"shards"})  # likewise; beside whatever else there is, since it adds no runs
NEWEST_OF = 4  # seeds, one has such a situation
FLOODS = frozenset({"floods"})  # likewise, where there is room: it adds short runs
LAST = frozenset({"moments"})  # likewise, apart from those: it adds no runs either
LATER_FAULTS = frozenset({"B9", "F9", "J3"})  # likewise: drawn apart from the others and after them
LAST_FAULTS = frozenset({"C12", "F7"})  # likewise, each apart from all others, so that one more changes none
# Drawn by no seed: of a hundred such clusters one still waits for what hangs (docs/decisions.md, 71). Mutants have it.
TRIED_APART = frozenset({"C7"})
MEANINGS: Mapping[str, str] = {name: what for name, (what, _) in ({**FAULTS, **SITUATIONS}).items()}
SITUATIONS_MAX = 3  # of a seed: an hour keeps within twenty schedules and some hundred runs
ONLY_ON_OR_OFF = 1.0  # the rate of a fault that is there all the time, or is not
DENSER_MAX = 4.0  # times: what is shorter than an hour has more faults an hour, so that a slice has some of them
SHARE_ON_AVERAGE = 0.35  # of the faults that a seed has


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that tells one simulated cluster from another. `faults`, `situations`: how many times an hour."""

    seed: int
    hours: float = 1.0
    schedulers: int = 1
    dispatchers: int = 1
    projectors: int = 1
    workers: int = 2
    schedule_partitions: int = 2
    shard_partitions: int = 2
    batch_records: int = 500
    batch_facts: int = 2000
    ahead_records: int = 65_536
    ahead_bytes: int = 16 * 1024 * 1024
    woken_keys: int = 512
    steps_per_key: int = 32
    linger_seconds: float = 0.02
    session_seconds: float = 6.0
    quiet_workers: float = 2.0
    latency_seconds: float = 0.002
    database: bool = False
    calls_every_seconds: float = 180.0  # at most, of each caller of the API
    callers: int = 2
    doubting: bool = True  # off: producers go on after a doubtful commit, and transactions are really torn (C1, C2)
    faults: Mapping[str, float] = field(default_factory=dict)
    situations: Mapping[str, float] = field(default_factory=dict)

    def rate(self, name: str) -> float:
        """How many times an hour a fault or a situation happens; 0: never."""
        return self.faults.get(name, self.situations.get(name, 0.0))

    def has(self, name: str) -> bool:
        """Whether it may happen at all, or is the case."""
        return name in self.faults or name in self.situations

    def without(self, *left_out: str) -> Options:
        """The same with some faults and situations switched off."""
        return replace(self, faults=_but(self.faults, left_out), situations=_but(self.situations, left_out))

    def line(self) -> str:
        """As one line of JSON, which `read` reads."""
        return orjson.dumps(asdict(self)).decode()


def read(line: str) -> Options:
    """Options from the line they were printed as."""
    return Options(**orjson.loads(line))


def draw(seed: int, *, hours: float = 1.0) -> Options:
    """The options of a seed."""
    chance, ahead = Random(f"options {seed}"), Random(f"ahead {seed}")
    return Options(
        seed=seed,
        hours=hours,
        schedulers=chance.choice((1, 2, 2, 3)),
        dispatchers=chance.choice((1, 2, 2, 3)),
        projectors=chance.choice((1, 1, 2)),
        workers=chance.randint(2, 5),
        schedule_partitions=chance.choice((2, 2, 3, 4)),
        shard_partitions=chance.choice((2, 2, 3, 4)),
        batch_records=chance.choice((1, 3, 20, 500)),
        batch_facts=chance.choice((1, 10, 2000)),
        woken_keys=chance.choice((1, 4, 512)),
        steps_per_key=chance.choice((1, 4, 32)),
        linger_seconds=chance.choice((0.0, 0.02, 0.5)),
        session_seconds=chance.choice((6.0, 10.0, 20.0, 20.0)),
        quiet_workers=chance.choice((1.0, 2.0, 2.0, 2.0)),
        latency_seconds=chance.choice((0.0005, 0.002, 0.01)),
        database=chance.randrange(10) == 0,
        ahead_records=ahead.choice((1, 5, 100, 65_536)),
        ahead_bytes=ahead.choice((1, 10_000, 16 * 1024 * 1024)),
        faults=_faults(seed, chance, min(DENSER_MAX, 1 / hours)),
        situations=_situations(seed, min(DENSER_MAX, 1 / hours)),
    )


def calm(seed: int, *, hours: float = 1.0) -> Options:
    """The options of a seed without any fault, and in no situation but the ordinary one."""
    return replace(draw(seed, hours=hours), faults={}, situations={})


def _faults(seed: int, chance: Random, density: float) -> dict[str, float]:
    drawn = {}
    share = chance.uniform(0.05, 2 * SHARE_ON_AVERAGE)
    later = Random(f"later faults {seed}")
    sources = {name: chance for name in FAULTS if name not in LATER_FAULTS | LAST_FAULTS | TRIED_APART}
    sources |= dict.fromkeys(sorted(LATER_FAULTS), later)
    sources |= {name: Random(f"fault {name} {seed}") for name in sorted(LAST_FAULTS)}
    for name, source in sources.items():
        most = FAULTS[name][1]
        if source.random() < share:
            drawn[name] = round(most * density * source.uniform(0.2, 1.0), 2) if most else ONLY_ON_OR_OFF
    return drawn


def _situations(seed: int, density: float) -> dict[str, float]:
    chance = Random(f"situations {seed}")
    first = SITUATIONS.keys() - LATER - LATEST - NEWEST - FLOODS - LAST
    drawn = chance.sample(sorted(first), chance.randint(0, SITUATIONS_MAX))
    rates = _rates(chance, drawn, density)
    chance = Random(f"later situations {seed}")
    most = min(LATER_MAX, SITUATIONS_MAX - len(drawn))
    rates |= _rates(chance, chance.sample(sorted(LATER), chance.randint(0, most)), density)
    chance = Random(f"latest situations {seed}")
    most = min(LATEST_MAX, SITUATIONS_MAX - len(rates))
    rates |= _rates(chance, chance.sample(sorted(LATEST), chance.randint(0, most)), density)
    chance = Random(f"newest situations {seed}")
    rates |= _rates(chance, sorted(NEWEST), density) if chance.randrange(NEWEST_OF) == 0 else {}
    chance = Random(f"floods {seed}")
    has_room = len(rates) < SITUATIONS_MAX and chance.randrange(NEWEST_OF) == 0
    rates |= _rates(chance, sorted(FLOODS), density) if has_room else {}
    chance = Random(f"last situations {seed}")
    return rates | (_rates(chance, sorted(LAST), density) if chance.randrange(NEWEST_OF) == 0 else {})


def _rates(chance: Random, names: Collection[str], density: float) -> dict[str, float]:
    rates = {name: SITUATIONS[name][1] for name in names}
    return {
        name: round(most * density * chance.uniform(0.2, 1.0), 2) if most else ONLY_ON_OR_OFF
        for name, most in rates.items()
    }


def _but(rates: Mapping[str, float], left_out: Collection[str]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if name not in left_out}
