"""The smallest options that still fail: fewer faults and situations, a shorter time, fewer machines, in this order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from simulation.cluster.options import Options

TRIES_MAX = 100  # of one seed: some minutes
SHORTER = (0.1, 0.25, 0.5, 0.75)  # shares of the time
HOURS_MIN = 1 / 60
SIZES = ("schedulers", "dispatchers", "projectors", "workers", "schedule_partitions", "shard_partitions")


@dataclass(slots=True)
class Shrinking:
    """The smallest so far. `fails` is asked of each smaller one, `told` hears of each try."""

    options: Options
    fails: Callable[[Options], bool]
    told: Callable[[str], None]
    tries: int = 0

    def tries_to_do(self, name: str, smaller: Options) -> bool:
        """Whether it fails with something less, which is kept then."""
        if self.tries >= TRIES_MAX:
            return False
        self.tries += 1
        failed = self.fails(smaller)
        self.told(f"{'fails all the same' if failed else 'does not fail'} {name}")
        if failed:
            self.options = smaller
        return failed

    def fewer_faults(self) -> None:
        """Leave out half of them, a quarter, and so on to each alone."""
        size = max(1, len(self._names) // 2)
        while True:
            names = self._names
            for some in (names[at : at + size] for at in range(0, len(names), size)):
                self.tries_to_do(f"without {', '.join(some)}", self.options.without(*some))
            if size == 1:
                return
            size //= 2

    @property
    def _names(self) -> list[str]:
        return [*self.options.faults, *self.options.situations]

    def less_time(self) -> None:
        """Shorter, as long as that fails."""
        while any(self.tries_to_do(name, smaller) for name, smaller in self._shorter()):
            pass

    def fewer_machines(self) -> None:
        """One less of each, as long as that fails."""
        for size in SIZES:
            while (count := getattr(self.options, size)) > 1:
                if not self.tries_to_do(f"with {count - 1} {size}", replace(self.options, **{size: count - 1})):
                    break

    def _shorter(self) -> Iterator[tuple[str, Options]]:
        for share in SHORTER:
            hours = round(self.options.hours * share, 4)
            if hours >= HOURS_MIN:
                yield f"in {hours:.3f} hours", replace(self.options, hours=hours)


def shrink(options: Options, fails: Callable[[Options], bool], told: Callable[[str], None]) -> Options:
    """What is returned fails, when `options` does."""
    shrinking = Shrinking(options, fails, told)
    shrinking.fewer_faults()
    shrinking.less_time()
    shrinking.fewer_machines()
    return shrinking.options
