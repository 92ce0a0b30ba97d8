"""Occurrence arithmetic: the instants at which a schedule is due."""

from scheduler.occurrences.cron import CronExpression, parse
from scheduler.occurrences.errors import CronError, Refused, ZoneError
from scheduler.occurrences.triggers import (
    AtTrigger,
    CronTrigger,
    Dropped,
    EveryTrigger,
    Trigger,
    between,
    count_between,
    dropped,
    last_between,
)
from scheduler.occurrences.words import describe
from scheduler.occurrences.zones import Zone, tz_version, zone

__all__ = [
    "AtTrigger",
    "CronError",
    "CronExpression",
    "CronTrigger",
    "Dropped",
    "EveryTrigger",
    "Refused",
    "Trigger",
    "Zone",
    "ZoneError",
    "between",
    "count_between",
    "describe",
    "dropped",
    "last_between",
    "parse",
    "tz_version",
    "zone",
]
