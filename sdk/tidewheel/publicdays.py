"""Public holidays of a country, as the library `holidays` knows them. The only module that imports it.

It is an extra (`tidewheel[holidays]`): what it says today is written down once, in a calendar that people can read, and
nothing asks it again.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

MISSING = "this needs the library of holidays: pip install 'tidewheel[holidays]'"


class Unknown(Exception):
    """There is no such country, part of one, or no library; the text says which, and what to do."""


def holidays(country: str, subdivision: str | None, years: Iterable[int]) -> Mapping[date, str]:
    """The days of some years with their names, in order. Substitute days count as well as the days they stand for."""
    library = _library()
    try:
        found = library.country_holidays(country, subdiv=subdivision, years=list(years))
    except NotImplementedError as error:
        raise Unknown(f"{error}: countries and their parts are named by ISO 3166, such as GB and SCT") from error
    return dict(sorted(found.items()))


def version() -> str:
    """Of the library, for whoever wonders later why a day is missing."""
    return f"holidays {_library().__version__}"


def _library() -> Any:
    try:
        return importlib.import_module("holidays")
    except ImportError as error:
        raise Unknown(MISSING) from error
