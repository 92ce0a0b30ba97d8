"""What a run leaves behind, gathered from outside of the cluster, and what the judges say of it."""

from __future__ import annotations

import gc
import hashlib
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from schemas import topics
from simulation.checkers import judge
from simulation.cluster import committed
from simulation.cluster.hour import HOUR_SECONDS
from simulation.cluster.node import INPUTS, partitions_of
from simulation.cluster.options import Options
from simulation.cluster.world import World
from simulation.evidence import Evidence, Owning, StoreContents

if TYPE_CHECKING:
    from collections.abc import Callable

SWEEP_SECONDS = 10.0  # within which a coordinator ends a transaction whose time is up


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one seed. `failures` is empty when all held."""

    options: Options
    failures: tuple[str, ...]
    faults: Mapping[str, int]
    observed: Mapping[str, int]
    story: tuple[str, ...]
    virtual_seconds: float
    turns: int
    requests: int
    runs: int
    digest: str
    core_seconds: float = 0.0  # of the processor, to simulate and to judge it

    @property
    def failed(self) -> bool:
        """Whether anything did not hold."""
        return bool(self.failures)


def simulate(options: Options, tell: Callable[[str], None] | None = None) -> Outcome:
    """Run a cluster with these options and judge it. The same options give the same outcome."""
    began = time.process_time()
    with _projectors_silenced(), _garbage_left_lying():
        outcome = _simulated(options, tell)
    return replace(outcome, core_seconds=time.process_time() - began)


def simulate_untold(options: Options) -> Outcome:
    """The same for another process that has no use for the story: it is some megabytes to carry there."""
    return replace(simulate(options), story=())


def _simulated(options: Options, tell: Callable[[str], None] | None) -> Outcome:
    world = World(options, tell)
    try:
        world.run()
        return _judged(world)
    finally:
        world.close()


@contextmanager
def _garbage_left_lying() -> Iterator[None]:
    """Hardly anything of a run goes away before its end, and looking for it takes a fifth of the time. Then it does.

    Only what the run has made is looked at; the modules were there before.
    """
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if was_on:
            gc.enable()


@contextmanager
def _projectors_silenced() -> Iterator[None]:
    """What they bear is in the story already, with its time; they write to the process's own log besides."""
    logger = logging.getLogger("tidewheel.projections")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _judged(world: World) -> Outcome:
    evidence = gathered(world)
    verdict = judge(evidence)
    story = world.site.story
    for violation in verdict.violations:
        story.fail("checker", str(violation))
    return Outcome(
        options=world.options, failures=tuple(story.failures), faults=dict(sorted(story.faults.items())),
        observed=verdict.observed, story=tuple(story.lines), virtual_seconds=world.site.loop.seconds,
        turns=world.site.loop.turns, requests=world.network.requests, runs=_runs(evidence), digest=digest(evidence),
    )  # fmt: skip


def gathered(world: World) -> Evidence:
    """The evidence of a run that is over."""
    site, broker = world.site, world.broker
    rebuilt = world.rebuilt() if world.rested_at is not None else {}
    settings = world.settings
    records, transactions = committed.gathered(broker, site.instant)
    return Evidence(
        seed=world.options.seed,
        faults=frozenset(world.options.faults),
        doubting=world.options.doubting,
        ended_at=site.now(),
        faults_off_at=site.instant(HOUR_SECONDS * world.options.hours),
        rested_at=None if world.rested_at is None else site.instant(world.rested_at),
        topics={name: topic.spec for name, topic in broker.topics.items()},
        records=records,
        aborted=committed.aborted(broker),
        transactions=transactions,
        positions={role: dict(broker.groups.group(settings.named(role)).positions) for role in (*INPUTS, "projector")},
        transaction_seconds_max=settings.transaction_ms / 1000 + SWEEP_SECONDS + world.storm.away_seconds,
        stores=tuple(_stores(world)),
        owners=_owners(world),
        restored=_restored(world),
        owning=tuple(
            Owning(at=site.instant(at), machine=machine, role=role, partition=number, what=what)
            for at, machine, role, number, what in site.story.owning
        ),
        fenced={machine: site.instant(at) for machine, at in world.network.fenced.items()},
        unquoted=tuple(broker.groups.unquoted),
        history=site.history.calls,
        executions=site.ledger.executions,
        read_model=world.place.tables() if rebuilt else {},
        rebuilt=rebuilt,
        glimpses=(*world.onlooker.glimpses, *world.place.glimpses),
        canaries=(world.password,),
        texts={"story": "\n".join(site.story.lines)},
    )


def digest(evidence: Evidence) -> str:
    """One number for everything that was ever committed: equal for equal histories."""
    hashed = hashlib.sha256()
    before, told = None, b""  # neighbours share their headers and their instant
    for place, records in evidence.spans():
        hashed.update(repr(place).encode())
        for offset, key, value, headers, appended_at, _ in records:
            if before != (headers, appended_at):
                before, told = (headers, appended_at), f"{headers} {appended_at}".encode()
            ends = b"%d %r %r" % (offset, key and len(key), value and len(value))
            hashed.update(b"".join((ends, key or b"", value or b"", told)))
    return hashed.hexdigest()[:32]


def _stores(world: World) -> Iterator[StoreContents]:
    owners = _owners(world)
    for node in world.nodes:
        for name, folder in sorted(node.disk.folders.items()):
            number = int(name.rpartition("-")[2])
            owned = owners.get((node.role, number)) == node.name
            if not (folder.damaged or folder.forged):
                entries = tuple(sorted(folder.values.items()))
                yield StoreContents(
                    role=node.role, partition=number, machine=node.name, entries=entries, owned=owned
                )  # fmt: skip


def _restored(world: World) -> dict[tuple[str, int], tuple[datetime, ...]]:
    found: dict[tuple[str, int], list[datetime]] = {}
    for role, number, seconds in world.site.story.restored:
        found.setdefault((role, number), []).append(world.site.instant(seconds))
    return {partition: tuple(instants) for partition, instants in found.items()}


def _owners(world: World) -> dict[tuple[str, int], str | None]:
    owners: dict[tuple[str, int], str | None] = {
        (role, number): None for role in INPUTS for number in range(partitions_of(role, world.site.layout))
    }
    for node in world.nodes:
        if node.process is not None and node.runs:
            for service in node.process.service.partitions():
                if service.failure is None:
                    owners[node.role, int(service.name.rpartition("-")[2])] = node.name
    return owners


def _runs(evidence: Evidence) -> int:
    return sum(
        b'"tidewheel.run.created.v1"' in (record.value or b"")[:200]
        for place, records in evidence.records.items()
        if place.topic == topics.RUNS
        for record in records
    )
