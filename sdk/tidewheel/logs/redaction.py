"""Secrets out of lines, before these leave the process. Pure.

What is known to be a secret is hidden wherever it stands; what only looks like one, by how it is written. Neither is a
promise: a task that prints a password in pieces prints a password.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "***"
VALUE_LENGTH_MIN = 6  # A shorter value stands in many an innocent word, and hiding it would tell what it is.
VALUES_MAX = 500

KEY_LENGTH_MAX = 16 * 1024  # characters of a private key that comes in pieces: RSA with 16,384 bits has fewer
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_KEY_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY-----")

# A text costs its length: no quantifier without a bound stands behind another one, and none can begin anew within what
# it has looked at.
_KINDS = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
_SCHEMES = r"(?:(?:bearer|basic|digest|token|negotiate)\s{1,4})?"
_BUILT_IN = (
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?P<secret>.*?)(?:-----END|\Z)",
    r"\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?" + _SCHEMES + r"(?P<secret>[^\s\"',;]+)",
    r"\b(?:set-)?cookie[\"']?\s{0,4}[:=]\s{0,4}(?P<secret>[^\r\n]+)",
    r"\b(?:bearer|basic)\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
    _KINDS + r"[A-Za-z0-9_.-]{0,40}[\"']?\s{0,4}[:=]\s{0,4}(?P<secret>\"[^\"\r\n]*\"|'[^'\r\n]*'|[^\s\"',;&)}\]]+)",
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,200}:(?P<secret>[^\s/@]{1,500})@",
    r"(?<![A-Za-z0-9_-])(?P<secret>eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*)",  # a JSON web token
    r"\b(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b",  # of AWS
    r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{30,})",  # of GitHub
)


class Redaction:
    """Hides values that are known to be secrets, and what is written like one."""

    def __init__(self, values: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= VALUE_LENGTH_MIN}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))[:VALUES_MAX]
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._patterns = [re.compile(each, re.IGNORECASE | re.DOTALL) for each in _BUILT_IN]
        self._patterns += [re.compile(each) for each in patterns]

    def hide(self, text: str) -> str:
        """The text without its secrets, in as many lines as before."""
        if self._values is not None:
            text = self._values.sub(_without_secret, text)
        for pattern in self._patterns:
            text = pattern.sub(_without_secret, text)
        return text

    def hide_on(self, text: str, left: int) -> tuple[str, int]:
        """`hide` for one of several texts: so many characters of a private key may still come; and how many then."""
        text, left = _without_piece(text, left)
        return self.hide(text), left


def _without_piece(text: str, left: int) -> tuple[str, int]:
    """The text without what goes on in it of a private key, and how much more of one may come."""
    begins, end = list(_KEY_BEGIN.finditer(text)), _KEY_END.search(text)
    first = begins[0].start() if begins else len(text)
    if end is not None and end.start() < first:
        start = 0 if left else max(0, end.start() - KEY_LENGTH_MAX)
        text = text[:start] + _hidden(text[start : end.start()]) + text[end.start() :]
    elif left:
        stop = text.find("\n", min(left, first), first)
        piece = text[: first if stop < 0 else stop]
        text = _hidden(piece) + text[len(piece) :]
        if not begins:
            return text, max(0, left - len(piece))
    is_open = bool(begins) and _KEY_END.search(begins[-1].string, begins[-1].end()) is None
    return text, KEY_LENGTH_MAX if is_open else 0


def _hidden(text: str) -> str:
    return HIDDEN + "\n" * text.count("\n") if text.strip() else text


def _forms(value: str) -> Iterable[str]:
    """A value as it is, and as it stands in a URL or in JSON; of several lines each by itself too."""
    yield value
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    if "\n" in value:
        yield from (line.strip() for line in value.splitlines())


def _without_secret(found: re.Match[str]) -> str:
    """What was matched without its secret. Ends of lines stay: who counts lines must find them again."""
    start, end = found.span("secret") if "secret" in found.re.groupindex else found.span()
    if start < 0:  # its group took no part in the match
        start, end = found.span()
    hidden = HIDDEN + "\n" * found.string.count("\n", start, end)
    return found.string[found.start() : start] + hidden + found.string[end : found.end()]
