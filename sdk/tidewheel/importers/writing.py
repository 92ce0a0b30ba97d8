"""From what an importer found to the documents of a definition file.

Importers write what the contract has words for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tidewheel import jsontext
from tidewheel.importers.report import NOTE_LENGTH_MAX, Imported, LeftOut, Remark, Tell, free, slug, template_in

FILE_BYTES_MAX = 16 * 1024 * 1024  # what a definition file may have too; thousands of schedules fit
LABELS_MAX, LABEL_LENGTH_MAX, LABEL_VALUE_LENGTH_MAX = 32, 128, 256
PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX = 64 * 1024, 16
TASK_LENGTH_MAX = 256
PAUSED_LABEL = "imported-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as it lies there."""

    path: str
    data: bytes

    def text(self) -> str:
        """Its text; `LeftOut` when it has none."""
        if len(self.data) > FILE_BYTES_MAX:
            raise LeftOut(f"is larger than {FILE_BYTES_MAX} bytes: split it", broken=True)
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise LeftOut(f"is not UTF-8: {error}", broken=True) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What files do not say. `task` None: each thing that is run gets a task that is named after it."""

    now: datetime
    tenant: str | None = None
    timezone: str = "UTC"
    queue: str = "default"
    task: str | None = None


@dataclass(slots=True, kw_only=True)
class Draft:
    """A schedule before it has its name. `origins` says which field of the source became which of the definition."""

    name: str
    twin: str  # tells it from another of the same name
    labels: Mapping[str, str]
    note: str
    trigger: dict[str, Any]
    policies: dict[str, Any]  # grace, catch_up, overlap
    task: str  # empty: the schedule's own name
    calls: str  # what the task is to do, for whoever writes it
    payload: dict[str, Any]
    job: dict[str, Any]  # timeout, retry, deadline, priority
    origins: dict[str, str]
    paused_by: str = ""  # the field that says that it does not run
    fills_in: bool = False  # the payload has templates of ours, and its importer saw that there were no others


@dataclass(slots=True, kw_only=True)
class Book:
    """Collects what becomes of all files."""

    system: str
    settings: Settings
    documents: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def read(self, file: File, things: Callable[[File], None]) -> None:
        """What `things` makes of a file; one that cannot be read is said."""
        try:
            things(file)
        except LeftOut as reason:
            self.leave_out(Remark(path=file.path, text=""), reason)

    def put(self, place: Remark, draft: Callable[[Tell], Draft]) -> None:
        """A schedule, or the reason why it is left out. `place` is a remark without words yet."""

        def tell(origin: str, text: str) -> None:
            self.say(place, text, field=origin)

        try:
            self._write(draft(tell), tell)
        except LeftOut as reason:
            self.leave_out(place, reason)

    def say(self, place: Remark, text: str, *, field: str = "") -> None:
        """A remark on a place."""
        self.remarks.append(replace(place, text=text, field=field))

    def leave_out(self, place: Remark, reason: LeftOut) -> None:
        """Nothing is made of a place."""
        told = replace(place, text=reason.text, field=reason.field, left_out=True, broken=reason.broken)
        self.remarks.append(told)

    def imported(self) -> Imported:
        """All of it."""
        return Imported(documents=tuple(self.documents), remarks=tuple(self.remarks))

    def _write(self, draft: Draft, tell: Tell) -> None:
        _check_payload(draft)
        name = free(slug(draft.name), slug(draft.twin), self._taken)
        task = self.settings.task or draft.task or name
        if len(task) > TASK_LENGTH_MAX:
            raise LeftOut(f"{task[:60]!r} cannot be the name of a task", field=draft.origins.get("job.target", ""))
        document = _document(self, draft, name, task, tell)
        self._taken.add(name)
        self.documents.append(document)
        if self.settings.task is None:
            where = f"with @worker.task({json.dumps(task)}), for the queue {self.settings.queue}"
            tell(draft.origins.get("job.target", ""), f"write a task {where}: {draft.calls}")
        if draft.paused_by:
            shown = f"{self.settings.tenant}/{name}" if self.settings.tenant else name
            text = "does not run where it comes from, but a definition cannot say so: right behind `tidewheel apply`, "
            tell(draft.paused_by, f"{text}do `tidewheel schedules pause {shown}`")


def _document(book: Book, draft: Draft, name: str, task: str, tell: Tell) -> dict[str, Any]:
    settings = book.settings
    mine = {"imported-from": book.system} | ({PAUSED_LABEL: "paused"} if draft.paused_by else {})
    return {
        "kind": "Schedule",
        **({"tenant": settings.tenant} if settings.tenant else {}),
        "name": name,
        "labels": mine | _labels(draft.labels, LABELS_MAX - len(mine), tell),
        "note": draft.note[:NOTE_LENGTH_MAX],
        "trigger": draft.trigger,
        **draft.policies,
        "job": {
            "queue": settings.queue,
            "target": {"type": "task", "name": task},
            "payload": draft.payload,
            **draft.job,
        },
    }


def _labels(labels: Mapping[str, Any], places: int, tell: Tell) -> dict[str, str]:
    """Those that fit our rules; each of the others is said."""
    kept: dict[str, str] = {}
    for key, value in labels.items():
        if not 1 <= len(key) <= LABEL_LENGTH_MAX or not isinstance(value, str) or len(value) > LABEL_VALUE_LENGTH_MAX:
            tell("labels", f"{key[:60]!r} is left out: a label has a name of {LABEL_LENGTH_MAX} characters and a text")
        elif len(kept) == places:
            tell("labels", f"{key[:60]!r} is left out: a schedule has at most {LABELS_MAX} labels")
        else:
            kept[key] = value
    return kept


def _check_payload(draft: Draft) -> None:
    origin = draft.origins.get("job.payload", "")
    if not draft.fills_in:
        refuse_templates(draft.payload, origin)
    if _deeper(draft.payload, PAYLOAD_DEPTH_MAX):
        raise LeftOut(f"it is nested deeper than {PAYLOAD_DEPTH_MAX}: pass a reference instead", field=origin)
    try:
        jsontext.dumps_strictly([draft.payload, draft.note, dict(draft.labels)])
        size = len(json.dumps(draft.payload, ensure_ascii=False, separators=(",", ":")).encode())
    except ValueError as error:
        raise LeftOut(f"it has no JSON: {error}", field=origin) from error
    if size > PAYLOAD_BYTES_MAX:
        text = f"it has {size} bytes of JSON, and at most {PAYLOAD_BYTES_MAX} are taken: pass a reference instead"
        raise LeftOut(text, field=origin)


def refuse_templates(value: Any, origin: str) -> None:
    """`LeftOut` where something would be filled in that was not meant so."""
    if (template := template_in(value)) is not None:
        text = f"it holds {template!r}, which would be filled in here: give it to the task in another way"
        raise LeftOut(text, field=origin)


def _deeper(value: Any, limit: int) -> bool:
    layer = [value]
    for _ in range(limit + 1):
        layer = [each for each in layer if isinstance(each, (dict, list))]
        if not layer:
            return False
        layer = [item for each in layer for item in (each.values() if isinstance(each, dict) else each)]
    return True
