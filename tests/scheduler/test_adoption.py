"""A newer tz database: what is decided by it, what it moves, and what nobody has to live through twice.

The database before is given as the rules that were noted when it was adopted: `2026e`, by which Chihuahua is on
Mountain time (noon is 18:00Z in summer time, 19:00Z else) or wherever the test says. The installed one has it at UTC-6.
"""

from __future__ import annotations

from typing import Any

import pytest

from runtime.machine import PARTITION
from scheduler import keys
from scheduler.core import SchedulerCore
from scheduler.occurrences import rules
from schemas import codec
from schemas.facts import Fact, OccurrenceMoved, OccurrenceSkipped, RunCreated, TzAdopted
from schemas.scheduling import MarkMoved, SkipRequested, TzRulesNoted, ZoneRule
from tests.scheduler.harness import ONE, TZ, Shell, at, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}
CHIHUAHUA: dict[str, Any] = {"trigger": {"timezone": "America/Chihuahua"}, **ANY}
MOUNTAIN = "-25200;;MST7"  # an hour behind: noon is 19:00Z
EASTERN = "-18000;;EST5"  # an hour ahead: noon is 17:00Z


class Older:
    """A partition that a process with an older database has decided in, up to now."""

    def __init__(self, shell: Shell, rule: str, *, zone: str = "America/Chihuahua") -> None:
        self.shell = shell
        shared = shell.shared
        noted = TzRulesNoted(
            role="scheduler", partition=0, version=TZ,
            rules=tuple(ZoneRule(rule=told, zones=(name,)) for name, told in {**rules.installed(), zone: rule}.items()),
        )  # fmt: skip
        shared.rows.put(keys.TZ_RULES, codec.dump(noted))

    def opened(self, version: str = "2027a") -> list[Fact]:
        """Another process, with the installed database under a newer name, takes the partition over."""
        self.shell.core = SchedulerCore(ONE, 0, version)
        self.shell.reload()
        states = [state for key, state in sorted(self.shell.states.items()) if key != PARTITION]
        facts = list(self.shell.core.opened(iter(states), self.shell.shared, self.shell.now))
        for fact in facts:
            self.shell.apply(fact)
        return facts


def shell_with(now: str, **schedules: dict[str, Any]) -> Shell:
    shell = Shell(now)
    for name, body in schedules.items():
        shell.put(name, body)
    shell.settle()
    return shell


def test_a_new_partition_notes_what_its_database_says_of_every_zone():
    """So that whoever adopts a newer one knows the difference; some hundred rules for all of some 600 zones."""
    shell = shell_with("2026-11-02T10:00:00", s=definition(**ANY))
    (noted,) = shell.all(TzRulesNoted)
    told = {name: each.rule for each in noted.rules for name in each.zones}
    assert told["America/Chihuahua"] == "-21600;;CST6"
    assert told["Europe/London"] == "0;;GMT0BST,M3.5.0/1,M10.5.0"
    assert len(noted.rules) < len(told) / 3
    assert len(codec.dump(noted)) < 32_000


def test_a_newer_database_is_adopted_with_the_difference_that_it_makes():
    """Of three schedules one has its next occurrence at another instant: the others look at no clock, or at another."""
    shell = shell_with(
        "2026-11-02T10:00:00",
        noon=definition("0 12 * * *", **CHIHUAHUA),
        berlin=definition("0 12 * * *", trigger={"timezone": "Europe/Berlin"}, **ANY),
        quarter={"trigger": {"every": "PT15M", "timezone": "America/Chihuahua"}, "job": definition()["job"], **ANY},
    )
    adopted = Older(shell, MOUNTAIN).opened()[0]
    assert adopted == TzAdopted(
        role="scheduler", partition=0, version="2027a", adopted_at=at("2026-11-02T10:00:00"), previous="2026f",
        zones=("America/Chihuahua",), schedules=3, moved_count=1,
        moved=(
            OccurrenceMoved(
                tenant="acme", schedule="noon", was=at("2026-11-02T19:00:00"), becomes=at("2026-11-02T18:00:00")
            ),
        ),
    )  # fmt: skip
    shell.until("2026-11-03T20:00:00")
    assert shell.created("noon") == ["18:00", "18:00"]
    assert {run.tz_version for run in shell.all(RunCreated, "noon")} == {"2027a"}


