"""How fast facts become records and come back, against what `orjson` alone needs for the same JSON.

The floor of writing is `orjson.dumps` of the record as dicts and the SHA-256 that an event id is; the floor of reading
is `orjson.loads`. A ratio of 1 would mean that classes, checks and envelopes cost nothing.
"""

import hashlib
import timeit
from collections.abc import Callable
from datetime import UTC, datetime

import orjson

from schemas import codec, sample
from schemas.facts import AttemptFinished, AttemptStarted, Fact, OccurrenceSkipped, RunCreated, RunFinished
from schemas.internal import HandOut, WorkerReport

TYPES: tuple[type[Fact], ...] = (
    RunCreated,
    HandOut,
    AttemptStarted,
    AttemptFinished,
    RunFinished,
    OccurrenceSkipped,
    WorkerReport,
)
CALLS = 5_000
REPEATS = 5  # the best counts: whatever else the machine does only slows down
AT = datetime(2026, 3, 8, 7, 0, 0, 250000, tzinfo=UTC)
SOURCE = "tidewheel/scheduler/0"


def main() -> None:
    """Print a line for each type."""
    side = f"{'/s':>11}{'µs':>7}{'x floor':>9}"
    print(f"{'':<24}{'encode':>27}{'decode':>27}{'make':>9}")
    print(f"{'type':<18}{'bytes':>6}{side}{side}{'µs':>9}")
    for cls in TYPES:
        print(line(cls))


def line(cls: type[Fact]) -> str:
    """One type's figures."""
    fact = sample.full(cls)
    _, record = codec.encode(fact, source=SOURCE, time=AT)
    document = orjson.loads(record)
    fields = {name: getattr(fact, name) for name in cls.__dataclass_fields__ if name not in ("TYPE", "known_id")}  # type: ignore[attr-defined]

    write = seconds(lambda: codec.encode(fact, source=SOURCE, time=AT))
    write_floor = seconds(lambda: hashlib.sha256(orjson.dumps(document)).hexdigest())
    read = seconds(lambda: codec.read_fact(record))
    read_floor = seconds(lambda: orjson.loads(record))
    make = seconds(lambda: cls(**fields))
    return (
        f"{cls.__name__:<18}{len(record):>6}"
        f"{1 / write:>11,.0f}{write * 1e6:>7.1f}{write / write_floor:>9.1f}"
        f"{1 / read:>11,.0f}{read * 1e6:>7.1f}{read / read_floor:>9.1f}{make * 1e6:>9.2f}"
    )


def seconds(call: Callable[[], object]) -> float:
    """Seconds a call, at its best."""
    return min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS


if __name__ == "__main__":
    main()
