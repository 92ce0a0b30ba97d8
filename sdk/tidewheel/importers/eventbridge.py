"""EventBridge as definitions: schedules of EventBridge Scheduler, and rules that run by time.

Read are what `aws scheduler get-schedule`, `aws events describe-rule` and `list-rules` print, several of them in a file
too, and CloudFormation templates. Terraform is not: `terraform apply` made schedules that `get-schedule` prints.
A time that a jump of the clock leaves out has no run, one that comes twice has one, as with EventBridge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from tidewheel import yamltext
from tidewheel.importers import expressions, templates, times
from tidewheel.importers.report import Imported, LeftOut, Remark, Tell
from tidewheel.importers.writing import Book, Draft, File, Settings, refuse_templates

SCHEDULE, RULE = "AWS::Scheduler::Schedule", "AWS::Events::Rule"
UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
DAY_SECONDS = 86_400
ATTEMPTS_MAX = 1000
RATE_DIGITS_MAX = 9
JSON_DEPTH_MAX = 64
PARAMETERS = (
    "EcsParameters", "EventBridgeParameters", "KinesisParameters", "SageMakerPipelineParameters", "SqsParameters",
    "BatchParameters", "HttpParameters", "RedshiftDataParameters", "RunCommandParameters", "AppSyncParameters",
    "InputPath", "InputTransformer",
)  # fmt: skip
TARGET = {"Arn", "Id", "RoleArn", "Input", "RetryPolicy", "DeadLetterConfig", *PARAMETERS}
OF_SCHEDULES = {
    "Name", "Arn", "Description", "GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "StartDate",
    "EndDate", "State", "FlexibleTimeWindow", "Target", "CreationDate", "LastModificationDate", "ActionAfterCompletion",
}  # fmt: skip
OF_RULES = {
    "Name",
    "Arn",
    "Description",
    "ScheduleExpression",
    "State",
    "Targets",
    "EventBusName",
    "RoleArn",
    "CreatedBy",
    "Tags",
}
FILLED = (("scheduled-time", "nominal_time"), ("execution-id", "run_id"))  # what both know of a run
FILLED_MAX = 100  # places that a payload may have
SERVERLESS = "AWS::Serverless::"
PROCESSED = "import what `aws cloudformation get-template --template-stage Processed` prints"
SAM = f"is made into a rule by SAM: {PROCESSED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing with a time and one target. `known`: what a template's parameters are."""

    name: str
    fields: Mapping[str, Any]
    target: Mapping[str, Any]
    is_rule: bool
    where: str


def convert(files: Iterable[File], settings: Settings) -> Imported:
    """Every schedule, and every target of every rule with a time, as a Schedule document."""
    book = Book(system="eventbridge", settings=settings)
    for file in files:
        book.read(file, lambda each: _read(each, book))
    return book.imported()


def _read(file: File, book: Book) -> None:
    documents = list(_documents(file))
    if not documents:
        book.remarks.append(Remark(path=file.path, text="holds no schedule"))
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("Resources"), dict):
            _template(file, document, book)
        else:
            _printed(file, document, book)


def _documents(file: File) -> Iterator[Any]:
    """What a file holds: YAML, JSON, or JSON texts one behind the other, as a loop over a command leaves them."""
    text = file.text()
    if re.search(r'^resource\s+"', text, re.MULTILINE):
        told = "is Terraform, which is not read: import what `aws scheduler get-schedule` prints"
        raise LeftOut(told, broken=True)
    if (several := _several(text)) is not None:
        yield from several
        return
    try:
        yield from (document for _, document in yamltext.documents(text, templates.Loader) if document is not None)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        text_ = f"line {line} can be read neither as YAML nor as JSON ({error.problem})"
        raise LeftOut(text_, broken=True) from error


def _several(text: str) -> list[Any] | None:
    """The JSON texts of a file, where it is more than one; None otherwise."""
    decoder, position, found = json.JSONDecoder(), 0, []
    blank = re.compile(r"\s*")
    try:
        while (position := blank.match(text, position).end()) < len(text):  # type: ignore[union-attr]
            if text[position] not in "{[":
                return None
            value, position = decoder.raw_decode(text, position)
            found.append(value)
        return found if len(found) > 1 else None
    except (ValueError, RecursionError):
        return None


def _printed(file: File, document: Any, book: Book) -> None:
    """What a command of `aws` printed."""
    for each in _out_of_lists(document):
        if not isinstance(each, dict):
            book.leave_out(Remark(path=file.path, text=""), LeftOut("holds what is no schedule", broken=True))
            continue
        name = str(each.get("Name") or "")[:128]
        place = Remark(path=file.path, name=name, text="")
        if "ScheduleExpression" not in each:
            book.leave_out(place, _without_time(each))
            continue
        is_rule = "FlexibleTimeWindow" not in each and ("EventBusName" in each or ":events:" in str(each.get("Arn")))
        targets = each.get("Targets") if is_rule else [each.get("Target")]
        _put(file, name, each, targets, is_rule=is_rule, book=book)