def test_a_database_by_which_nothing_is_different_moves_nothing():
    shell = shell_with("2026-11-02T10:00:00", noon=definition("0 12 * * *", **CHIHUAHUA))
    adopted, noted = Older(shell, rules.installed()["America/Chihuahua"]).opened()
    assert isinstance(adopted, TzAdopted)
    assert (adopted.zones, adopted.moved_count, adopted.moved) == ((), 0, ())
    assert isinstance(noted, TzRulesNoted)
    assert noted.version == "2027a"


def test_what_is_not_known_of_the_database_before_is_not_made_up():
    """A partition whose former owner was of a version that noted no rules."""
    shell = shell_with("2026-11-02T10:00:00", noon=definition("0 12 * * *", **CHIHUAHUA))
    older = Older(shell, MOUNTAIN)
    shell.shared.rows.delete(keys.TZ_RULES)
    adopted = older.opened()[0]
    assert isinstance(adopted, TzAdopted)
    assert adopted.zones is None


def test_whoever_opens_it_again_has_nothing_to_say():
    shell = shell_with("2026-11-02T10:00:00", noon=definition("0 12 * * *", **CHIHUAHUA))
    older = Older(shell, MOUNTAIN)
    assert older.opened()
    assert older.opened() == []


def test_a_partition_without_noted_rules_gets_them_from_the_next_process():
    shell = shell_with("2026-11-02T10:00:00", noon=definition("0 12 * * *", **CHIHUAHUA))
    older = Older(shell, MOUNTAIN)
    shell.shared.rows.delete(keys.TZ_RULES)
    assert [type(fact) for fact in older.opened(TZ)] == [TzRulesNoted]


# --- a local time that was decided already ------------------------------------------------------------------------


def decided_an_hour_early(**body: Any) -> Shell:
    """By Eastern time noon was 17:00Z, and is decided; at 17:30Z the installed database, by which 18:00Z is."""
    shell = shell_with("2026-11-02T10:00:00", day=definition(body.pop("cron", "0 12 * * *"), **{**CHIHUAHUA, **body}))
    shell.apply(MarkMoved(tenant="acme", schedule="day", until=at("2026-11-02T17:00:00")))
    shell.sleep_until("2026-11-02T17:30:00")
    return shell


def test_a_local_time_that_was_decided_by_the_older_database_is_not_decided_again():
    """Each local day has one run of a fixed time: what comes again is skipped, and says by which database it was."""
    shell = decided_an_hour_early()
    adopted = Older(shell, EASTERN).opened()[0]
    assert isinstance(adopted, TzAdopted)
    assert adopted.repeated_count == 1
    shell.until("2026-11-03T19:00:00")
    assert shell.created("day") == ["18:00"]
    assert shell.last_run("day").nominal_time == at("2026-11-03T18:00:00")
    (skipped,) = shell.all(OccurrenceSkipped, "day")
    assert (skipped.reason, skipped.nominal_time) == ("requested", at("2026-11-02T18:00:00"))
    assert skipped.detail == "by tz 2027a: 2026-11-02T12:00:00 was decided by 2026f already, as 2026-11-02T17:00:00Z"


@pytest.mark.parametrize(
    "body",
    [{"cron": "*/30 * * * *"}, {"trigger": {"timezone": "America/Chihuahua", "fold_policy": "both"}}],
    ids=["it follows the real clock", "it wants both passes of a fold"],
)
def test_who_does_not_mean_a_local_time_once_lives_through_it_again(body: dict[str, Any]) -> None:
    shell = decided_an_hour_early(**body)
    Older(shell, EASTERN).opened()
    assert shell.all(SkipRequested, "day") == []
