"""One field of an expression: text in, the set of positions it names out.

A field is a circle of `size` positions, counted from 0 (minute 0, Sunday, January, the 1st), so that `22-2`, `FRI-MON`
and `MON-SUN` are ordinary arcs. The weekday circle has seven positions and eight numbers: 0 and 7 are both Sunday.

    field = item {"," item}      item = base ["/" step]      base = "*" | value ["-" value] | "H" ["(" a "-" b ")"]

Every step looks at each character once; nothing is tried twice, so a hostile field costs no more than its length.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from scheduler.occurrences.errors import CronError, shown

DIGITS = frozenset("0123456789")  # str.isdigit() would also accept digits of other scripts
NUMBER_DIGITS_MAX = 4  # no field needs more; leading zeros as in `00` and `05` are common
MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """The numbers and names that one field accepts, and how they map to positions."""

    name: str
    low: int
    high: int
    size: int
    names: Mapping[str, int] = field(default_factory=dict)
    hash_size: int  # `H` picks among this many positions: days 29 to 31 are left out, not every month has them

    @property
    def span(self) -> str:
        """What is accepted, in words for a remedy."""
        examples = list(self.names)
        return f"{self.low} to {self.high}" + (f" or {examples[0]} to {examples[-1]}" if examples else "")


SECOND = Circle(name="second", low=0, high=59, size=60, hash_size=60)
MINUTE = Circle(name="minute", low=0, high=59, size=60, hash_size=60)
HOUR = Circle(name="hour", low=0, high=23, size=24, hash_size=24)
DAY_OF_MONTH = Circle(name="day_of_month", low=1, high=31, size=31, hash_size=28)
MONTH = Circle(
    name="month", low=1, high=12, size=12, hash_size=12, names={name: n for n, name in enumerate(MONTH_NAMES, 1)}
)
WEEKDAY_UNIX = Circle(
    name="day_of_week", low=0, high=7, size=7, hash_size=7, names={name: n for n, name in enumerate(WEEKDAY_NAMES)}
)
WEEKDAY_QUARTZ = Circle(
    name="day_of_week", low=1, high=7, size=7, hash_size=7, names={name: n for n, name in enumerate(WEEKDAY_NAMES, 1)}
)


def positions(text: str, circle: Circle, hash_key: str | None) -> frozenset[int]:
    """Return the positions that a whole field names; `text` is in capitals."""
    return frozenset(position for item in items(text, circle) for position in item_positions(item, circle, hash_key))


def items(text: str, circle: Circle) -> list[str]:
    """Split a field at its commas; an empty item is a slip of the pen, not a wish."""
    found = text.split(",")
    if not all(found):
        raise CronError(circle.name, f"The list {shown(text)} has an empty item.", "Remove the comma too many.")
    return found


def item_positions(item: str, circle: Circle, hash_key: str | None) -> Iterable[int]:
    """Return the positions that one item names."""
    base, slash, step_text = item.partition("/")
    step = _step(step_text, item, circle) if slash else 1
    if base.startswith("H"):
        return _hashed(base, step if slash else None, circle, hash_key)
    if base == "*":
        return range(0, circle.size, step)
    first, dash, last = base.partition("-")
    if dash:
        return _arc(_position(first, circle), _position(last, circle), step, circle)
    start = _position(first, circle) % circle.size
    return range(start, circle.size, step) if slash else (start,)


def one_position(text: str, circle: Circle) -> int:
    """Return the position of a single value."""
    return _position(text, circle) % circle.size


def number(text: str, circle: Circle) -> int | None:
    """Read a plain decimal number; None when `text` is something else."""
    if not text or not DIGITS.issuperset(text):
        return None
    if len(text) > NUMBER_DIGITS_MAX:
        raise CronError(circle.name, f"The number {shown(text)} is too long.", f"Use {circle.span}.")
    return int(text)


def weekday_is_numeric(text: str) -> bool:
    """Say whether a weekday field names a day by number, the only thing on which the two dialects differ."""
    bases = (item.partition("/")[0].partition("#")[0] for item in text.split(","))
    return any(not DIGITS.isdisjoint(base) for base in bases)


def _arc(first: int, last: int, step: int, circle: Circle) -> Iterable[int]:
    if last < first:
        last += circle.size  # 22-2 goes over midnight, MON-SUN over the end of the week
    return (position % circle.size for position in range(first, last + 1, step))


def _position(text: str, circle: Circle) -> int:
    value = circle.names.get(text)
    if value is None:
        value = number(text, circle)
    if value is None:
        raise CronError(circle.name, f"{shown(text)} is not a value of this field.", f"Use {circle.span}.")
    if not circle.low <= value <= circle.high:
        raise CronError(circle.name, f"{value} is out of range.", f"Use {circle.span}.")
    return value - circle.low


def _step(text: str, item: str, circle: Circle) -> int:
    step = number(text, circle)
    if step is None:
        raise CronError(circle.name, f"The step of {shown(item)} is not a number.", "Write one step, such as */5.")
    if not 1 <= step <= circle.size:
        # A longer step would silently mean "once": */90 in minutes is every hour, not every hour and a half.
        raise CronError(circle.name, f"The step {step} is out of range.", f"Use a step from 1 to {circle.size}.")
    return step


def _hashed(base: str, step: int | None, circle: Circle, hash_key: str | None) -> Iterable[int]:
    """Spread schedules: the same key always gets the same place, different keys get different ones."""
    if hash_key is None:
        raise CronError(circle.name, "H needs a name to take its place from.", "Write a number here instead of H.")
    first, last = _hash_bounds(base, circle)
    digest = sha256(f"{circle.name}:{hash_key}".encode("utf-8", "surrogatepass")).digest()
    draw = int.from_bytes(digest[:8], "big")
    if step is None:
        return (first + draw % (last - first + 1),)
    return range(first + draw % min(step, last - first + 1), last + 1, step)


def _hash_bounds(base: str, circle: Circle) -> tuple[int, int]:
    if base == "H":
        return 0, circle.hash_size - 1
    if not (base.startswith("H(") and base.endswith(")")):
        raise CronError(circle.name, f"{shown(base)} is not a value of this field.", "Write H, H/n or H(a-b).")
    low, _, high = base[2:-1].partition("-")
    first, last = _position(low, circle), _position(high, circle)
    if not first <= last < circle.size:
        raise CronError(circle.name, f"The range of {shown(base)} is upside down.", "Write the smaller number first.")
    return first, last
