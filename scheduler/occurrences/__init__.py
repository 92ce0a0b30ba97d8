"""Occurrence arithmetic: the instants at which a schedule is due, exactly and cheaply, through every clock change.

Duty. Text and numbers in, immutable triggers out; a trigger says what is due after an instant. Nothing here asks what
time it is or keeps anything but tables that follow from its arguments, so there is nothing that a crash could lose.

    "0 2 * * *" ──parse──▶ CronExpression ─┐                          ┌─▶ next_after(after)    one answer
                                           ├─▶ CronTrigger ──readings─┼─▶ between(after, until)   all of them
    "Europe/London" ──zone──▶ Zone ────────┘     EveryTrigger         ├─▶ count_between, last_between    without a walk
                       (segments of one offset)  AtTrigger            ├─▶ dropped    what a policy left out
                                   UnionTrigger: several crons        └─▶ describe    a sentence for people

Two kinds of whole seconds. An *instant* counts from 1970-01-01T00:00:00Z; a *reading* is what a wall clock shows,
counted as if that clock stood in UTC. A zone is a list of segments with one offset each; inside a segment readings and
instants differ by a constant, so the walk over an expression's readings is plain addition, and it only ever goes up.
Where two segments meet, readings are skipped (a gap) or shown twice (a fold):

- an expression with a fixed time (neither minute nor hour begins with `*`) follows its policies: in a gap `shift` to
  the first instant after it, once for all readings skipped, or `skip`; in a fold `first`, `second` or `both`;
- any other follows the real clock: nothing is made up in a gap, both passes of a fold count.

Windows are (after, until]: the end of one is the beginning of the next, and cutting a window anywhere loses and doubles
nothing. Answers are looked for 40 years ahead, which is as far apart as two occurrences of anything can be.

A trigger may be bounded (`WindowTrigger`): what lies outside of [start, end) is not due.

What is refused (`CronError`, `RuleError`, `ZoneError`) says which field, why, and what to write instead: what
can never fire, what could be meant two ways, and what hides something (other scripts' digits, blanks that are none).

    cron, fields, days    an expression: text, fields, which days of a month
    rrule, dates          a recurrence rule: text, and its days by dateutil, a year at a time
    readings              the readings that it names: tables and the inner loop
    tzif, zones           the pinned time zone database, and nothing of the machine's own
    exclusions, windows   what is taken out again, and by which rule
    triggers, words       what is due, and how to say it
"""

from scheduler.occurrences.cron import CronExpression, parse
from scheduler.occurrences.errors import CronError, Refused, RuleError, ZoneError
from scheduler.occurrences.exclusions import Exclusion, Exclusions, Taken
from scheduler.occurrences.rrule import Recurrence, parse_rule
from scheduler.occurrences.triggers import (
    AtTrigger,
    CronTrigger,
    Dropped,
    EveryTrigger,
    Trigger,
    UnionTrigger,
    WindowTrigger,
    between,
    clocks,
    count_between,
    dropped,
    last_between,
)
from scheduler.occurrences.windows import Windows
from scheduler.occurrences.words import describe
from scheduler.occurrences.zones import Zone, tz_version, zone

__all__ = [
    "AtTrigger",
    "CronError",
    "CronExpression",
    "CronTrigger",
    "Dropped",
    "EveryTrigger",
    "Exclusion",
    "Exclusions",
    "Recurrence",
    "Refused",
    "RuleError",
    "Taken",
    "Trigger",
    "UnionTrigger",
    "WindowTrigger",
    "Windows",
    "Zone",
    "ZoneError",
    "between",
    "clocks",
    "count_between",
    "describe",
    "dropped",
    "last_between",
    "parse",
    "parse_rule",
    "tz_version",
    "zone",
]
