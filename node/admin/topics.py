"""`tidewheel admin topics`: make the topics, compare them with the settings, set them right."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from node.admin import drift, wanted
from node.admin.drift import Drift
from node.admin.reaching import cluster_settings, reached
from node.settings import ClusterSettings
from runtime.logs.kafka.administration import Administration, FoundTopic
from tidewheel.cli import output

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # contract: Names and limits


def topics(action: str, queues: Sequence[str], flags: Mapping[str, Any], *, fix: bool, as_json: bool) -> None:
    if fix and action == "create":
        raise click.UsageError("--fix: it alters topics that exist, with verify")
    _check_names(queues)
    settings = cluster_settings(flags)
    with reached(settings) as cluster:
        if action == "create":
            _create(cluster, settings, queues, as_json=as_json)
        else:
            _verify(cluster, settings, queues, fix=fix, as_json=as_json)


def _check_names(queues: Sequence[str]) -> None:
    for queue in queues:
        if not NAME.fullmatch(queue):
            raise click.UsageError(f"--queue: {queue!r} is no queue's name: letters, digits and . _ -")


# ----------------------------------------------------------------------------------------------------------- create


def _create(cluster: Administration, settings: ClusterSettings, queues: Sequence[str], *, as_json: bool) -> None:
    there = cluster.topics()
    specs = wanted.specs(settings, queues)
    new = {spec: count for spec, count in specs.items() if spec.name not in there}
    for (
        spec,
        count,
    ) in new.items():  # One by one: a small broker makes a hundred partitions in longer than an answer takes.
        cluster.create({spec: count})
    made = {spec.name for spec in new}
    rows = [(spec.name, count, "created" if spec.name in made else "there") for spec, count in specs.items()]
    if as_json:
        output.show_json({"topics": [{"topic": row[0], "partitions": row[1], "state": row[2]} for row in rows]})
        return
    output.table(("topic", "partitions", "state"), rows)
    differing = drift.compare(wanted.wanted(settings, queues), cluster.topics())
    if differing:
        click.echo(f"{_count(differing)} differ from the settings: tidewheel admin topics verify", err=True)


# ----------------------------------------------------------------------------------------------------------- verify


def _verify(
    cluster: Administration, settings: ClusterSettings, queues: Sequence[str], *, fix: bool, as_json: bool
) -> None:
    drifts = _compared(settings, queues, cluster.topics())
    changes = drift.alterations(drifts) if fix else {}
    for topic, config in changes.items():
        cluster.alter(topic, config)
    left = [each for each in drifts if each.what not in changes.get(each.topic, {})]
    if as_json:
        output.show_json({"drift": list(map(_plain, left)), "altered": changes})
    else:
        for topic, config in changes.items():
            click.echo(f"altered {topic}: {', '.join(f'{name}={value}' for name, value in config.items())}")
        _show(left)
    sys.exit(1 if left else 0)


def _compared(settings: ClusterSettings, queues: Sequence[str], found: Mapping[str, FoundTopic]) -> tuple[Drift, ...]:
    return drift.compare(wanted.wanted(settings, {*queues, *wanted.queues_in(found)}), found)


def _show(drifts: Sequence[Drift]) -> None:
    if not drifts:
        click.echo("Every topic is as the settings say.")
        return
    rows = [
        (
            each.weight, each.topic, each.what, drift.shown(each.what, each.wanted), drift.shown(each.what, each.found),
            each.why,
        )
        for each in drifts
    ]  # fmt: skip
    output.table(("", "topic", "what", "wanted", "found", "why it matters"), rows)
    click.echo()
    if drift.alterations(drifts):
        click.echo("tidewheel admin topics verify --fix alters what can be altered without loss.")
    for what, remedy in dict.fromkeys((each.what, each.by_hand) for each in drifts if each.by_hand):
        click.echo(f"{what}: {remedy}")


def _plain(each: Drift) -> dict[str, Any]:
    return {
        "topic": each.topic, "what": each.what, "wanted": each.wanted, "found": each.found,
        "weight": each.weight, "why": each.why, "by_hand": each.by_hand,
    }  # fmt: skip


def _count(drifts: Iterable[Drift]) -> str:
    number = len({each.topic for each in drifts})
    return "1 topic" if number == 1 else f"{number} topics"
