"""What an HTTP callback may look like in a definition: its address and its headers.

Only the shape is judged here. Where the address leads is judged by the worker, each time it connects: names are
answered anew every day, and a worker knows its network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from schemas.faults import Fault
from schemas.refusals import Misfit

URL_CHARACTERS_MAX = 2048
HEADERS_MAX = 32
HEADER_CHARACTERS_MAX = 1024  # of one value: all together stay below what servers take
PORT_MAX = 65_535
BODILESS = frozenset({"GET", "DELETE"})  # methods whose requests carry no payload

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)  # RFC 9110, token
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
_URL = re.compile(r"[\x21-\x7e\u00a1-\uffff]+")
# What the connection and the worker say themselves.
_OURS = frozenset({
    "connection", "content-length", "content-type", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade", "accept-encoding", "traceparent",
})  # fmt: skip
_OUR_BEGINNINGS = ("webhook-", "tidewheel-")
# A definition is written into topics that many may read.
_SECRET = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


def url(text: str) -> str:
    """An absolute http or https URL without a user in it."""
    if len(text) > URL_CHARACTERS_MAX:
        raise Misfit("too_long", f"has over {URL_CHARACTERS_MAX} characters")
    if not _URL.fullmatch(text) or "\\" in text:
        raise Misfit("url", "has blanks or control characters", "percent-encode them")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Misfit("url", f"is not a URL: {error}", "write https://host/path") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise Misfit("url", "must be an absolute http or https URL", "write https://host/path")
    if parts.username is not None or parts.password is not None:
        raise Misfit("url", "must not hold a user or password", "name a secret of the worker instead")
    if parts.fragment:
        raise Misfit("url", "must not have a fragment: servers never see it", "leave out what begins with #")
    if port == 0:
        raise Misfit("url", f"port must be 1-{PORT_MAX}")
    return text


def headers(given: Mapping[str, str]) -> Mapping[str, str]:
    """Names and values that HTTP can carry, none of them the worker's own, none twice, none a secret."""
    if len(given) > HEADERS_MAX:
        raise Misfit("too_long", f"has over {HEADERS_MAX} entries")
    seen: set[str] = set()
    for name, value in given.items():
        low = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise Misfit("header", f"{name[:100]!r} is not the name of a header")
        if low in seen:
            raise Misfit("header", f"{name!r} is given twice: names of headers have no case")
        if low in _SECRET:
            raise Misfit("header", f"{name!r} would put a secret into topics", "name a secret of the worker: secret: …")
        if low in _OURS or low.startswith(_OUR_BEGINNINGS):
            raise Misfit("header", f"{name!r} is set by the worker", "leave it out")
        if len(value) > HEADER_CHARACTERS_MAX or not _HEADER_VALUE.fullmatch(value):
            message = f"the value of {name!r} must be up to {HEADER_CHARACTERS_MAX} printable ASCII characters"
            raise Misfit("header", message)
        seen.add(low)
    return given


def payload_faults(method: str, payload: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """What is wrong with a payload: a request of some methods would leave it behind."""
    if method in BODILESS and payload:
        message = f"{method} has no body that would carry it"
        yield Fault(pointer=pointer, code="payload", message=message, remedy="use POST, or leave it out")
