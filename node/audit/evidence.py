"""What the topics say, sorted by schedule: versions, decisions, runs and outcomes, each event id once.

Marks are read first, versions next, events last: whatever is due up to a mark was decided before the mark was written,
so its decision is among the events even on a log that goes on growing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from node.audit.catalog import Catalog
from node.audit.finishing import Ended
from node.audit.source import AuditSource, Entry
from schemas import identity, topics
from schemas.frozen import frozen

FOOTER_KEY = "\0footer"
FOOTER_LOOK_BACK = 2000  # records of a changelog: the last transaction's footer is nearly always among so many
# Append times come from one clock, decisions from another that may be this far ahead before it is held (design: Clock).
CLOCKS_APART = timedelta(seconds=10)

Name = tuple[str, str]  # tenant, schedule


@frozen
class Mark:
    """A partition's word that all up to `decided_until` is decided; decisions up to `trimmed_until` are not kept."""

    partition: int
    decided_until: datetime | None
    trimmed_until: datetime | None


@frozen
class Version:
    """What decides nominal instants in (effective_from, effective_to]."""

    number: int
    definition: Mapping[str, Any]
    effective_from: datetime
    effective_to: datetime | None
    tz_version: str


@frozen
class Adopted:
    """From `at` on a partition decides by another time zone database, in which these zones are not what they were."""

    partition: int
    at: datetime
    zones: frozenset[str]


@frozen
class Decision:
    """One word about one occurrence, or about `count` of them in [nominal, until). `of`: a rerun of another run."""

    event: str
    version: int
    nominal: int
    reason: str = ""
    run_id: str = ""
    until: int = 0
    count: int = 1
    used: Mapping[str, int] = field(default_factory=dict)
    due: int = 0  # of a run
    made: int = 0  # when it was decided; of one that a freeze holds, when it met the freeze


@dataclass(slots=True)
class Story:
    """Everything about one schedule."""

    partition: int
    versions: list[Version] = field(default_factory=list)
    created: list[Decision] = field(default_factory=list)  # by schedule and catch-up
    backfilled: list[Decision] = field(default_factory=list)
    skipped: list[Decision] = field(default_factory=list)
    skipped_ranges: list[Decision] = field(default_factory=list)
    deferred: dict[int, str] = field(default_factory=dict)
    held: dict[int, list[Decision]] = field(default_factory=dict)  # by freezes
    waits_until: dict[int, int] = field(default_factory=dict)  # those that wait for other schedules, and how long
    not_due: dict[str, int] = field(default_factory=dict)
    runs: dict[str, datetime] = field(default_factory=dict)  # every run, and when it was created
    ended: dict[str, Ended] = field(default_factory=dict)  # by the first outcome that was written
    changes_ms: list[int] = field(default_factory=list)  # when what is in force changed


@dataclass(slots=True)
class Evidence:
    """Everything an audit judges."""

    marks: list[Mark] = field(default_factory=list)
    stories: dict[Name, Story] = field(default_factory=dict)
    outcomes: dict[str, dict[Name, dict[str, str]]] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    delivered: set[tuple[Name, str]] = field(default_factory=set)  # runs that stand on `runs`
    delivered_since: datetime | None = None  # earlier ones may be gone from there
    repeated: int = 0  # events that were written more than once, with the same id: nothing wrong
    unreadable: list[str] = field(default_factory=list)
    adopted: list[Adopted] = field(default_factory=list)  # newer time zone data, by which clocks show something else
    gaps: list[Mapping[str, Any]] = field(default_factory=list)  # input that partitions went on without, accepted


def gather(source: AuditSource) -> Evidence:
    """Read a log from its oldest record to its newest."""
    return _Reading(source).all()


