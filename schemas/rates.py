"""Rates: so many of something in a second, a minute or an hour."""

from __future__ import annotations

import re
from datetime import timedelta

from schemas.frozen import frozen

_RATE = re.compile(r"([1-9][0-9]{0,6})/([smh])", re.ASCII)
_PER = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}


@frozen
class Rate:
    """At most `count` in every `per`."""

    count: int
    per: timedelta


def parse(text: str) -> Rate:
    """`10/s`, `600/m`, `5000/h`; ValueError otherwise."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is not a rate: write 10/s, 600/m or 5000/h")
    return Rate(count=int(found[1]), per=_PER[found[2]])