def _out_of_lists(document: Any) -> Iterator[Any]:
    for value in document if isinstance(document, list) else [document]:
        inner = next((value[key] for key in ("Schedules", "Rules") if isinstance(value, dict) and key in value), None)
        yield from inner if isinstance(inner, list) else [value]


def _without_time(each: Mapping[str, Any]) -> LeftOut:
    if ":schedule/" in str(each.get("Arn")):
        group = each.get("GroupName") or "default"
        command = f"aws scheduler get-schedule --name {each.get('Name')} --group-name {group}"
        return LeftOut(f"list-schedules does not print when: import what `{command}` prints"[:400])
    return LeftOut("runs by events, not by time" if each.get("EventPattern") else "has no ScheduleExpression")


def _template(file: File, template: Mapping[str, Any], book: Book) -> None:
    known = templates.defaults(template)
    for logical, resource in template["Resources"].items():
        place = Remark(path=file.path, name=logical[:128], text="")
        if not isinstance(resource, dict):
            book.leave_out(place, LeftOut(f"is no resource yet: {PROCESSED}"))
            continue
        kind = resource.get("Type")
        if isinstance(kind, str) and kind.startswith(SERVERLESS) and _has_schedule(resource):
            book.leave_out(place, LeftOut(SAM))
        if kind not in (SCHEDULE, RULE):
            continue
        given = resource.get("Properties")
        given = given if isinstance(given, dict) else {}
        fields = templates.resolved(given, known)
        _tell_functions(given, place, book)
        if kind == RULE and "ScheduleExpression" not in fields:
            book.leave_out(place, LeftOut("runs by events, not by time"))
            continue
        if resource.get("Condition"):
            book.say(place, "is deployed under a condition, which is not looked at", field="Condition")
        targets = fields.get("Targets") if kind == RULE else [fields.get("Target")]
        _put(file, logical, fields, targets, is_rule=kind == RULE, book=book)


def _has_schedule(resource: Mapping[str, Any]) -> bool:
    """Whether a function of SAM has an event of the kind Schedule or ScheduleV2."""
    properties = resource.get("Properties")
    events = properties.get("Events") if isinstance(properties, dict) else None
    kinds = (
        {str(each.get("Type")) for each in events.values() if isinstance(each, dict)}
        if isinstance(events, dict)
        else set()
    )
    return bool(kinds & {"Schedule", "ScheduleV2"})


def _tell_functions(given: Mapping[str, Any], place: Remark, book: Book) -> None:
    for field, value in given.items():
        names = sorted(set(templates.functions_in(value)))
        if names:
            told = "parameters have their defaults, the rest stands as ${…}: fill it in"
            book.say(place, f"{', '.join(names)[:100]}: {told}", field=field)


def _put(file: File, name: str, fields: Mapping[str, Any], targets: Any, *, is_rule: bool, book: Book) -> None:
    """A schedule for each target: a rule has up to five, and prints them elsewhere."""
    found = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    given = fields.get("Name")
    base = given if isinstance(given, str) and given else name
    for index, target in enumerate(found or [{}]):
        place = Remark(path=file.path, name=name[:128], text="")
        own = f"{base}-{target.get('Id') or index + 1}" if len(found) > 1 else base
        item = Item(name=own, fields=fields, target=target, is_rule=is_rule, where=f"{file.path}: {name}")
        book.put(place, partial(_draft, item, book.settings))


# --- one schedule -----------------------------------------------------------------------------------------------------


def _draft(item: Item, settings: Settings, tell: Tell) -> Draft:
    fields, target = item.fields, item.target
    written = fields.get("ScheduleExpression")
    _refuse_unknown(written, "ScheduleExpression")
    if not isinstance(written, str):
        raise LeftOut("is no text", field="ScheduleExpression", broken=True)
    left = sorted(str(key)[:60] for key in fields.keys() - (OF_RULES if item.is_rule else OF_SCHEDULES))
    if left:
        tell("", f"has no counterpart here and is left out: {', '.join(left)[:400]}")
    state = fields.get("State") or "ENABLED"
    group = fields.get("EventBusName" if item.is_rule else "GroupName")
    name = item.name
    description = fields.get("Description")
    return Draft(
        name=name,
        twin=f"{group or 'default'}-{name}",
        labels={"group": group} if isinstance(group, str) and group != "default" else {},
        note=f"{item.where}: {written}" + (f"\n{description}" if description else ""),
        trigger=_trigger(item, written, settings, tell),
        policies={"overlap": {"policy": "allow_all"}},
        task=task_of(target) or name,
        calls="it is called with arn, input and parameters of the target, and with rights of its own, not RoleArn's",
        payload=_payload(target, item, tell),
        job=_job(target, tell),
        origins={
            "trigger.jitter": "FlexibleTimeWindow",
            "trigger.start_at": "StartDate",
            "trigger.end_at": "EndDate",
            "job.target": "Target.Arn",
            "job.payload": "Target.Input",
        },
        fills_in=True,
        paused_by="" if str(state).startswith("ENABLED") else "State",
    )


