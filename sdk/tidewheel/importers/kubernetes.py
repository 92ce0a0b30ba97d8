"""Kubernetes CronJobs as definitions: manifests as people keep them, and what `kubectl get cronjobs -o yaml` prints.

Each CronJob becomes a Schedule that is due when Kubernetes would have started a Job, and whose runs call a task of
yours with what its container was started with. A clock that jumps is met as the library does that Kubernetes uses: a
time that is left out has no run, a time that comes twice has two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import yaml

from tidewheel import yamltext
from tidewheel.importers import expressions, times
from tidewheel.importers.report import TIMEOUT, Imported, LeftOut, Remark, Tell
from tidewheel.importers.writing import FILE_BYTES_MAX, Book, Draft, File, Settings

VERSIONS = {"batch/v1", "batch/v1beta1", "batch/v2alpha1"}
OLD = VERSIONS - {"batch/v1"}
LIST_DEPTH_MAX = 4  # lists in lists: kubectl nests none
GRACE_SECONDS = 60  # the default of a schedule
BACKOFF_LIMIT = 6  # of a Job that says none
ATTEMPTS_MAX = 1000
# Kubernetes waits 10 s, 20 s, 40 s … and at most six minutes before it tries again.
BACKOFF = {"initial": "PT10S", "factor": 2.0, "max": "PT6M", "jitter": "none"}
OVERLAP = {"Allow": "allow_all", "Forbid": "skip", "Replace": "terminate_other"}
TRUE, FALSE = {"true", "yes", "on", "y"}, {"false", "no", "off", "n"}  # words that its YAML reads as such
HELM = "is a template yet: render it (helm template) and import what comes out"

# What Kubernetes writes into an object, or what says nothing about when and what.
OF_ITSELF = {
    "name", "namespace", "labels", "annotations", "creationTimestamp", "uid", "resourceVersion", "generation",
    "managedFields", "selfLink",
}  # fmt: skip
SPEC = {
    "schedule", "timeZone", "suspend", "concurrencyPolicy", "startingDeadlineSeconds", "jobTemplate",
    "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
}  # fmt: skip
JOB_SPEC = {"template", "backoffLimit", "activeDeadlineSeconds"}
POD_SPEC = {"containers", "activeDeadlineSeconds", "restartPolicy"}
CONTAINER = {"name", "image", "command", "args", "env", "imagePullPolicy"}


class Loader(yamltext.Loader):
    """A list of all CronJobs of a cluster is one document."""

    characters_max = FILE_BYTES_MAX


def convert(files: Iterable[File], settings: Settings) -> Imported:
    """Every CronJob of every file as a Schedule document. Names are unique, and the same each time."""
    book = Book(system="kubernetes-cronjob", settings=settings)
    for file in files:
        book.read(file, lambda each: _read(each, book))
    return book.imported()


def _read(file: File, book: Book) -> None:
    others: Counter[str] = Counter()
    found = 0
    for line, thing in _things(file):
        if not isinstance(thing, dict) or thing.get("kind") != "CronJob":
            others[_kind(thing)] += 1
            continue
        found += 1
        place = Remark(path=file.path, line=line, name=_place(thing), text="")
        book.put(place, partial(_draft, thing, f"{file.path}:{line}", book.settings))
    told = ", ".join(f"{kind} ({count})" for kind, count in sorted(others.items()))
    if others:
        book.remarks.append(Remark(path=file.path, text=f"holds other things too, which are no CronJobs: {told}"))
    elif not found:
        book.remarks.append(Remark(path=file.path, text="holds no CronJob"))


def _things(file: File) -> Iterator[tuple[int, Any]]:
    """All objects of a file with the line of their document, out of their lists."""
    text = file.text()
    try:
        for line, document in yamltext.documents(text, Loader):
            if document is not None:
                yield from ((line, thing) for thing in _out_of_lists(_merged(document), LIST_DEPTH_MAX))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        said = HELM if re.search(r"\{\{.*\}\}", text) else "what stands behind it was not looked at"
        problem = f"line {line} cannot be read as YAML ({error.problem}): it {said}"
        raise LeftOut(problem.replace("it what", "what"), broken=True) from error


def _out_of_lists(thing: Any, depth: int) -> Iterator[Any]:
    items = thing.get("items") if isinstance(thing, dict) else thing
    is_list = isinstance(thing, list) or (isinstance(thing, dict) and str(thing.get("kind", "")).endswith("List"))
    if not is_list or not depth:
        yield thing
    elif isinstance(items, list):
        for item in items:
            # A list of one kind need not say it again.
            named = (
                {"kind": "CronJob", "apiVersion": thing.get("apiVersion"), **item}
                if _of_cronjobs(thing, item)
                else item
            )
            yield from _out_of_lists(named, depth - 1)


def _of_cronjobs(thing: Any, item: Any) -> bool:
    return isinstance(thing, dict) and thing.get("kind") == "CronJobList" and isinstance(item, dict)


def _merged(value: Any) -> Any:
    """With what stands at `<<` taken in, as YAML 1.1 does: manifests are written so by hand."""
    if isinstance(value, list):
        return [_merged(each) for each in value]
    if not isinstance(value, dict):
        return value
    own = {key: _merged(each) for key, each in value.items() if key != "<<"}
    below = _merged(value.get("<<"))
    for part in below if isinstance(below, list) else [below]:
        own = {**part, **own} if isinstance(part, dict) else own
    return own


def _kind(thing: Any) -> str:
    kind = thing.get("kind") if isinstance(thing, dict) else None
    return kind[:60] if isinstance(kind, str) and kind else "no kind"


def _place(thing: Mapping[str, Any]) -> str:
    meta = _mapping(thing.get("metadata"))
    return "/".join(str(meta[key])[:128] for key in ("namespace", "name") if meta.get(key))


# --- one CronJob ----------------------------------------------------------------------------------------------------


def _draft(thing: Mapping[str, Any], where: str, settings: Settings, tell: Tell) -> Draft:
    meta, spec = _mapping(thing.get("metadata")), _mapping(thing.get("spec"))
    version, name = thing.get("apiVersion"), meta.get("name")
    if not isinstance(name, str) or not name:
        text = "has no name" + (": generateName makes a new one each time" if meta.get("generateName") else "")
        raise LeftOut(text, field="metadata.name", broken=True)
    if version not in VERSIONS:
        tell("apiVersion", f"{str(version)[:60]!r} is no version of CronJobs that is known: it is read as batch/v1")
    elif version in OLD:
        tell("apiVersion", f"{version} is old, and newer clusters refuse it; it is read as batch/v1")
    _unknown(meta, OF_ITSELF, "metadata", tell)
    _unknown(spec, SPEC, "spec", tell)
    _annotations(meta, tell)
    job = _mapping(_mapping(spec.get("jobTemplate")).get("spec"))
    pod = _mapping(_mapping(job.get("template")).get("spec"))
    namespace = str(meta.get("namespace") or "")
    labels = _mapping(meta.get("labels"))
    trigger, written = _trigger(spec, settings, tell)
    suspended = _flag(spec.get("suspend"), "spec.suspend")
    return Draft(
        name=name,
        twin=f"{namespace}-{name}",
        labels=({"namespace": namespace} if namespace else {}) | labels,
        note=f"{where}: {namespace + '/' if namespace else ''}{name}: {written}",
        trigger=trigger,
        policies=_policies(spec, tell),
        task="",
        calls="it is called with image, command, args and env of the container",
        payload=_payload(pod, tell),
        job=_job(spec, job, pod, tell),
        origins={
            "overlap.policy": "spec.concurrencyPolicy",
            "job.target": f"{TEMPLATE}.containers",
            "job.payload": f"{TEMPLATE}.containers",
        },
        paused_by="spec.suspend" if suspended else "",
    )


TEMPLATE = "spec.jobTemplate.spec.template.spec"


def _annotations(meta: Mapping[str, Any], tell: Tell) -> None:
    # Those of tools say how the manifest came there.
    own = sorted(
        key for key in _mapping(meta.get("annotations")) if not re.search(r"(kubernetes|k8s|helm)\.(io|sh)/", key)
    )
    if own:
        tell("metadata.annotations", f"schedules have labels and a note only; left out: {', '.join(own)[:200]}")


def _trigger(spec: Mapping[str, Any], settings: Settings, tell: Tell) -> tuple[dict[str, Any], str]:
    """The trigger, and the schedule as it was written."""
    written = spec.get("schedule")
    if not isinstance(written, str) or not written.strip():
        raise LeftOut("has no schedule", field="spec.schedule", broken=True)
    prefix = re.match(r"\s*(?:CRON_)?TZ=(\S*)\s*(.*)", written, re.DOTALL)
    text = (prefix[2] if prefix else written).strip()
    zone = spec.get("timeZone") or (prefix[1] if prefix else None) or settings.timezone
    field = "spec.timeZone" if spec.get("timeZone") else "spec.schedule"
    if prefix:
        tell(
            "spec.schedule", "a zone in front of the schedule never was official in Kubernetes; it is taken at its word"
        )
        if spec.get("timeZone") not in (None, prefix[1]):
            raise LeftOut("names two zones, and Kubernetes refuses that", field="spec.timeZone", broken=True)
    if not isinstance(zone, str) or not times.is_zone(zone):
        raise LeftOut(f"{str(zone)[:60]!r} is no zone of IANA's database", field=field, broken=True)
    if text.startswith("@every "):
        return _every(text, written, tell), written
    try:
        translated = expressions.kubernetes(text)
    except expressions.Unreadable as error:
        raise LeftOut(f"{written!r}: {error}", field="spec.schedule", broken=True) from error
    except expressions.Untranslatable as error:
        raise LeftOut(f"{written!r}: {error}", field="spec.schedule") from error
    trigger = {
        "cron": translated.cron,
        **({"day_rule": "literal"} if translated.literal else {}),
        "timezone": zone,
        "gap_policy": "skip",
        "fold_policy": "both",
    }
    return trigger, written


def _every(text: str, written: str, tell: Tell) -> dict[str, Any]:
    seconds = times.go_seconds(text.removeprefix("@every ").strip())
    if seconds is None:
        raise LeftOut(f"{written!r} has no duration", field="spec.schedule", broken=True)
    if seconds > times.LONGEST_SECONDS:
        raise LeftOut(f"{written!r} is longer than ten years", field="spec.schedule")
    tell("spec.schedule", "counts from when it is applied first; write trigger.anchor to count from another instant")
    return {"every": times.duration(seconds)}


def _policies(spec: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    concurrency = spec.get("concurrencyPolicy") or "Allow"
    if concurrency not in OVERLAP:
        raise LeftOut(f"{str(concurrency)[:60]!r} is none", field="spec.concurrencyPolicy", broken=True)
    late = _whole(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if concurrency == "Forbid" and (late is None or late > GRACE_SECONDS):
        text = "Kubernetes starts what Forbid held back when the Job before it ends, if that is within the starting "
        tell("spec.concurrencyPolicy", text + "deadline; overlap skip does not: write buffer_one for that")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec.get(name) is not None:
            tell(f"spec.{name}", "runs are kept for a time, not by number: see retention in the server's settings")
    return {**_lateness(late), "overlap": {"policy": OVERLAP[concurrency]}}


def _lateness(late: int | None) -> dict[str, Any]:
    """Of what it missed Kubernetes starts the latest only, and not when that is later than the starting deadline."""
    if late is None:
        return {"catch_up": {"policy": "latest", "window": times.duration(times.LONGEST_SECONDS)}}
    if late <= GRACE_SECONDS:
        return {"grace": times.duration(max(1, late)), "catch_up": {"policy": "skip"}}
    return {"catch_up": {"policy": "latest", "window": times.duration(min(late, times.LONGEST_SECONDS))}}


def _job(spec: Mapping[str, Any], job: Mapping[str, Any], pod: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    template = _mapping(_mapping(spec.get("jobTemplate")).get("metadata"))
    if template.get("labels") or template.get("annotations"):
        tell(
            "spec.jobTemplate.metadata", "labels and annotations of Jobs are left out: runs have those of the schedule"
        )
    _unknown(job, JOB_SPEC, "spec.jobTemplate.spec", tell)
    limit = _whole(job.get("backoffLimit"), "spec.jobTemplate.spec.backoffLimit")
    tries = (BACKOFF_LIMIT if limit is None else limit) + 1
    if tries > ATTEMPTS_MAX:
        tell("spec.jobTemplate.spec.backoffLimit", f"a run has at most {ATTEMPTS_MAX} attempts")
    together = _whole(job.get("activeDeadlineSeconds"), "spec.jobTemplate.spec.activeDeadlineSeconds")
    each = _whole(pod.get("activeDeadlineSeconds"), f"{TEMPLATE}.activeDeadlineSeconds")
    if together is not None:
        text = "Kubernetes means all attempts together, a timeout each of them: write job.deadline to bound them all"
        tell("spec.jobTemplate.spec.activeDeadlineSeconds", text)
    given = [max(1, seconds) for seconds in (together, each) if seconds is not None]
    timeout = times.duration(min(*given, times.LONGEST_SECONDS)) if given else TIMEOUT
    return {"timeout": timeout, "retry": {"max_attempts": min(tries, ATTEMPTS_MAX), **BACKOFF}}


# --- what runs --------------------------------------------------------------------------------------------------------


def _payload(pod: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        raise LeftOut("has no container", field=f"{TEMPLATE}.containers", broken=True)
    first, *others = containers
    if others:
        names = ", ".join(str(_mapping(each).get("name"))[:60] for each in others)
        tell(f"{TEMPLATE}.containers", f"the first one is passed on; left out: {names[:200]}")
    of_the_pod = sorted(str(key)[:60] for key in pod.keys() - POD_SPEC)
    if of_the_pod:
        tell(TEMPLATE, f"what belongs to pods is left out, see to it where the worker runs: {', '.join(of_the_pod)}")
    of_the_container = sorted(str(key)[:60] for key in first.keys() - CONTAINER)
    if of_the_container:
        text = f"what belongs to containers is left out, see to it where the worker runs: {', '.join(of_the_container)}"
        tell(f"{TEMPLATE}.containers[0]", text)
    command = _texts(first.get("command"), f"{TEMPLATE}.containers[0].command")
    args = _texts(first.get("args"), f"{TEMPLATE}.containers[0].args")
    if re.search(r"\$\([A-Za-z_][A-Za-z0-9_]*\)", " ".join([*command, *args])):
        tell(f"{TEMPLATE}.containers[0]", "$(NAME) stands for what env says, and is for the task to fill in")
    return {
        "image": first.get("image"),
        "command": command,
        "args": args,
        "env": dict(_environment(first.get("env"), tell)),
    }


def _environment(env: Any, tell: Tell) -> Iterator[tuple[str, str]]:
    field = f"{TEMPLATE}.containers[0].env"
    for each in env if isinstance(env, list) else ():
        variable = _mapping(each)
        name = str(variable.get("name"))[:256]
        if variable.get("valueFrom"):
            source = ", ".join(map(str, _mapping(variable["valueFrom"])))
            tell(field, f"{name} comes from elsewhere ({source[:100]}) and is left out: give it to the worker")
        elif variable.get("value") is not None:
            yield name, str(variable["value"])
        else:
            yield name, ""


def _texts(value: Any, field: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or any(isinstance(each, (dict, list)) for each in value):
        raise LeftOut("must be a list of texts", field=field, broken=True)
    return ["" if each is None else str(each) for each in value]


# --- values -----------------------------------------------------------------------------------------------------------


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _unknown(value: Mapping[str, Any], known: set[str], field: str, tell: Tell) -> None:
    left = sorted(key[:60] for key in value.keys() - known)
    if left:
        tell(field, f"has no counterpart here and is left out: {', '.join(left)[:400]}")


def _whole(value: Any, field: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise LeftOut(f"{str(value)[:60]!r} is no number from 0", field=field, broken=True)
    return value


def _flag(value: Any, field: str) -> bool:
    word = str(value).lower() if isinstance(value, (str, bool)) else ""
    if value is None or word in FALSE:
        return False
    if word not in TRUE:
        raise LeftOut(f"{str(value)[:60]!r} is neither true nor false", field=field, broken=True)
    return True
