"""Crontabs as definitions: the dialect of Debian's cron, user crontabs and system ones (with a user column).

Each entry becomes a Schedule whose trigger is the entry's own text and whose job is one registered task, by default
`crontab.run`, with payload {command, user, env, stdin}. Cron neither retries, nor catches up, nor waits for the run
before: neither do the definitions. What has no counterpart is left out, and a remark says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from tidewheel.importers.report import NOTE_LENGTH_MAX, TIMEOUT, Imported, Remark, free, slug, template_in

MACROS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
DIGITS_MAX = 4  # of a number: no field goes further than 59, and Python reads no number of 5,000
ACCOUNTS = frozenset(
    {"root", "daemon", "bin", "sys", "man", "mail", "news", "www-data", "backup", "list", "nobody", "postgres", "mysql"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One crontab. `user_column` None: find out from its path and its text."""

    path: str
    text: str
    user_column: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What crontabs do not say. A TZ or CRON_TZ line goes before `timezone`."""

    tenant: str | None = None
    timezone: str = "UTC"
    queue: str = "default"
    task: str = "crontab.run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line that runs a command. `stdin` is what stood behind the first `%`."""

    line: int
    written: str
    cron: str
    user: str | None
    command: str
    stdin: str | None
    env: Mapping[str, str]


def convert(sources: Iterable[Source], settings: Settings) -> Imported:
    """Every entry of every crontab as a Schedule document. Names are unique, and the same each time."""
    documents: list[dict[str, Any]] = []
    remarks: list[Remark] = []
    taken: set[str] = set()
    for source in sources:
        entries, found = read(source)
        remarks += found
        for entry in entries:
            name = _name(source.path, entry, taken)
            taken.add(name)
            documents.append(_document(source.path, entry, name, settings))
    return Imported(documents=tuple(documents), remarks=tuple(remarks))


def read(source: Source) -> tuple[list[Entry], list[Remark]]:
    """The entries of a crontab, in order, and remarks about its lines."""
    reader = _Reader(path=source.path, user_column=has_user_column(source), owner=_owner(source.path))
    lines = source.text.split("\n")
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    if lines[-1].strip(" \t"):
        reader.remark(len(lines), "cron wants a newline at the end of the last line, and would not have read it")
    ignored = PurePath(source.path)
    if ignored.parent.name == "cron.d" and not re.fullmatch(r"[A-Za-z0-9_-]+", ignored.name):
        reader.remark(1, "cron ignores a file of this name in cron.d; its entries are here all the same")
    return reader.entries, reader.remarks


def has_user_column(source: Source) -> bool:
    """Whether a user stands before the command: as told, else by the path, a heading, or the users themselves."""
    if source.user_column is not None:
        return source.user_column
    path = PurePath(source.path)
    if path.parent.name == "cron.d" or path.parts[-2:] == ("etc", "crontab"):
        return True
    if path.parent.name == "crontabs":
        return False
    heading = re.search(r"^#.*(?:dow|\*)[ \t]+(user(?:-?name)?[ \t]+)?command", source.text, re.MULTILINE)
    if heading:
        return heading.group(1) is not None
    rests = [entry.rest for line in source.text.split("\n") if (entry := _split(line)) is not None]
    return bool(rests) and all(re.split(r"[ \t]", rest, maxsplit=1)[0] in ACCOUNTS for rest in rests)