class _Reading:
    def __init__(self, source: AuditSource) -> None:
        self._source = source
        self._schedule_partitions = source.partitions(topics.SCHEDULE_CHANGES)
        self._evidence = Evidence()
        self._seen: set[str] = set()

    def all(self) -> Evidence:
        marks = {partition: self._decided_until(partition) for partition in self._partitions(_CHANGELOG)}
        self._versions()
        for partition in self._partitions(topics.CATALOG):
            self._catalog(partition)
        trimmed = {partition: self._events(partition) for partition in self._partitions(topics.RUN_EVENTS)}
        self._seen.clear()
        for partition in self._partitions(topics.RUN_OUTCOMES):
            self._outcomes(partition)
        self._seen.clear()
        for partition in self._partitions(topics.RUNS):
            self._runs(partition)
        self._evidence.marks = [
            Mark(partition=partition, decided_until=mark, trimmed_until=trimmed.get(partition))
            for partition, mark in marks.items()
        ]
        return self._evidence

    def _partitions(self, topic: str) -> range:
        return range(self._source.partitions(topic))

    # --- marks ----------------------------------------------------------------------------------------------------

    def _decided_until(self, partition: int) -> datetime | None:
        """The mark in the newest footer, looked for from the end."""
        begin, end = self._source.begin(_CHANGELOG, partition), self._source.end(_CHANGELOG, partition)
        look_back = FOOTER_LOOK_BACK
        while begin < end:
            start = max(begin, end - look_back)
            footers = [e.value for e in self._source.entries(_CHANGELOG, partition, start) if e.key == FOOTER_KEY]
            if footers:
                return datetime.fromisoformat(footers[-1]["decided_until"])
            if start == begin:
                break
            look_back *= 8
        return None

    # --- versions -------------------------------------------------------------------------------------------------

    def _versions(self) -> None:
        for partition in self._partitions(topics.VERSIONS):
            newest: dict[str, Any] = {}
            for entry in self._entries(topics.VERSIONS, partition):
                newest[entry.key] = entry.value
            for event in newest.values():
                if event is not None:
                    self._version(event["data"])

    def _version(self, data: Mapping[str, Any]) -> None:
        ends = data.get("effective_to")
        version = Version(
            number=data["version"],
            definition=data["definition"],
            effective_from=datetime.fromisoformat(data["effective_from"]),
            effective_to=None if ends is None else datetime.fromisoformat(ends),
            tz_version=data["tz_version"],
        )
        self._story(data).versions.append(version)

    def _catalog(self, partition: int) -> None:
        for entry in self._entries(topics.CATALOG, partition):
            if entry.value is not None and entry.value["type"] == "tidewheel.catalog.entry.v1":
                self._evidence.catalog.take(entry.value["data"])

    # --- events ---------------------------------------------------------------------------------------------------

    def _events(self, partition: int) -> datetime | None:
        """Take in the story of a partition; the instant up to which it is no longer told, if any."""
        trimmed: datetime | None = None
        was_trimmed = self._source.begin(topics.RUN_EVENTS, partition) > 0
        for entry in self._entries(topics.RUN_EVENTS, partition):
            if was_trimmed and trimmed is None:
                trimmed = entry.appended_at + CLOCKS_APART
            event = entry.value
            if event["type"] == "tidewheel.history.trimmed.v1" and event["data"]["role"] == "scheduler":
                until = datetime.fromisoformat(event["data"]["until"])
                trimmed = until if trimmed is None else max(trimmed, until)
            elif event["type"] == "tidewheel.tz.adopted.v1":
                self._adopted(event["data"])
            elif event["type"] == "tidewheel.catalog.adopted.v1":
                for adopted in event["data"].get("entries", ()):
                    self._evidence.catalog.take(adopted)
            elif event["type"] == "tidewheel.gap.accepted.v1" and self._is_new(event["id"]):
                self._gap(event["data"], entry.appended_at)
            elif (take := _TAKEN.get(event["type"])) is not None and self._is_new(event["id"]):
                take(self._story(event["data"]), event["data"], event["id"])
        return trimmed

    def _adopted(self, data: Mapping[str, Any]) -> None:
        at, zones = datetime.fromisoformat(data["adopted_at"]), frozenset(data.get("zones") or ())
        if zones:
            self._evidence.adopted.append(Adopted(partition=data["partition"], at=at, zones=zones))

    def _gap(self, data: Mapping[str, Any], appended_at: datetime) -> None:
        """Note what was accepted; runs of a former topic `runs` are known not to stand on this one."""
        self._evidence.gaps.append(data)
        if data["topic"] == topics.RUNS:
            since = appended_at + CLOCKS_APART
            self._evidence.delivered_since = max(since, self._evidence.delivered_since or since)

    def _outcomes(self, partition: int) -> None:
        for entry in self._entries(topics.RUN_OUTCOMES, partition):
            event = entry.value
            if event["type"] == "tidewheel.run.finished.v1" and self._is_new(event["id"]):
                data = event["data"]
                runs = self._evidence.outcomes.setdefault(data["run_id"], {})
                name = (data["tenant"], data["schedule"])
                runs.setdefault(name, {})[event["id"]] = data["outcome"]
                if name in self._evidence.stories:
                    ended = Ended(finished=_seconds(data["finished_at"]), written_ms=_millis(entry.appended_at))
                    self._evidence.stories[name].ended.setdefault(data["run_id"], ended)

    def _runs(self, partition: int) -> None:
        """What a dispatcher gets to read. Only asked whether it is there: it may be there more than once."""
        evidence = self._evidence
        if self._source.begin(topics.RUNS, partition) > 0:
            first = next(self._entries(topics.RUNS, partition), None)
            since = datetime.max.replace(tzinfo=UTC) if first is None else first.appended_at + CLOCKS_APART
            evidence.delivered_since = max(since, evidence.delivered_since or since)
        for entry in self._entries(topics.RUNS, partition):
            if entry.value["type"] == "tidewheel.run.created.v1":
                data = entry.value["data"]
                evidence.delivered.add(((data["tenant"], data["schedule"]), data["run_id"]))

    # --- both -----------------------------------------------------------------------------------------------------

    def _entries(self, topic: str, partition: int) -> Iterator[Entry]:
        """The events of a partition; what is none is noted and left out."""
        for entry in self._source.entries(topic, partition, self._source.begin(topic, partition)):
            value = entry.value
            if value is None or (isinstance(value, dict) and {"id", "type", "data"} <= value.keys()):
                yield entry
            else:
                self._evidence.unreadable.append(f"{topic}-{partition}@{entry.offset}")

    def _is_new(self, event_id: str) -> bool:
        if event_id in self._seen:
            self._evidence.repeated += 1
            return False
        self._seen.add(event_id)
        return True

    def _story(self, data: Mapping[str, Any]) -> Story:
        name = (data["tenant"], data["schedule"])
        story = self._evidence.stories.get(name)
        if story is None:
            # Records of `versions` are keyed by version; the mark that counts is that of the schedule's own partition.
            partition = identity.partition_of("/".join(name), self._schedule_partitions)
            story = self._evidence.stories[name] = Story(partition=partition)
        return story


