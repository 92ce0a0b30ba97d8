"""Evidence against the clock: every due occurrence has exactly one decision, every run at most one outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain

from node.audit.catalog import DEFER, SKIP, Catalog, calendars_of, closed, frozen
from node.audit.due import due, duration_seconds, instant, within
from node.audit.evidence import Decision, Evidence, Name, Story, Version
from node.audit.exclusion import excluded
from node.audit.expression import NotUnderstood
from node.audit.finishing import Chain
from node.audit.jitter import due_ms
from node.audit.report import OFFENDERS_MAX, Offender, Report

EXCLUDED, FROZEN = "excluded", "frozen"
EXCLUDED_TOGETHER_SECONDS = 86_400  # neighbours are skipped in one record, when the last of them is due


def judge(evidence: Evidence, *, offenders_max: int = OFFENDERS_MAX) -> Report:
    """Walk each schedule's versions up to its partition's mark and hold what was decided against what was due."""
    report = Report(repeated=evidence.repeated, schedules=len(evidence.stories), offenders_max=offenders_max)
    report.gaps = evidence.gaps
    report.marks = {mark.partition: mark.decided_until for mark in evidence.marks}
    marks = {mark.partition: mark for mark in evidence.marks}
    for name in sorted(evidence.stories):
        story = evidence.stories[name]
        mark = marks.get(story.partition)
        if mark is not None and mark.decided_until is not None:
            after = -1 if mark.trimmed_until is None else _floor(mark.trimmed_until)
            adopted = _adopted(story, evidence)
            report.since_adoption += adopted > after
            case = _Case(name, story, report, evidence.catalog)
            case.judge(max(after, adopted), _floor(mark.decided_until))
    for place in evidence.unreadable:
        report.accuse("unreadable", Offender(tenant="", schedule="", what=place))
    _outcomes(evidence, report)
    _undelivered(evidence, report)
    return report


def _adopted(story: Story, evidence: Evidence) -> int:
    """Until when a schedule was decided by other time zone data, which we do not have; -1: all of it by ours."""
    zones = {version.definition.get("trigger", {}).get("timezone", "UTC") for version in story.versions}
    found = (each for each in evidence.adopted if each.partition == story.partition and zones & each.zones)
    return max((_floor(each.at) for each in found), default=-1)


class _Case:
    """One schedule's occurrences in (after, until]."""

    def __init__(self, name: Name, story: Story, report: Report, catalog: Catalog) -> None:
        self._name = name
        self._story = story
        self._report = report
        self._catalog = catalog
        self._created = _by_nominal(story.created)
        self._skipped = _by_nominal(story.skipped)
        self._ranges = _Ranges(story.skipped_ranges)
        self._matched = 0
        self._is_out: Callable[[int], bool] = excluded({"trigger": {}}, "")

    def judge(self, after: int, until: int) -> None:
        self._chain = self._chained(after)
        for version in sorted(self._story.versions, key=lambda version: version.number):
            begins = max(after, _floor(version.effective_from))
            ends = until if version.effective_to is None else min(until, _floor(version.effective_to))
            try:
                self._is_out = excluded(version.definition, "/".join(self._name))
                for nominal in self._due(version, begins, ends):
                    self._occurrence(nominal, version, until)
            except (NotUnderstood, KeyError) as error:
                self._accuse("not_audited", f"version {version.number}", str(error))
            self._too_many(version)
        self._decided_without_being_due(after, until)
        self._backfilled(after, until)
        self._report.not_due.update(self._story.not_due)

    def _due(self, version: Version, begins: int, ends: int) -> Iterator[int]:
        trigger = version.definition.get("trigger") or {}  # of a schedule that only follows others there is none
        if trigger.get("from") != "finish":
            return due(version.definition, "/".join(self._name), begins, ends)
        begins, ends = within(trigger, begins, ends)
        interval, anchor = duration_seconds(trigger["every"]), instant(trigger["anchor"])
        return self._chain.due(interval, anchor, begins, ends) if begins < ends else iter(())

    def _chained(self, after: int) -> Chain:
        """Decisions of versions that count from the end of a run. What was trimmed may be what the first rests on."""
        numbers = {
            v.number: v for v in self._story.versions if (v.definition.get("trigger") or {}).get("from") == "finish"
        }
        created = {d.nominal: d.run_id for d in self._story.created if d.version in numbers}
        skipped = {d.nominal: d.nominal for d in self._story.skipped if d.version in numbers}
        skipped |= {d.nominal: d.until - 1 for d in self._story.skipped_ranges if d.version in numbers}
        is_cut = any(_floor(version.effective_from) < after for version in numbers.values())
        return Chain(created, skipped, self._story.ended, self._story.changes_ms, after if is_cut else None)

    def _occurrence(self, nominal: int, version: Version, until: int) -> None:
        self._report.due += 1
        runs, skips = self._created.pop(nominal, ()), self._skipped.pop(nominal, ())
        ranges = self._ranges.covering(nominal)
        decisions = [*runs, *skips, *ranges]
        if runs:
            self._report.created += 1
        elif decisions:
            self._report.skipped[decisions[0].reason] += 1
        elif self._story.waits_until.get(nominal, until) < until:
            waited = _text(self._story.waits_until[nominal])
            self._accuse("missing", _text(nominal), f"due by version {version.number}; waited until {waited} at most")
        elif nominal in self._story.deferred:
            self._report.pending[self._story.deferred[nominal]] += 1
        elif until - nominal < EXCLUDED_TOGETHER_SECONDS and self._is_out(nominal):
            self._report.pending[EXCLUDED] += 1
        elif self._waits_for_its_jitter(nominal, version, until):
            self._report.pending["jitter"] += 1
        else:
            self._accuse("missing", _text(nominal), f"due by version {version.number}")
        if len(decisions) > 1:
            self._accuse("duplicated", _text(nominal), ", ".join(map(_in_words, decisions)))
        self._held_or_not(nominal)
        for decision in decisions:
            if decision.run_id or decision.reason == EXCLUDED:
                self._excluded_or_not(nominal, version, decision)
            if decision.run_id or decision.reason == FROZEN:
                self._frozen_or_not(nominal, decision)
            if decision.version != version.number:
                detail = f"{_in_words(decision)} by version {decision.version}, due by version {version.number}"
                self._accuse("unexpected", _text(nominal), detail)

    def _excluded_or_not(self, nominal: int, version: Version, decision: Decision) -> None:
        """What has a run is left by all rules, and what is excluded is taken out by one."""
        zone, used = version.definition["trigger"]["timezone"], decision.used
        unnamed = calendars_of(version.definition, self._name[0]) - used.keys()
        if unnamed:
            detail = f"{_in_words(decision)}, and does not say which version of {', '.join(sorted(unnamed))} was asked"
            self._accuse("unexpected", _text(nominal), detail)
        waited = bool(decision.run_id) and nominal in self._story.deferred  # a calendar was asked before that
        out = self._is_out(nominal) or (False if waited else closed(self._catalog, used, zone, nominal))
        if out is not None and out != (decision.reason == EXCLUDED):
            detail = f"{_in_words(decision)}, which is {'not ' * (decision.reason == EXCLUDED)}excluded"
            self._accuse("unexpected", _text(nominal), detail)

    def _frozen_or_not(self, nominal: int, decision: Decision) -> None:
        """No run is of a window that skips, nor made in one that defers; and what is frozen is so by a freeze."""
        used = decision.used
        if decision.run_id:
            if nominal not in self._story.deferred:  # decided to come, before it is asked whether it may begin
                self._freeze_or_not(nominal, decision, [frozen(self._catalog, used, nominal, SKIP)], wanted=False)
            defers = [frozen(self._catalog, used, instant, DEFER) for instant in (decision.due, decision.made)]
            if defers == [True, True]:
                self._accuse("unexpected", _text(nominal), f"{_in_words(decision)}, made while a freeze defers it")
        elif nominal not in self._story.held:  # its place among those that are held was taken by a later one
            found = [frozen(self._catalog, used, instant, SKIP, DEFER) for instant in (nominal, decision.made)]
            self._freeze_or_not(nominal, decision, found, wanted=True)

    def _freeze_or_not(self, nominal: int, decision: Decision, found: list[bool | None], *, wanted: bool) -> None:
        if (True in found) != wanted and None not in found:
            detail = f"{_in_words(decision)}, and {'no' if wanted else 'a'} freeze holds then"
            self._accuse("unexpected", _text(nominal), detail)

    def _held_or_not(self, nominal: int) -> None:
        for each in self._story.held.get(nominal, ()):
            if frozen(self._catalog, each.used, each.made, DEFER) is False:
                self._accuse("unexpected", _text(nominal), f"held at {_text(each.made)}, and no freeze defers then")

    def _too_many(self, version: Version) -> None:
        limit = (version.definition.get("trigger") or {}).get("max_runs")
        runs = sum(decision.version == version.number for decision in self._story.created)
        if limit is not None and runs > limit:
            self._accuse("unexpected", f"version {version.number}", f"{runs} runs, where max_runs is {limit}")

    def _waits_for_its_jitter(self, nominal: int, version: Version, until: int) -> bool:
        if version.definition["trigger"].get("jitter") is None:
            return False
        return due_ms(version.definition, "/".join(self._name), nominal) >= until * 1000

    def _decided_without_being_due(self, after: int, until: int) -> None:
        for nominal, decisions in chain(self._created.items(), self._skipped.items()):
            if after < nominal <= until:
                for decision in decisions:
                    detail = f"{_in_words(decision)} by version {decision.version}"
                    self._accuse("unexpected", _text(nominal), detail)
        for decision, held in self._ranges.counted():
            if after < decision.nominal and decision.until <= until + 1 and held != decision.count:
                detail = f"{_in_words(decision)}: says {decision.count} occurrences, of which {held} were due"
                self._accuse("unexpected", f"{_text(decision.nominal)}/{_text(decision.until)}", detail)

    def _backfilled(self, after: int, until: int) -> None:
        live = {decision.nominal for decision in self._story.created}
        for nominal, decisions in _by_nominal(self._story.backfilled).items():
            if after < nominal <= until:
                self._report.backfilled += 1
                if len(decisions) > 1 or nominal in live:
                    self._accuse("duplicated", _text(nominal), ", ".join(map(_in_words, decisions)) + " (backfill)")

    def _accuse(self, kind: str, what: str, detail: str) -> None:
        tenant, schedule = self._name
        self._report.accuse(kind, Offender(tenant=tenant, schedule=schedule, what=what, detail=detail))


