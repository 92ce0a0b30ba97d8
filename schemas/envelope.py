"""The CloudEvents 1.0 envelope of a record: structured JSON, and binary mode on input.

Whatever a record holds, the answer is an `Envelope` or `Refused`: bytes of strangers are read here first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from schemas import values
from schemas.faults import Fault, Refused
from schemas.frozen import frozen
from schemas.limits import RECORD_BYTES_MAX, RECORD_DEPTH_MAX, deeper

ATTRIBUTE_CHARACTERS_MAX = 1024  # of id, source, type and subject: they stand in indexes and in every answer

_STRUCTURED = "application/cloudevents+json"


@frozen
class Envelope:
    """The attributes of a CloudEvent with its data still as parsed JSON."""

    id: str
    source: str
    type: str
    subject: str
    data: Any
    time: datetime | None = None


def read_envelope(value: bytes | None, headers: tuple[tuple[str, bytes], ...]) -> Envelope:
    """The CloudEvent in a record, or `Refused`. Binary mode is known by its `ce_type` header."""
    attributes = _attributes(headers) if headers else {}
    content_type = attributes.pop("content-type", "").partition(";")[0].strip().lower()
    document = parse(value or b"")
    if "type" in attributes and content_type != _STRUCTURED:
        _expect_json(content_type, "content-type")
        return _envelope({**attributes, "data": document})
    if content_type not in ("", _STRUCTURED):
        _expect_json(content_type, "content-type")
    if not isinstance(document, dict):
        raise _not_an_event("", "a CloudEvent is a JSON object")
    _expect_json(document.get("datacontenttype") or "", "datacontenttype")
    if "data_base64" in document:
        raise _not_an_event("/data_base64", "data must be JSON: put it under `data`")
    return _envelope(document)


def write_envelope(envelope: Envelope) -> bytes:
    """A CloudEvent as structured JSON, such as `read_envelope` reads."""
    document = {
        "specversion": "1.0",
        "type": envelope.type,
        "source": envelope.source,
        "subject": envelope.subject,
        "id": envelope.id,
        "time": envelope.time,
        "datacontenttype": "application/json",
        "data": envelope.data,
    }
    given = {name: value for name, value in document.items() if value is not None or name == "data"}
    return orjson.dumps(given, option=orjson.OPT_UTC_Z)


def parse(raw: bytes) -> Any:
    """Parsed JSON of at most a record's size and depth, or `Refused`."""
    if len(raw) > RECORD_BYTES_MAX:
        message = f"has {len(raw)} bytes, more than the {RECORD_BYTES_MAX} of a record"
        raise Refused(Fault(pointer="", code="too_large", message=message, remedy="pass a reference instead"))
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(Fault(pointer="", code="not_json", message=f"is not JSON: {error}")) from error
    if raw.count(b"[") + raw.count(b"{") > RECORD_DEPTH_MAX and deeper(
        document, RECORD_DEPTH_MAX
    ):  # counting brackets is quick
        message = f"JSON is nested deeper than {RECORD_DEPTH_MAX}"
        raise Refused(Fault(pointer="", code="too_deep", message=message, remedy="flatten it"))
    return document


def _attributes(headers: tuple[tuple[str, bytes], ...]) -> dict[str, str]:
    """The CloudEvents attributes among the headers, without `ce_`, and the content type."""
    found: dict[str, str] = {}
    for name, raw in headers:
        lower = name.lower()
        if raw is None or not (lower.startswith("ce_") or lower == "content-type"):
            continue
        try:
            found[lower.removeprefix("ce_")] = raw.decode()
        except UnicodeDecodeError as error:
            raise _not_an_event("", f"header {name} is not UTF-8") from error
    return found


def _expect_json(content_type: Any, name: str) -> None:
    if not isinstance(content_type, str):
        raise _not_an_event(f"/{name}", f"{name} must be a string")
    if content_type in ("", "application/json"):
        return
    kind = content_type.partition(";")[0].strip().lower()
    json = kind in ("", "application/json", "text/json") or (kind.endswith("+json") and "batch" not in kind)
    if not json:
        raise _not_an_event(f"/{name}", f"{name} {content_type[:100]!r} is not JSON: send one application/json event")


def _envelope(document: Mapping[str, Any]) -> Envelope:
    if document.get("specversion") != "1.0":
        raise _not_an_event("/specversion", 'specversion must be "1.0"')
    get: Any = document.get
    id_, source, type_, subject = texts = get("id"), get("source"), get("type"), get("subject", "")
    for text in texts:  # the usual case in one look each
        if type(text) is not str or not 0 < len(text) <= ATTRIBUTE_CHARACTERS_MAX:
            _check_texts(document)
            break
    return Envelope(id=id_, source=source, type=type_, subject=subject, data=get("data"), time=_instant(get("time")))


def _instant(time: Any) -> datetime | None:
    if type(time) is str and (known := values.KNOWN_INSTANTS.get(time)):
        return known
    return None if time is None else values.instant(time, ("", "time"))


def _check_texts(document: Mapping[str, Any]) -> None:
    """Refuse what is missing or no text; an empty subject is none of that."""
    for name in ("id", "source", "type"):
        if not document.get(name):
            raise Refused(Fault(pointer=f"/{name}", code="missing", message=f"{name} must be a non-empty string"))
    for name in ("id", "source", "type", "subject"):
        _expect_text(document.get(name, ""), name)


def _expect_text(text: Any, name: str) -> None:
    if not isinstance(text, str):
        raise values.misfit(text, ("", name), "a string")
    if len(text) > ATTRIBUTE_CHARACTERS_MAX:
        message = f"has {len(text)} characters: at most {ATTRIBUTE_CHARACTERS_MAX}"
        raise Refused(Fault(pointer=f"/{name}", code="too_long", message=message))


def _not_an_event(pointer: str, message: str) -> Refused:
    return Refused(Fault(pointer=pointer, code="not_an_event", message=message))
