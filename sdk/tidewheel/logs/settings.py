"""What of a log is sent, and what in it is a secret: said in code, or by the environment of the worker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

KAFKA = "TIDEWHEEL_KAFKA"
SECRET_NAMES = (
    "*PASSWORD*", "*PASSWD*", "*SECRET*", "*TOKEN*", "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*",
    "*CREDENTIAL*", KAFKA,
)  # fmt: skip
PATTERNS_MAX = 50  # each goes over every line
PATTERN_CHARACTERS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """How a worker deals with what its runs write.

    `secret_names`: environment variables whose values are hidden, besides those that are called like a secret
    (`*PASSWORD*`, `*TOKEN*`, …); `*` stands for anything. `patterns`: regular expressions; what they match is hidden,
    or only their group `secret` where they have one. `enabled` False: nothing is captured and nothing sent.
    """

    enabled: bool = True
    secret_names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.patterns) > PATTERNS_MAX:
            raise ValueError(f"logs: at most {PATTERNS_MAX} patterns, not {len(self.patterns)}: join some with |")
        for pattern in self.patterns:
            if len(pattern) > PATTERN_CHARACTERS_MAX:
                raise ValueError(f"logs: a pattern has at most {PATTERN_CHARACTERS_MAX} characters")
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"logs: pattern {pattern!r} is no regular expression: {error}") from error

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Logs:
        """TIDEWHEEL_LOGS=off, TIDEWHEEL_LOG_SECRETS (names by commas), TIDEWHEEL_LOG_PATTERNS (a JSON list)."""
        switch = environment.get("TIDEWHEEL_LOGS", "on").lower()
        if switch not in {"on", "off"}:
            raise ValueError(f"TIDEWHEEL_LOGS: on or off, not {switch!r}")
        names = (name.strip() for name in environment.get("TIDEWHEEL_LOG_SECRETS", "").split(","))
        return cls(
            enabled=switch == "on",
            secret_names=tuple(name for name in names if name),
            patterns=_patterns(environment.get("TIDEWHEEL_LOG_PATTERNS", "[]")),
        )

    def secrets_in(self, environment: Mapping[str, str]) -> list[str]:
        """The values of variables that are called like secrets; of a JSON object each of its texts."""
        names = (*SECRET_NAMES, *self.secret_names)
        found: list[str] = []
        for name, value in environment.items():
            if any(fnmatchcase(name.upper(), pattern.upper()) for pattern in names):
                found += _texts(_read(value), all_=name != KAFKA)
        return found


def _patterns(text: str) -> tuple[str, ...]:
    try:
        patterns = json.loads(text)
    except ValueError:
        patterns = None
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise ValueError('TIDEWHEEL_LOG_PATTERNS: a JSON list of regular expressions, ["customer-[0-9]+"]')
    return tuple(patterns)


def _read(value: str) -> Any:
    """What a JSON object or list holds; of all else the text itself."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, dict | list) else value


def _texts(value: Any, *, all_: bool) -> Iterator[str]:
    """The texts of JSON, at any depth; unless all are wanted, those that Kafka's client takes for secrets."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each, all_=all_)
        case dict():
            for name, each in value.items():
                if all_ or is_secret_property(name):
                    yield from _texts(each, all_=all_)


def is_secret_property(name: str) -> bool:
    """Of Kafka's client: `sasl.password`, `ssl.key.pem`; `security.protocol` is none."""
    return any(word in name.lower() for word in ("password", "secret", "key", "token", "username"))
