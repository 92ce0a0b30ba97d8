"""Quartz's job files (`job-scheduling-data`, of Quartz 2 and Quartz.NET) as definitions.

Each trigger becomes a Schedule whose runs call a task that is named after the job's class, with the job's data and the
trigger's on top of it. Quartz tries a job once, and lets runs overlap unless the class forbids it, which no file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from tidewheel.importers import expressions, times, xmltext
from tidewheel.importers.report import TIMEOUT, Imported, LeftOut, Remark, Tell, slug
from tidewheel.importers.writing import FILE_BYTES_MAX, Book, Draft, File, Settings
from tidewheel.importers.xmltext import Element

GROUP = "DEFAULT"
PRIORITY = 5
KINDS = {"cron": "cron", "simple": "simple", "calendar-interval": "calendar-interval"}
OF_TRIGGERS = {
    "name", "group", "description", "job-name", "job-group", "priority", "calendar-name", "job-data-map", "start-time",
    "start-time-seconds-in-future", "end-time", "misfire-instruction", "cron-expression", "time-zone", "repeat-count",
    "repeat-interval", "repeat-interval-unit",
}  # fmt: skip
OF_JOBS = {"name", "group", "description", "job-class", "job-type", "durability", "durable", "recover", "job-data-map"}
UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}
SKIP, LATEST, ALL = "skip", "latest", "all"
# What happens to what was missed. What is not here is Quartz's own choice, which depends on the kind of the trigger.
MISFIRE = {
    "DO_NOTHING": SKIP,
    "FIRE_ONCE_NOW": LATEST,
    "FIRE_NOW": LATEST,
    "IGNORE_MISFIRE_POLICY": ALL,
    "RESCHEDULE_NEXT_WITH_EXISTING_COUNT": SKIP,
    "RESCHEDULE_NEXT_WITH_REMAINING_COUNT": SKIP,
    "RESCHEDULE_NOW_WITH_EXISTING_REPEAT_COUNT": LATEST,
    "RESCHEDULE_NOW_WITH_REMAINING_REPEAT_COUNT": LATEST,
}
MILLIS = 1000
INTEGER_DIGITS_MAX = 15  # 30,000 years of milliseconds; longer numbers are not whole in every reader of JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a trigger names."""

    cls: str
    description: str
    data: Mapping[str, str]
    recover: bool


@dataclass(slots=True, kw_only=True)
class _Jobs:
    by_name: dict[tuple[str, str], Job] = field(default_factory=dict)
    used: set[tuple[str, str]] = field(default_factory=set)


def convert(files: Iterable[File], settings: Settings) -> Imported:
    """Every trigger of every file as a Schedule document. Names are unique, and the same each time."""
    book = Book(system="quartz", settings=settings)
    for file in files:
        book.read(file, lambda each: _read(each, book))
    return book.imported()


def _read(file: File, book: Book) -> None:
    if len(file.data) > FILE_BYTES_MAX:
        raise LeftOut(f"is larger than {FILE_BYTES_MAX} bytes: split it", broken=True)
    root = xmltext.parse(file.data)
    if root.tag != "job-scheduling-data":
        form = "is a file of Quartz 1: write it in the form of Quartz 2" if root.tag == "quartz" else "is no job file"
        raise LeftOut(f"{form} (its root is {root.tag[:60]!r}, not 'job-scheduling-data')", broken=True)
    for each in root.children:
        if each.tag != "schedule":
            text = "is about what a scheduler has already, and is left out: see `tidewheel schedules delete`"
            book.remarks.append(Remark(path=file.path, line=each.line, field=each.tag[:60], text=text))
    jobs = _jobs(root, file, book)
    triggers = [each for schedule in root.all("schedule") for each in schedule.all("trigger")]
    for trigger in triggers:
        _put(trigger, jobs, file, book)
    for group, name in sorted(jobs.by_name.keys() - jobs.used):
        text = "no trigger names this job: put a kind: Job of that name and start it by hand"
        book.remarks.append(Remark(path=file.path, name=_shown(group, name), field="job", text=text, left_out=True))
    if triggers:
        text = "whether runs may overlap stands in the class, not here: write overlap skip where it forbids it"
        book.remarks.append(Remark(path=file.path, field="job-class", text=text))
    elif not jobs.by_name:
        book.remarks.append(Remark(path=file.path, text="holds no trigger"))