def _trigger(item: Item, written: str, settings: Settings, tell: Tell) -> dict[str, Any]:
    match = re.fullmatch(r"\s*(cron|rate|at)\((.*)\)\s*", written, re.DOTALL)
    if match is None:
        raise LeftOut(
            f"{written[:60]!r} is neither cron(…) nor rate(…) nor at(…)", field="ScheduleExpression", broken=True
        )
    kind, text = match[1], match[2].strip()
    zone = item.fields.get("ScheduleExpressionTimezone") or "UTC"
    if not isinstance(zone, str) or not times.is_zone(zone):
        raise LeftOut(f"{str(zone)[:60]!r} is no zone of IANA's database", field="ScheduleExpressionTimezone")
    if kind == "at":
        return {"at": [_at(text, zone, settings, tell)], **_spread(item.fields)}
    edges, spread = _edges(item.fields, settings), _spread(item.fields)
    if kind == "rate":
        edges.pop("start_at", None)  # the anchor begins it
        return {"every": _rate(text, "anchor" in edges, tell), **edges, **spread}
    edges.pop("anchor", None)
    translated = _cron(text, written)
    times.bounded((translated.first, translated.last), zone, edges, settings.now, "ScheduleExpression")
    return {"cron": translated.cron, "timezone": zone, "gap_policy": "skip", **edges, **spread}


def _cron(text: str, written: str) -> expressions.Translated:
    try:
        return expressions.eventbridge(text)
    except expressions.Unreadable as error:
        raise LeftOut(f"{written!r}: {error}", field="ScheduleExpression", broken=True) from error
    except expressions.Untranslatable as error:
        raise LeftOut(f"{written!r}: {error}", field="ScheduleExpression") from error


def _rate(text: str, anchored: bool, tell: Tell) -> str:  # noqa: FBT001 -- whether it says what it counts from
    match = re.fullmatch(r"(\d+)\s+(minute|hour|day)s?", text, re.ASCII)
    count = int(match[1]) if match and len(match[1]) <= RATE_DIGITS_MAX else 0
    if match is None or not count:
        raise LeftOut(f"'rate({text[:40]})' is no rate", field="ScheduleExpression", broken=True)
    seconds = count * UNITS[match[2]]
    if seconds > times.LONGEST_SECONDS:
        raise LeftOut(f"'rate({text[:40]})' is longer than ten years", field="ScheduleExpression")
    if not anchored:
        tell(
            "ScheduleExpression",
            "counts from when it is applied first; write trigger.anchor to count from another instant",
        )
    return times.duration(seconds)


def _at(text: str, zone: str, settings: Settings, tell: Tell) -> str:
    instant, _ = times.instant(text, zone, "ScheduleExpression")
    if instant <= settings.now:
        raise LeftOut(f"'at({text})' is past", field="ScheduleExpression")
    tell(
        "ScheduleExpression",
        f"at({text}) in {zone} is {times.text(instant)}; a later change of that zone's rules is not followed",
    )
    return times.text(instant)


