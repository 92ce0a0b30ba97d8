"""How much a processor does at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one batch, so that a transaction stays short and a restart has little to repeat."""

    records: int = 500
    record_bytes: int = 1024 * 1024
    ahead_records: int = 65_536  # read and not answered: some 50 MB of commands, and a minute or more of deciding
    ahead_bytes: int = 64 * 1024 * 1024  # of theirs, a kibibyte each; twice as much where inputs are large
    facts: int = 2000  # some 100 ms of work
    fact_bytes: int = 8 * 1024 * 1024
    seconds: float = 0.1
    woken_keys: int = 512
    steps_per_key: int = 32  # then the next key has its turn: a backlog costs itself, not its neighbours
    linger: float = 0.02  # seconds that records nobody waits for may wait for company, while we are busy
    heartbeat: timedelta = timedelta(seconds=30)  # how stale the clock mark of an idle partition may be
