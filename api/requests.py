"""What stands in a request: its body and its preconditions, checked before anything is done."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

from api.problems import Problem
from schemas import codec, identity, refusals
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fastapi import Request

NAMES = "1-128 of A-Z a-z 0-9 . _ - and start with a letter or digit"
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}\Z")


async def raw_body(request: Request) -> bytes:
    """The body, which must say that it is JSON: a form that a web page can send without asking never does."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, "unsupported_media_type", "Send JSON, with Content-Type: application/json.")
    return body


async def json_object(request: Request) -> dict[str, Any]:
    """The body as an object; an absent one is empty."""
    body = await raw_body(request)
    document = codec.parse(body) if body else {}
    if not isinstance(document, dict):
        raise Refused(Fault(pointer="", code="type", message="must be a JSON object"))
    return document


def only(document: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse fields that nothing reads, each with the nearest one that is read."""
    names = tuple(known)
    faults = [refusals.unknown_field(name, names, "") for name in document if name not in names]
    if faults:
        raise Refused(*faults)


def name(text: str, what: str) -> str:
    """A name in a path; one that cannot be is not found, whatever the method."""
    if not identity.is_name(text):
        fault = Fault(pointer=f"/{what}", code="name", message=f"must be {NAMES}")
        raise Problem(404, "not_found", f"{text[:128]!r} cannot be the name of a {what}.", faults=[fault])
    return text


def command_id(request: Request) -> str:
    """The id of the command that this request becomes: the client's key, so that a repeat is known as one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return secrets.token_hex(16)
    if not IDEMPOTENCY_KEY.match(key):
        raise Problem(400, "idempotency_key", "Idempotency-Key is 1-128 visible ASCII characters.")
    return key


def expected_version(request: Request) -> int | None:
    """The version that must be the current one. `If-None-Match: *` is version 0: there must be none yet."""
    if request.headers.get("if-none-match", "").strip() == "*":
        return 0
    text = request.headers.get("if-match")
    if text is None:
        return None
    version = text.strip().removeprefix("W/").strip('"')
    if not (version.isascii() and version.isdigit() and len(version) <= 15):  # noqa: PLR2004 -- as many digits as a JSON integer keeps
        raise Problem(400, "if_match", "If-Match is a version number, such as 3.")
    return int(version)


def said(request: Request) -> dict[str, str]:
    """Who changes something, and why: they stand beside the body, which is the thing itself."""
    return {name: text for name in ("by", "note") if (text := request.query_params.get(name))}