def _edges(fields: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Beginning and end. A beginning that is past begins nothing any more, but a rate still counts from it."""
    found = {}
    for name in ("StartDate", "EndDate"):
        _refuse_unknown(fields.get(name), name)
    if fields.get("StartDate") is not None:
        start, _ = times.instant(fields["StartDate"], "UTC", "StartDate")
        found["anchor"] = times.text(start)
        if start > settings.now:
            found["start_at"] = times.text(start)
    if fields.get("EndDate") is not None:
        end, _ = times.instant(fields["EndDate"], "UTC", "EndDate")
        if end <= settings.now:
            raise LeftOut(f"ended at {times.text(end)}", field="EndDate")
        found["end_at"] = times.text(end)
        if found["end_at"] <= found.get("anchor", ""):
            raise LeftOut("ends before it starts", field="EndDate", broken=True)
    return found


def _spread(fields: Mapping[str, Any]) -> dict[str, Any]:
    window = fields.get("FlexibleTimeWindow")
    if not isinstance(window, dict) or window.get("Mode") != "FLEXIBLE":
        return {}
    minutes = _whole(window.get("MaximumWindowInMinutes"), "FlexibleTimeWindow")
    return {"jitter": times.duration(60 * minutes)} if minutes else {}


def _payload(target: Mapping[str, Any], item: Item, tell: Tell) -> dict[str, Any]:
    if not target:
        hint = f"`aws events list-targets-by-rule --rule {item.name}` prints them" if item.is_rule else ""
        tell(
            "Targets" if item.is_rule else "Target",
            f"is not in the file, so arn and input are empty; {hint}".rstrip("; "),
        )
    left = sorted(str(key)[:60] for key in target.keys() - TARGET)
    if left:
        tell("Target", f"has no counterpart here and is left out: {', '.join(left)[:400]}")
    if "InputTransformer" in target or "InputPath" in target:
        tell("Target", "InputPath and InputTransformer look into an event, which there is none of: see parameters")
    parameters = {key: target[key] for key in PARAMETERS if key in target}
    refuse_templates([target.get("Arn"), parameters], "Target")
    payload = {"arn": target.get("Arn"), "input": _input(target.get("Input"), tell)}
    return payload | ({"parameters": parameters} if parameters else {})


def _input(value: Any, tell: Tell) -> Any:
    """What a target is called with: JSON, with the scheduled time filled in by us as it was by EventBridge."""
    if not isinstance(value, str):
        refuse_templates(value, "Target.Input")
        return value
    refuse_templates(value, "Target.Input")
    text = value
    if text.count("<aws.scheduler.") <= FILLED_MAX:
        for theirs, ours in FILLED:
            text = text.replace(f"<aws.scheduler.{theirs}>", f"{{{{ {ours} }}}}")
    if left := sorted(set(re.findall(r"<aws\.scheduler\.[a-z-]+>", text))):
        tell("Target.Input", f"{', '.join(left)[:200]}: is passed on as it stands, for the task to fill in")
    try:
        return json.loads(text, parse_constant=_no_json, parse_int=_integer)
    except (ValueError, RecursionError):
        return text


def _no_json(word: str) -> Any:
    raise ValueError(word)


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:  # noqa: PLR2004 -- the digits of 64 bits, with a sign
        raise ValueError(text)
    return int(text)


def _job(target: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    job: dict[str, Any] = {}
    policy = target.get("RetryPolicy")
    policy = policy if isinstance(policy, dict) else {}
    retries = _whole(policy.get("MaximumRetryAttempts"), "Target.RetryPolicy")
    age = _whole(policy.get("MaximumEventAgeInSeconds"), "Target.RetryPolicy")
    if age:
        job["deadline"] = times.duration(min(age, times.LONGEST_SECONDS))
    if retries is not None:
        job["retry"] = {"max_attempts": min(retries + 1, ATTEMPTS_MAX)}
    if policy:
        tell(
            "Target.RetryPolicy",
            "EventBridge repeats the call of a target only; here the task's work is what is repeated",
        )
    if target.get("DeadLetterConfig"):
        tell("Target.DeadLetterConfig", "runs that are given up stand in the topic dead-letters, not in a queue of SQS")
    return job


def task_of(target: Mapping[str, Any]) -> str:
    """The name of what is called: a function, a queue, a definition of a task, or an operation of the SDK."""
    ecs = target.get("EcsParameters")
    definition = ecs.get("TaskDefinitionArn") if isinstance(ecs, dict) else None
    if isinstance(definition, str) and definition:
        return _last(definition).partition(":")[0] or definition
    arn = target.get("Arn")
    if not isinstance(arn, str):
        return ""
    if unknown := re.match(r"\$\{([A-Za-z0-9]+)[^}]*\}$", arn):
        return unknown[1]
    if ":aws-sdk:" in arn:
        return ".".join(arn.partition(":aws-sdk:")[2].split(":")) or arn
    service, _, rest = arn.removeprefix("arn:").partition(":")[2].partition(":")
    resource = rest.split(":", 2)[-1]
    if service in {"lambda", "states"}:  # function:NAME:ALIAS, stateMachine:NAME
        return resource.partition(":")[2].partition(":")[0] or arn
    return _last(resource) or arn


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _refuse_unknown(value: Any, field: str) -> None:
    if isinstance(value, str) and templates.UNKNOWN in value:
        raise LeftOut(f"is not known before it is deployed: {value[:60]}", field=field)


def _whole(value: Any, field: str) -> int | None:
    if value is None:
        return None
    _refuse_unknown(value, field)
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1 or not 0 <= value <= 10**9:
        raise LeftOut(f"{str(value)[:60]!r} is no number from 0", field=field, broken=True)
    return int(value)