# --- reading lines --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    """Goes through a crontab line by line; environment lines hold for what stands below them."""

    path: str
    user_column: bool
    owner: str | None
    entries: list[Entry] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    _env: dict[str, str] = field(default_factory=dict)

    def read(self, number: int, line: str) -> None:
        text = line.lstrip(" \t")
        if not text.strip() or text.startswith("#"):
            return
        setting = environment(text)
        if setting is not None:
            self._set(number, *setting)
        elif (parts := _split(text)) is None:
            self.remark(number, f"is neither an entry nor a setting: {text.strip()!r}", broken=True)
        else:
            self._entry(number, text, parts)

    def remark(self, line: int, text: str, *, left_out: bool = False, broken: bool = False) -> None:
        self.remarks.append(Remark(path=self.path, line=line, text=text, left_out=left_out or broken, broken=broken))

    def _set(self, number: int, name: str, value: str) -> None:
        self._env = {**self._env, name: value}
        if name == "TZ":
            self.remark(
                number, "TZ is taken for the time zone of the entries below; Debian's cron sets it for the command only"
            )
        elif name == "MAILTO":
            self.remark(
                number, "MAILTO is passed on in env, but nobody is mailed: the task decides what happens to output"
            )
        elif name == "RANDOM_DELAY":
            self.remark(number, "RANDOM_DELAY is passed on in env, but delays nothing")

    def _entry(self, number: int, text: str, parts: _Parts) -> None:
        if parts.when == "@reboot":
            self.remark(
                number, "@reboot has no time of its own: start it with the machine, not from a schedule", left_out=True
            )
            return
        problem = problem_of(parts.when)
        if problem:
            self.remark(number, problem, broken=True)
            return
        user, rest = self._user(number, parts.rest)
        if not rest:
            self.remark(number, "has no command" + (" behind its user" if self.user_column else ""), broken=True)
            return
        if "\ufffd" in rest:
            self.remark(number, "its command is not UTF-8, and JSON has nothing else", left_out=True)
            return
        command, stdin = command_and_input(rest)
        if template := template_in([command, stdin, list(self._env.values())]):
            self.remark(number, f"{template} would be filled in here: put the command into a script", left_out=True)
            return
        if stdin is not None:
            self.remark(number, "what stands behind % is passed on as stdin, for the task to give to the command")
        env = dict(self._env)
        entry = Entry(
            line=number, written=text.rstrip(), cron=parts.when, user=user, command=command, stdin=stdin, env=env
        )
        self.entries.append(entry)

    def _user(self, number: int, rest: str) -> tuple[str | None, str]:
        if not self.user_column:
            return self.owner, rest
        user, _, command = re.sub(r"[ \t]+", " ", rest, count=1).partition(" ")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*\$?", user):
            self.remark(number, f"{user!r} does not look like a user: is this a user's own crontab (--user-column no)?")
        return user, command


@dataclass(frozen=True, slots=True)
class _Parts:
    when: str
    rest: str


def _split(line: str) -> _Parts | None:
    """An entry's time as written, and what stands behind it; None when the line is no entry."""
    text = line.strip(" \t\r")
    pattern = r"(@\S+)[ \t]*(.*)" if text.startswith("@") else r"([^\s#]\S*(?:[ \t]+\S+){4})[ \t]*(.*)"
    match = re.fullmatch(pattern, text)
    return _Parts(match.group(1), match.group(2)) if match else None


_SETTING = re.compile(
    r"""(?: "(?P<name_in_double>[^"=]*)" | '(?P<name_in_single>[^'=]*)' | (?P<name>[^\s='"][^\s=]*) ) \s* = \s*
        (?: "(?P<in_double>[^"]*)" | '(?P<in_single>[^']*)' | (?P<bare>(?:[^'"\s](?:.*\S)?)?) ) \s*""",
    re.VERBOSE,
)


def environment(text: str) -> tuple[str, str] | None:
    """NAME and value of an environment line. Quotes preserve blanks; nothing is expanded."""
    match = _SETTING.fullmatch(text)
    if match is None:
        return None
    name, value = (
        next((match.group(key) for key in keys if match.group(key) is not None), "")
        for keys in (("name_in_double", "name_in_single", "name"), ("in_double", "in_single", "bare"))
    )
    return name, value


