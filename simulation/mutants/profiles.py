"""Under which weather a mutant is tried: a few faults of one kind, many times in a short hour.

A seed of `python -m simulation` draws from all faults and lasts an hour, which is the right thing to find what nobody
thought of. A mutant is known: it is tried under the faults that could bring it to light, as often as those allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulation.cluster.options import Options, draw

HOURS = 0.2  # of virtual time: twelve minutes have something of every schedule but two
CALM = "calm"

# What differs from the options that the seed draws. Faults: how many times an hour.
PROFILES: Mapping[str, Mapping[str, Any]] = {
    CALM: {"faults": {}},
    "callers": {"faults": {}, "calls_every_seconds": 5.0, "linger_seconds": 0.5},
    "crashes": {
        "faults": dict.fromkeys(("A1", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "K1"), 12.0),
        "schedulers": 2, "dispatchers": 2,
    },
    "disks": {"faults": {"D1": 20.0, "D2": 20.0, "A7": 20.0, "K1": 10.0}},
    "ahead": {"faults": {"D3": 15.0}, "schedulers": 1, "dispatchers": 1},
    "network": {
        "faults": dict.fromkeys(("B1", "B2", "C1", "C2", "C3", "C4", "C5", "C6"), 20.0),
        "schedulers": 2, "dispatchers": 2,
    },
    "members": {
        "faults": {"B1": 20.0, "B5": 20.0, "B7": 10.0, "B10": 20.0}, "schedulers": 2, "dispatchers": 2,
        "calls_every_seconds": 10.0,
    },
    "forgotten": {"faults": {"C12": 240.0}},
    "forgotten-and-doubted": {"faults": {"C12": 120.0, "C1": 120.0, "C2": 120.0}},
    "torn": {"faults": {"C1": 40.0, "C2": 40.0, "C3": 20.0, "K1": 8.0}, "doubting": False},
    "hanging": {"faults": {"C7": 60.0, "K1": 10.0, "A10": 60.0}},
    "outages": {
        "faults": {"C9": 15.0, "B10": 6.0}, "batch_facts": 10, "woken_keys": 4, "calls_every_seconds": 10.0,
    },
    "bursts": {
        "faults": {"C9": 20.0, "K4": 120.0, "K1": 30.0}, "situations": {"cadence": 1.0, "jobs": 240.0},
        "calls_every_seconds": 2.0, "schedule_partitions": 2, "batch_records": 1, "linger_seconds": 0.0,
        "ahead_records": 65_536, "ahead_bytes": 16 * 1024 * 1024,
    },
    "floods": {
        "faults": {"K1": 120.0, "K4": 120.0}, "situations": {"floods": 120.0}, "batch_records": 3,
        "linger_seconds": 0.0, "ahead_records": 65_536, "ahead_bytes": 16 * 1024 * 1024,
    },
    "overtaken": {
        "faults": {"K4": 90.0}, "situations": {"floods": 90.0, "jobs": 480.0}, "batch_records": 1,
        "linger_seconds": 0.0, "ahead_records": 65_536, "ahead_bytes": 16 * 1024 * 1024, "schedulers": 1,
    },
    "clocks": {"faults": {"G1": 60.0, "G2": 200.0, "G3": 1.0, "B10": 20.0, "K1": 30.0}, "schedulers": 2},
    "starts": {"faults": {"G1": 60.0, "K1": 60.0}, "schedulers": 1},
    "records": {"faults": dict.fromkeys(("F1", "F3", "F4", "F8"), 80.0) | {"K1": 30.0, "B1": 15.0}, "schedulers": 2},
    "workers": {"faults": dict.fromkeys(("A15", "A16", "H1", "H3", "H8", "H10"), 60.0)},
    "deadly": {"faults": {"H7": 1.0, "H11": 15.0, "G9": 10.0}},
    "jobs": {"faults": {}, "situations": {"jobs": 240.0}, "schedule_partitions": 4, "linger_seconds": 0.5},
    "wishes": {"faults": {}, "situations": {"skips": 240.0, "updates": 240.0, "overlaps": 1.0}},
    "database": {"faults": {"A14": 30.0, "J2": 60.0, "J3": 60.0, "K1": 20.0}, "projectors": 2, "database": True},
    "late": {"faults": {"H3": 500.0}, "situations": {"targets": 1.0, "cadence": 1.0}, "workers": 2},
    "awaited": {
        "faults": {"K4": 120.0, "K1": 60.0}, "situations": {"jobs": 480.0}, "schedule_partitions": 12, "schedulers": 3,
        "batch_records": 1, "linger_seconds": 0.0,
    },
    "doubted": {"faults": {"C1": 40.0, "C2": 40.0, "C3": 20.0, "K1": 8.0}},
    "strays": {"faults": {}, "situations": {"strays": 240.0}},
    "long": {"faults": {}, "situations": {"long": 1.0}},
    "slow": {
        "faults": {"K4": 60.0, "C4": 20.0}, "situations": {"overtime": 1.0}, "batch_records": 1, "quiet_workers": 1.0,
        "workers": 5, "dispatchers": 1, "ahead_records": 1,
    },
    "limits": {"faults": {}, "situations": {"limits": 240.0}},
    "shards": {"faults": {}, "situations": {"limits": 240.0, "shards": 60.0}, "shard_partitions": 3},
    "again": {"faults": {}, "situations": {"again": 240.0}},
    "targets": {"faults": {}, "situations": {"targets": 1.0}},
    "saturated": {"faults": {"H8": 20.0, "H11": 10.0}, "situations": {"saturated": 1.0}},
    "rests": {"faults": {}, "situations": {"rests": 1.0}},
    "backlog": {"faults": {}, "situations": {"paced": 30.0}},
    "windows": {"faults": {}, "situations": {"freezes": 240.0, "calendars": 240.0}, "schedule_partitions": 4},
    "links": {"faults": {"K1": 20.0, "C9": 6.0}, "situations": {"follows": 1.0}, "schedule_partitions": 3},
    "takeovers": {"faults": {"K1": 60.0, "A7": 30.0, "H1": 60.0, "H8": 120.0}, "dispatchers": 2, "workers": 5},
    "rolled-back": {"faults": {"D3": 40.0, "K1": 40.0, "B5": 12.0}, "schedulers": 2, "dispatchers": 2},
    "rotten": {"faults": {"D2": 120.0}, "schedulers": 1, "dispatchers": 1},
    "cancels": {"faults": {}, "situations": {"cancels": 480.0}},
    "moments": {"faults": {"G3": 1.0, "K4": 60.0}, "situations": {"moments": 480.0}, "schedulers": 2},
    "sluggish": {
        "faults": {"K4": 240.0, "C9": 15.0}, "situations": {"paced": 20.0, "cadence": 1.0}, "batch_facts": 1,
        "woken_keys": 1, "schedulers": 1,
    },
    "drains": {"faults": {"H8": 180.0}, "situations": {"saturated": 1.0}, "workers": 3},
    "cut": {"faults": {"H1": 240.0}, "situations": {"overtime": 1.0}, "quiet_workers": 1.0, "workers": 4},
    "unheard": {
        "faults": {"B9": 120.0, "B10": 10.0}, "schedulers": 3, "dispatchers": 3, "session_seconds": 20.0,
        "calls_every_seconds": 10.0,
    },
    "twins": {"faults": {"B7": 90.0}, "schedulers": 2, "dispatchers": 2},
    "given-up": {"faults": {"F9": 120.0, "A3": 60.0, "A4": 60.0}, "dispatchers": 2},
    "edits": {"faults": {}, "situations": {"paced": 30.0, "moments": 240.0}},
    "versions": {"faults": {"F7": 60.0, "K1": 20.0}, "schedulers": 2, "dispatchers": 2},
    "rows": {"faults": {"A14": 30.0, "J2": 10.0, "K1": 20.0}, "projectors": 2},
}  # fmt: skip


def options(profile: str, seed: int) -> Options:
    """What the simulation is run with."""
    return replace(draw(seed, hours=HOURS), **PROFILES[profile])