def _jobs(root: Element, file: File, book: Book) -> _Jobs:
    jobs = _Jobs()
    for schedule in root.all("schedule"):
        for each in schedule.children:
            place = Remark(path=file.path, line=each.line, name=_name(each), text="")
            if each.tag == "job":
                _take(each, jobs, place, book)
            elif each.tag != "trigger":
                book.leave_out(place, LeftOut(f"{each.tag[:60]!r} is neither a job nor a trigger", broken=True))
    return jobs


def _take(element: Element, jobs: _Jobs, place: Remark, book: Book) -> None:
    name, cls = element.value("name"), element.value("job-class", "job-type")
    if not name or not cls:
        book.leave_out(place, LeftOut("a job needs a name and a class", broken=True))
        return
    for field_, text in _odd(element, OF_JOBS, "job"):
        book.remarks.append(Remark(path=place.path, line=place.line, name=place.name, field=field_, text=text))
    job = Job(
        cls=cls.partition(",")[0].strip(),  # .NET says the assembly behind the type
        description=element.value("description") or "",
        data=_data(element),
        recover=_is_true(element.value("recover")),
    )
    jobs.by_name[element.value("group") or GROUP, name] = job


def _put(trigger: Element, jobs: _Jobs, file: File, book: Book) -> None:
    for each in trigger.children:
        place = Remark(path=file.path, line=each.line, name=_name(each), text="")
        if each.tag not in KINDS:
            book.leave_out(place, LeftOut(f"triggers of the kind {each.tag[:60]!r} are not known"))
            continue
        book.put(place, partial(_draft, each, jobs, f"{file.path}:{each.line}", book.settings))


# --- one trigger ------------------------------------------------------------------------------------------------------


def _draft(trigger: Element, jobs: _Jobs, where: str, settings: Settings, tell: Tell) -> Draft:
    name, group = trigger.value("name"), trigger.value("group") or GROUP
    if not name:
        raise LeftOut("a trigger needs a name", field="name", broken=True)
    key = (trigger.value("job-group") or GROUP, trigger.value("job-name") or "")
    jobs.used.add(key)
    job = jobs.by_name.get(key)
    if job is None:
        raise LeftOut(
            f"no job of this file has the name {_shown(*key)[:100]!r}: import both together", field="job-name"
        )
    for field_, text in _odd(trigger, OF_TRIGGERS, "trigger"):
        tell(field_, text)
    if job.recover:
        tell("recover", "a run whose worker dies counts as tried: write retry.max_attempts 2 to have it run again")
    when, written = _trigger(trigger, settings, tell)
    described = [text for text in (trigger.value("description"), job.description) if text]
    return Draft(
        name=name,
        twin=f"{group}-{name}",
        labels={"group": group} if group != GROUP else {},
        note="\n".join([f"{where}: {_shown(group, name)}: {written}", *described]),
        trigger=when,
        policies={"catch_up": _catch_up(trigger, tell), "overlap": {"policy": "allow_all"}},
        task=job.cls,
        calls=f"it does what {job.cls[:100]} does, and is called with the data map",
        payload={**job.data, **_data(trigger)},
        job={"timeout": TIMEOUT, "retry": {"max_attempts": 1}, **_priority(trigger)},
        origins={
            "trigger.start_at": "start-time",
            "trigger.end_at": "end-time" if trigger.first("end-time") else "repeat-count",
            "trigger.max_runs": "repeat-count",
            "job.priority": "priority",
            "job.target": "job-class",
            "job.payload": "job-data-map",
        },
    )


def _trigger(trigger: Element, settings: Settings, tell: Tell) -> tuple[dict[str, Any], str]:
    """When, and how that was written."""
    edges = _edges(trigger, settings, tell)
    calendar = trigger.value("calendar-name")
    if calendar:
        edges["exclude"] = {"calendars": [slug(calendar)]}
        text = f"its days are not in this file: put a kind: Calendar of the name {slug(calendar)} that has them"
        tell("calendar-name", text)
    if trigger.tag == "cron":
        return _cron(trigger, edges, settings, tell)
    if trigger.tag == "simple":
        return _simple(trigger, edges, times.text(settings.now), tell)
    return _interval(trigger, edges, tell)