def _created(story: Story, data: Mapping[str, Any], event: str) -> None:
    story.runs[data["run_id"]] = datetime.fromisoformat(data["created_at"])
    if data.get("nominal_time") is None or data.get("of") is not None:
        return  # a run of its own, or another run of what was decided before
    nominal = _seconds(data["nominal_time"])
    decision = Decision(
        event=event, version=data["version"], nominal=nominal, run_id=data["run_id"], used=data.get("used", {}),
        due=_seconds(data["due_at"]), made=_seconds(data["created_at"]),
    )  # fmt: skip
    if data["cause"] in ("schedule", "catch_up"):
        story.created.append(decision)
    elif data["cause"] == "backfill":
        story.backfilled.append(decision)


def _skipped(story: Story, data: Mapping[str, Any], event: str) -> None:
    reason, version, used = data["reason"], data["version"], data.get("used", {})
    if (span := data.get("range")) is not None:
        story.skipped_ranges.append(
            Decision(
                event=event,
                version=version,
                nominal=_seconds(span["from"]),
                until=_seconds(span["to"]),
                count=span["count"],
                reason=reason,
                used=used,
            )
        )
    elif data.get("nominal_time") is not None:
        story.skipped.append(
            Decision(
                event=event, version=version, nominal=_seconds(data["nominal_time"]), reason=reason, used=used,
                made=_seconds(data["decided_at"]),
            )
        )  # fmt: skip
    else:
        story.not_due[reason] = story.not_due.get(reason, 0) + 1


def _deferred(story: Story, data: Mapping[str, Any], event: str) -> None:
    nominal, reason = _seconds(data["nominal_time"]), data["reason"]
    story.deferred[nominal] = reason
    if reason == "frozen":
        made = _seconds(data.get("since", data["decided_at"]))
        held = Decision(
            event=event, version=data["version"], nominal=nominal, reason=reason, used=data.get("used", {}), made=made
        )
        story.held.setdefault(nominal, []).append(held)
    story.waits_until.pop(nominal, None)
    if reason == "waiting" and data.get("until"):
        story.waits_until[nominal] = _seconds(data["until"])


def _changed(story: Story, data: Mapping[str, Any], _event: str) -> None:
    story.changes_ms.append(_millis(datetime.fromisoformat(data["effective_at"])))


_CHANGELOG = topics.changelog_topic("scheduler")
_TAKEN = {
    "tidewheel.run.created.v1": _created,
    "tidewheel.occurrence.skipped.v1": _skipped,
    "tidewheel.occurrence.deferred.v1": _deferred,
    **{f"tidewheel.schedule.{word}.v1": _changed for word in ("accepted", "paused", "resumed", "deleted")},
}


def _millis(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())