class _Ranges:
    """Skipped ranges, asked about instants in growing order."""

    def __init__(self, ranges: list[Decision]) -> None:
        self._ahead = sorted(ranges, key=lambda decision: decision.nominal, reverse=True)
        self._open: list[Decision] = []
        self._held: Counter[str] = Counter()
        self._all = ranges

    def covering(self, nominal: int) -> list[Decision]:
        while self._ahead and self._ahead[-1].nominal <= nominal:
            self._open.append(self._ahead.pop())
        self._open = [decision for decision in self._open if nominal < decision.until]
        for decision in self._open:
            self._held[decision.event] += 1
        return self._open

    def counted(self) -> Iterator[tuple[Decision, int]]:
        """Each range with the number of due occurrences that it held."""
        return ((decision, self._held[decision.event]) for decision in self._all)


def _by_nominal(decisions: list[Decision]) -> dict[int, list[Decision]]:
    found: dict[int, list[Decision]] = {}
    for decision in decisions:
        found.setdefault(decision.nominal, []).append(decision)
    return found


def _outcomes(evidence: Evidence, report: Report) -> None:
    finished = {(name, run_id) for run_id, owners in evidence.outcomes.items() for name in owners}
    for name, story in evidence.stories.items():
        report.open_runs += sum((name, run_id) not in finished for run_id in story.runs)
    for run_id, owners in sorted(evidence.outcomes.items()):
        for (tenant, schedule), events in sorted(owners.items()):
            if len(events) > 1:
                detail = ", ".join(sorted(events.values()))
                offender = Offender(tenant=tenant, schedule=schedule, what=run_id, detail=detail)
                report.accuse("double_outcomes", offender)


def _undelivered(evidence: Evidence, report: Report) -> None:
    since = evidence.delivered_since
    for (tenant, schedule), story in sorted(evidence.stories.items()):
        for run_id, created_at in story.runs.items():
            if ((tenant, schedule), run_id) not in evidence.delivered and (since is None or created_at > since):
                report.accuse("undelivered", Offender(tenant=tenant, schedule=schedule, what=run_id))


def _in_words(decision: Decision) -> str:
    return f"skipped {decision.reason}" if decision.reason else f"run {decision.run_id}"


def _floor(instant: datetime) -> int:
    return int(instant.timestamp() // 1)


def _text(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
