"""The smallest options that still fail: faults switched off one by one, the hour shortened while it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from simulation.cluster.options import Options

TRIES_MAX = 60  # of one seed: some minutes
SHORTER = (0.1, 0.25, 0.5, 0.75)  # shares of the hours
SMALLER = ("schedulers", "dispatchers", "projectors", "workers", "schedule_partitions", "shard_partitions")


def shrink(options: Options, fails: Callable[[Options], bool], told: Callable[[str], None]) -> Options:
    """`fails` is asked of each smaller one; what is returned fails, when `options` does."""
    tries, moved = 0, True
    while moved and tries < TRIES_MAX:
        moved = False
        for name, smaller in candidates(options):
            tries += 1
            if tries > TRIES_MAX:
                break
            if fails(smaller):
                told(f"fails all the same {name}")
                options, moved = smaller, True
                break
            told(f"does not fail {name}")
    return options


def candidates(options: Options) -> Iterator[tuple[str, Options]]:
    """What is one step smaller, the largest steps first."""
    names = list(options.faults)
    half = len(names) // 2
    for some in (names[:half], names[half:]) if half > 1 else ():
        kept = {name: options.faults[name] for name in some}
        yield f"with only {', '.join(some)}", replace(options, faults=kept)
    for name in names:
        yield f"without {name}", options.without(name)
    for share in SHORTER:
        if options.hours * share > 1 / 60:
            yield f"in {share:.0%} of the time", replace(options, hours=round(options.hours * share, 4))
    for size in SMALLER:
        count = getattr(options, size)
        if count > 1:
            yield f"with {count - 1} {size}", replace(options, **{size: count - 1})
