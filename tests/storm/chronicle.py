"""What the topics say of runs and attempts, read for the judge of a storm over workers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from schemas import topics
from tests.storm.judge import Attempt, Duplicate, Finish, Key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.audit.source import LogSource


class Chronicle:
    """The story of all runs. A fact that stands there twice, under the same id, is told once."""

    def __init__(self, source: LogSource) -> None:
        self.created: list[str] = []
        self.finishes: list[Finish] = []
        self.attempts: dict[Key, Attempt] = {}
        self.duplicates: list[Duplicate] = []
        known = set[str]()
        for fact in (*_facts(source, topics.RUNS), *_facts(source, topics.RUN_EVENTS)):
            if fact.get("id") not in known:
                known.add(fact["id"])
                self._note(fact["type"], fact["data"])

    def _note(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "tidewheel.run.created.v1":
                if data["run_id"] not in self.created:
                    self.created.append(data["run_id"])
            case "tidewheel.run.finished.v1" if not data.get("repeat"):
                self.finishes.append(Finish(run=data["run_id"], outcome=data["outcome"], reason=data.get("reason", "")))
            case "tidewheel.attempt.started.v1":
                member = data["worker"].partition(".")[0]
                self._note_attempt(data, worker=member, started_at=instant(data["started_at"]))
            case "tidewheel.attempt.finished.v1":
                self._note_attempt(data, outcome=data["outcome"])
            case "tidewheel.attempt.duplicate.v1":
                self.duplicates.append(Duplicate(run=data["run_id"], token=data["handout"], reported=data["reported"]))

    def _note_attempt(self, data: dict[str, Any], **said: Any) -> None:
        key = Key(data["run_id"], data["attempt"], data["handout"])
        self.attempts[key] = replace(self.attempts.get(key, Attempt()), **said)


def instant(text: str) -> float:
    """Seconds of the epoch."""
    return datetime.fromisoformat(text).timestamp()


def _facts(source: LogSource, topic: str) -> Iterator[dict[str, Any]]:
    for partition in range(source.partitions(topic)):
        for entry in source.entries(topic, partition, source.begin(topic, partition)):
            if isinstance(entry.value, dict) and "type" in entry.value:
                yield entry.value