def command_and_input(text: str) -> tuple[str, str | None]:
    r"""The command, and what it reads. An unescaped `%` ends the command; each further one is a newline of its input.

    In the command `\%` is a percent sign and `\\` a backslash; in the input only `\%` means something else than itself.
    """
    match = re.match(r"(?:[^\\%]|\\.|\\$)*", text, re.DOTALL)
    assert match is not None
    command = re.sub(r"\\([%\\])", r"\1", match.group())
    rest = text[match.end() :]
    if not rest:
        return command, None
    stdin = re.sub(r"\\%|%", lambda found: "%" if len(found.group()) > 1 else "\n", rest[1:])
    return command, stdin if not stdin or stdin.endswith("\n") else f"{stdin}\n"


# --- judging times --------------------------------------------------------------------------------------------------

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[str, int, int, Mapping[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)


def problem_of(when: str) -> str | None:
    """Why cron can't read a time; None when it can."""
    if when.startswith("@"):
        return None if when in MACROS else f"{when} is no time that cron knows"
    for text, (field_name, low, high, names) in zip(when.split(), _FIELDS, strict=True):
        if not all(_is_range(item, low, high, names) for item in text.split(",")):
            return f"{text!r} is no {field_name}"
    return None


def _is_range(text: str, low: int, high: int, names: Mapping[str, int]) -> bool:
    """`*`, a number or name, or two of them with a dash; all but a single one may have a step."""
    match = re.fullmatch(r"(?:\*|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:/([0-9]+))?", text)
    if match is None:
        return False
    first, last, step = match.groups()
    if step is not None and (not step.strip("0") or (first is not None and last is None)):
        return False  # Debian's cron refuses 1/20, which others read as 1-59/20.
    return all(low <= _number(part, names) <= high for part in (first, last) if part is not None)


def _number(text: str, names: Mapping[str, int]) -> int:
    if not text.isdigit():
        return names.get(text.lower(), -1)
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= DIGITS_MAX else -1


# --- making documents -----------------------------------------------------------------------------------------------


def _document(path: str, entry: Entry, name: str, settings: Settings) -> dict[str, Any]:
    env = dict(entry.env)
    timezone = env.get("CRON_TZ") or env.get("TZ") or settings.timezone
    return {
        "kind": "Schedule",
        **({"tenant": settings.tenant} if settings.tenant else {}),
        "name": name,
        "labels": {"imported-from": "crontab"},
        "note": f"{path}:{entry.line}: {entry.written}"[:NOTE_LENGTH_MAX],
        "trigger": {"cron": entry.cron, "timezone": timezone.removeprefix(":")},
        "catch_up": {"policy": "skip"},
        "overlap": {"policy": "allow_all"},
        "job": {
            "queue": settings.queue,
            "target": {"type": "task", "name": settings.task},
            "payload": {"command": entry.command, "user": entry.user, "env": env, "stdin": entry.stdin},
            "timeout": TIMEOUT,
            "retry": {"max_attempts": 1},
        },
    }


def _name(path: str, entry: Entry, taken: set[str]) -> str:
    """File and command, so that moving a line keeps its schedule; twins are told apart by their line."""
    file = PurePath(path).name if path != "-" else "crontab"
    name = slug(f"{file}-{_program(entry.command)}")
    return free(name, f"{name}-{entry.line}", taken)


_NOT_THE_PROGRAM = re.compile(r"[A-Za-z_]\w*=.*|\[|test|-.*|cd|&&|\|\||;|sudo|nice|ionice|env|exec|command|!|\(|\{")


def _program(command: str) -> str:
    """The word of a command that a person would call it by: behind tests, settings and wrappers."""
    words = command.split()
    for separator in ("&&", "||", ";"):
        if words and words[0] in {"test", "[", "cd"} and separator in words[:-1]:
            words = words[words.index(separator) + 1 :]
    word = next((word for word in words if not _NOT_THE_PROGRAM.fullmatch(word)), "command")
    return PurePath(word).name or "command"


def _owner(path: str) -> str | None:
    """Whose crontab this is, where its place says so."""
    return PurePath(path).name if PurePath(path).parent.name == "crontabs" else None
