"""What an apply would do: asked of the server, document by document, and written nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tidewheel.cli import output
from tidewheel.cli.beside import Beside
from tidewheel.client import Client
from tidewheel.definitions import Document
from tidewheel.errors import TidewheelError

HORIZON = timedelta(days=31)  # over which occurrences are compared
COMPARED_MAX = 1_000  # occurrences of each side: what the server answers at most
SHOWN_MAX = 5  # instants of one document; the rest is a number


def ask(client: Client, beside: Beside, document: Document) -> tuple[str, list[str]]:
    """What would become of a document with those `beside` it, and the lines behind its title."""
    body = {**(document.body or {}), "kind": document.kind, "name": document.name}
    now = datetime.now(UTC)
    answer = client.preview(
        body, tenant=document.tenant, from_=now, to=now + HORIZON, limit=COMPARED_MAX, load=True,
        beside=beside.of(document),
    )  # fmt: skip
    if "change" not in answer:
        raise TidewheelError("this server is older than this command and cannot plan")
    return answer["change"], list(_lines(answer))


def compared(difference: Mapping[str, Any]) -> str:
    """How many occurrences more and fewer, up to when. One that is moved is neither."""
    moved = len(difference.get("moved") or ())
    more, fewer = len(difference.get("added") or ()) - moved, len(difference.get("removed") or ()) - moved
    said = [f"{more} more", f"{fewer} fewer", *([f"{moved} moved"] if moved else [])]
    until = f", until {output.when(difference['to'])}" if difference.get("to") else ""
    return f"{', '.join(said)}, {difference.get('unchanged', 0)} the same{until}"


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    upcoming = answer.get("next") or ()
    said = f"  {answer['words']}" if answer.get("words") else ""
    yield f"{said}{f'; next {output.when(upcoming[0])}' if upcoming else ''}"
    yield from (f"warning: {warning}" for warning in answer.get("warnings") or ())
    if answer.get("fields"):
        yield f"changes {', '.join(answer['fields'])}"
    difference = answer.get("difference") or {}
    # What stands beside an unchanged schedule, such as its calendar, may change when it is due.
    if difference and (answer["change"] == "updated" or difference.get("added") or difference.get("removed")):
        yield f"occurrences: {compared(difference)}"
        yield from _instants(difference)
    if answer["change"] in ("created", "updated"):
        yield from dependants(answer)
        if answer.get("load"):
            yield from _load(answer["load"])


def dependants(of: Mapping[str, Any]) -> Iterator[str]:
    """Whom a change touches: the schedules that wait for this one or follow it."""
    for each in (of.get("dependants") or ())[:SHOWN_MAX]:
        how = "waits for it" if each["mode"] == "interval" else f"follows its {each['condition']} runs"
        yield f"touches {each['schedule']}, which {how}"
    if (more := len(of.get("dependants") or ()) - SHOWN_MAX) > 0:
        yield f"touches {more} more"


def _load(load: Mapping[str, Any]) -> Iterator[str]:
    """What it does to its queue: the fullest minute that it has a part in, if it is not alone there."""
    before, after = load.get("busiest_before"), load.get("busiest_after")
    if after and (not before or before["count"] != after["count"]):
        was = output.counted(before["count"], "run") if before else "none"
        runs = output.counted(after["count"], "run")
        yield f"busiest minute of queue {load['queue']}: {output.when(after['at'])}, {runs}, was {was}"
    for each in (load.get("crowded") or ())[:1]:
        if each["before"]:
            yield f"meets {each['before']} others at {output.when(each['at'])}"


def _instants(difference: Mapping[str, Any]) -> Iterator[str]:
    moved = difference.get("moved") or ()
    gone, come = {each["from"] for each in moved}, {each["to"] for each in moved}
    changes = [(each["from"], f"> {output.when(each['from'])} moves to {output.when(each['to'])}") for each in moved]
    changes += [(at, f"+ {output.when(at)}") for at in difference.get("added") or () if at not in come]
    changes += [(at, f"- {output.when(at)}") for at in difference.get("removed") or () if at not in gone]
    changes.sort()
    yield from (line for _, line in changes[:SHOWN_MAX])
    if len(changes) > SHOWN_MAX:
        yield f"and {len(changes) - SHOWN_MAX} more"
