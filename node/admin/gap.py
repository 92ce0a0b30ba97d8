"""`tidewheel admin accept-gap`: a partition goes on without a part of its input, because a person says so."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from node.admin import losses
from node.admin.losses import Gap, Refusal
from node.admin.reaching import operated
from node.admin.saying import chosen, say
from schemas.facts import GapReason
from tidewheel.cli import output

GONE = {
    GapReason.DELETED: "records that nobody had read: what they asked for or reported did not happen",
    GapReason.TRUNCATED: "records that had been answered: what followed from them stands",
    GapReason.RECREATED: "whatever the former topic held that nobody had read",
}


def accept_gap(
    data: Path | None, role: str | None, number: int | None, flags: Mapping[str, Any], *,
    by: str, note: str, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    with operated(data, flags) as at:
        found = list(losses.find(at.log, chosen(at, role, number), datetime.now(UTC)))
        gaps = [each for each in found if isinstance(each, Gap)]
        refusals = [each for each in found if isinstance(each, Refusal)]
        if not as_json:
            _show(gaps, refusals)
        accepts = bool(gaps) and (yes or (not as_json and click.confirm("Go on without them?")))
        if accepts:
            say(at, [gap.accepted(by, note) for gap in gaps])
    if as_json:
        output.show_json({"gaps": list(map(_plain, gaps)), "refused": list(map(_why, refusals)), "accepted": accepts})
    elif accepts:
        click.echo(f"Accepted by {by}. {_next(data)}")
    sys.exit(1 if refusals or (gaps and not accepts) else 0)


def _show(gaps: Sequence[Gap], refusals: Sequence[Refusal]) -> None:
    if not gaps and not refusals:
        click.echo("No partition has lost anything of its inputs.")
    for refusal in refusals:
        click.echo(f"{refusal.partition.role} {refusal.partition.number} cannot go on: {refusal.why}.\n")
    if not gaps:
        return
    rows = [
        (f"{gap.partition.role} {gap.partition.number}", gap.loss.place.topic, gap.loss.place.partition, _span(gap),
         gap.go_on_at, GONE[gap.loss.reason])
        for gap in gaps
    ]  # fmt: skip
    output.table(("owner", "topic", "partition", "lost", "goes on at", "what that is"), rows)


def _span(gap: Gap) -> str:
    lost_from, lost_to = gap.loss.lost(gap.go_on_at)
    if lost_to is None:
        return f"from {lost_from} of the former topic on"
    return f"{lost_from} to {lost_to - 1}" if lost_to > lost_from else "nothing"


def _next(data: Path | None) -> str:
    if data is not None:
        return "The partitions go on when the server is started."
    return "Their owners go on within half a minute; `gap.accepted` on run-events says so."


def _plain(gap: Gap) -> dict[str, Any]:
    lost_from, lost_to = gap.loss.lost(gap.go_on_at)
    return {
        "role": gap.partition.role, "partition": gap.partition.number, "topic": gap.loss.place.topic,
        "topic_partition": gap.loss.place.partition, "reason": gap.loss.reason, "read_up_to": gap.loss.read_up_to,
        "lost_from": lost_from, "lost_to": lost_to, "go_on_at": gap.go_on_at,
    }  # fmt: skip


def _why(refusal: Refusal) -> dict[str, Any]:
    return {"role": refusal.partition.role, "partition": refusal.partition.number, "why": refusal.why}