def _cron(trigger: Element, edges: dict[str, Any], settings: Settings, tell: Tell) -> tuple[dict[str, Any], str]:
    written = " ".join((trigger.value("cron-expression") or "").split())
    zone = trigger.value("time-zone")
    if not zone:
        tell("time-zone", f"is not said, so Quartz took its machine's; here it is {settings.timezone} (--timezone)")
    if not times.is_zone(zone or settings.timezone):
        raise LeftOut(f"{zone[:60] if zone else settings.timezone!r} is no zone of IANA's database", field="time-zone")
    try:
        translated = expressions.quartz(written.upper())
    except expressions.Unreadable as error:
        raise LeftOut(f"{written!r}: {error}", field="cron-expression", broken=True) from error
    except expressions.Untranslatable as error:
        raise LeftOut(f"{written!r}: {error}", field="cron-expression") from error
    edges.pop("anchor", None)
    zone = zone or settings.timezone
    times.bounded((translated.first, translated.last), zone, edges, settings.now, "cron-expression")
    return {"cron": translated.cron, "timezone": zone, **edges}, written


def _simple(trigger: Element, edges: dict[str, Any], now: str, tell: Tell) -> tuple[dict[str, Any], str]:
    repeats = _integer(trigger, "repeat-count", 0, lowest=-1)
    if repeats == 0:
        if "anchor" not in edges:
            text = "runs once, when Quartz reads the file: put its job as a kind: Job and start it by hand"
            raise LeftOut(text, field="repeat-count")
        if "start_at" not in edges:
            raise LeftOut(f"ran once, at {edges['anchor']}", field="start-time")
        return {"at": [edges["start_at"]], **{key: edges[key] for key in ("exclude",) if key in edges}}, "once"
    millis = _integer(trigger, "repeat-interval", 0, lowest=0)
    if millis < MILLIS or millis % MILLIS:
        raise LeftOut(f"{millis} ms are no whole seconds, at least one", field="repeat-interval")
    if millis // MILLIS > times.LONGEST_SECONDS:
        raise LeftOut(f"{millis} ms are longer than ten years", field="repeat-interval")
    every = times.duration(millis // MILLIS)
    if repeats > 0 and "anchor" not in edges:
        edges["max_runs"] = repeats + 1
    elif repeats > 0 and (last := _last(edges["anchor"], repeats * millis // MILLIS)) is not None:
        if last <= now:
            raise LeftOut(f"ran for the last time before {last}", field="repeat-count")
        edges["end_at"] = min(last, edges.get("end_at", last))
    return {"every": every, **_from_anchor(edges, "repeat-interval", tell)}, f"every {every}"


def _last(anchor: str, seconds: int) -> str | None:
    """The end of a range that holds so many seconds and their last one; None when nobody lives to see it."""
    begin, _ = times.instant(anchor, "UTC", "start-time")
    try:
        return times.text(begin + timedelta(seconds=seconds + 1))
    except OverflowError:
        return None


def _interval(trigger: Element, edges: dict[str, Any], tell: Tell) -> tuple[dict[str, Any], str]:
    count, unit = (
        _integer(trigger, "repeat-interval", 1, lowest=1),
        (trigger.value("repeat-interval-unit") or "DAY").upper(),
    )
    if unit not in UNITS:
        text = f"{count} {unit[:20]} have no fixed length: write a cron expression with the day and month that you mean"
        raise LeftOut(text, field="repeat-interval-unit")
    seconds = count * UNITS[unit]
    if seconds > times.LONGEST_SECONDS:
        raise LeftOut(f"{count} {unit} are longer than ten years", field="repeat-interval")
    if seconds >= UNITS["DAY"]:
        text = "a day has 24 hours here, so the time of the day moves when clocks are changed: write cron to keep it"
        tell("repeat-interval-unit", text)
    every = times.duration(seconds)
    return {"every": every, **_from_anchor(edges, "repeat-interval", tell)}, f"every {count} {unit}"


def _from_anchor(edges: dict[str, Any], field_: str, tell: Tell) -> dict[str, Any]:
    """An interval begins with its anchor."""
    if "anchor" not in edges:
        tell(field_, "counts from when it is applied first; write trigger.anchor to count from another instant")
    return {name: value for name, value in edges.items() if name != "start_at"}


def _edges(trigger: Element, settings: Settings, tell: Tell) -> dict[str, Any]:
    """Beginning and end. A beginning that is past begins nothing any more, but an interval still counts from it."""
    found: dict[str, Any] = {}
    if (text := trigger.value("start-time")) is not None:
        start = _instant(text, "start-time", settings, tell)
        found["anchor"] = start
        if start > times.text(settings.now):
            found["start_at"] = start
    elif trigger.value("start-time-seconds-in-future") not in (None, "0"):
        tell("start-time-seconds-in-future", "counts from when Quartz reads the file, and is left out")
    if (text := trigger.value("end-time")) is not None:
        end = _instant(text, "end-time", settings, tell)
        if end <= times.text(settings.now):
            raise LeftOut(f"ended at {end}", field="end-time")
        found["end_at"] = end
        if end <= found.get("anchor", ""):
            raise LeftOut("ends before it starts", field="end-time", broken=True)
    return found


def _instant(text: str, field_: str, settings: Settings, tell: Tell) -> str:
    instant, said = times.instant(text, settings.timezone, field_)
    if not said:
        tell(field_, f"has no offset, so Quartz took its machine's zone; here it is {settings.timezone} (--timezone)")
    return times.text(instant)


def _catch_up(trigger: Element, tell: Tell) -> dict[str, Any]:
    word = (trigger.value("misfire-instruction") or "").upper().removeprefix("MISFIRE_INSTRUCTION_")
    policy = MISFIRE.get(word, _smart(trigger))
    if word not in {"", "SMART_POLICY", *MISFIRE}:
        tell("misfire-instruction", f"{word[:60]!r} is not known: it is taken for SMART_POLICY")
    if policy == ALL:
        tell("misfire-instruction", "Quartz fires all that it missed; here the latest 100 (raise catch_up.limit)")
    if word.startswith("RESCHEDULE_NOW"):
        tell(
            "misfire-instruction",
            "what was missed has one run; the runs after it stay where they were, and do not move",
        )
    return {"policy": policy} if policy == SKIP else {"policy": policy, "window": times.duration(times.LONGEST_SECONDS)}


def _smart(trigger: Element) -> str:
    """What Quartz does when it is told nothing: a simple trigger without end goes on with the next, others fire now."""
    return SKIP if trigger.tag == "simple" and trigger.value("repeat-count") == "-1" else LATEST


def _priority(trigger: Element) -> dict[str, str]:
    priority = _integer(trigger, "priority", PRIORITY, lowest=0)
    if priority == PRIORITY:
        return {}
    return {"priority": "critical" if priority > PRIORITY else "bulk"}


# --- values -----------------------------------------------------------------------------------------------------------


def _data(element: Element) -> dict[str, str]:
    found = element.first("job-data-map")
    entries = found.all("entry") if found is not None else ()
    return {key: entry.value("value") or "" for entry in entries if (key := entry.value("key"))}


def _integer(element: Element, tag: str, otherwise: int, *, lowest: int) -> int:
    text = element.value(tag)
    if text is None:
        return otherwise
    digits = text.removeprefix("-")
    number = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= INTEGER_DIGITS_MAX else lowest - 1
    if number < lowest:
        raise LeftOut(f"{text[:60]!r} is no number from {lowest}", field=tag, broken=True)
    return number


def _odd(element: Element, known: set[str], kind: str) -> Iterable[tuple[str, str]]:
    left = sorted({each.tag[:60] for each in element.children if each.tag not in known})
    return [(kind, f"has no counterpart here and is left out: {', '.join(left)[:400]}")] if left else []


def _is_true(text: str | None) -> bool:
    return text in {"true", "1"}


def _name(element: Element) -> str:
    name = element.value("name") or ""
    return _shown(element.value("group") or GROUP, name) if name else ""


def _shown(group: str, name: str) -> str:
    return (name if group == GROUP else f"{group}.{name}")[:128]
