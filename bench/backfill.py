"""A backfill of a month of minutes, and how late the live runs beside it are, with it and without.

`tidewheel dev` on the embedded log. LIVE schedules are due on every whole second; the delay is from the nominal instant
to the first line of the task. The same schedules are measured on the same server while the backfill is paused and while
it runs, by turns. One that takes its turn behind what is due now makes the 99th percentile at most half as large again.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from bench.line import Server, percentile, register, server
from bench.line_tasks import NOTE

LIVE = int(os.environ.get("LIVE", "50"))
ROUNDS = int(os.environ.get("ROUNDS", "4"))
SECONDS = int(os.environ.get("SECONDS", "10"))  # of each half of a round
MAX_ACTIVE = int(os.environ.get("MAX_ACTIVE", "4"))
RATE = os.environ.get("RATE", "10/s")
REGISTERED_PER_SECOND = 5  # on a machine that does other things too
SETTLE_SECONDS = 3
MONTH = timedelta(days=30)
SHARE_MAX = 1.5
PATH = "/v1/tenants/bench/schedules/minutes"


def main() -> None:
    """Print both delays, what the backfill did meanwhile, and their ratio."""
    alone: list[float] = []
    beside: list[float] = []
    with server() as ready:
        running = replace(ready, registered_per_second=REGISTERED_PER_SECOND)
        register(running, LIVE)
        client = httpx.Client(base_url=running.url, timeout=30)
        backfill = start(client)
        for _ in range(ROUNDS):  # by turns, so that what else the machine does falls on both
            change(client, backfill, "pause")
            alone += delays(running, int(time.time()) + SETTLE_SECONDS)
            change(client, backfill, "resume")
            beside += delays(running, int(time.time()) + SETTLE_SECONDS)
        done = progress(client, backfill)
        change(client, backfill, "cancel")
    tell("alone", alone)
    tell("beside it", beside)
    print(f"backfill of {done['occurrences']:,} occurrences at {RATE}: {done['decided']:,} decided meanwhile")
    ratio = percentile(beside, 99) / percentile(alone, 99)
    print(f"p99 beside it / alone  {ratio:.2f}  (at most {SHARE_MAX})")


def change(client: httpx.Client, backfill: str, verb: str) -> None:
    """Pause, resume or cancel it."""
    client.post(f"{PATH}/backfills/{backfill}:{verb}", json={}).raise_for_status()


def start(client: httpx.Client) -> str:
    """A schedule of minutes, and a backfill of the month before now."""
    definition = {
        "trigger": {"cron": "* * * * *"},
        "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": "bench.note"}, "payload": {"number": -1}},
    }
    client.put(PATH, json=definition).raise_for_status()
    begins = datetime.now(UTC).replace(microsecond=0) - MONTH + timedelta(seconds=30)
    wanted = {"from": begins.isoformat(), "max_active": MAX_ACTIVE, "rate": RATE}
    answer = client.post(f"{PATH}/backfills", json=wanted)
    answer.raise_for_status()
    return str(answer.json()["backfill"])


def progress(client: httpx.Client, backfill: str) -> Any:
    """How far it has come, as soon as the read model knows it."""
    for _ in range(100):
        answer = client.get(f"{PATH}/backfills/{backfill}")
        if answer.is_success:
            return answer.json()
        time.sleep(0.1)
    raise SystemExit("the read model is too far behind")


def delays(running: Server, first: int) -> list[float]:
    """Milliseconds from nominal instant to start of the live runs, over SECONDS from an epoch second on."""
    time.sleep(max(0.0, first + SECONDS + 1.5 - time.time()))
    notes = NOTE.iter_unpack(running.notes.read_bytes())
    window = range(first * 1_000_000, (first + SECONDS) * 1_000_000)
    return [(start - due) / 1000 for number, due, start in notes if number >= 0 and due in window]


def tell(what: str, found: list[float]) -> None:
    """A line of the table."""
    print(
        f"live starts {what:<10} p50 {percentile(found, 50):7.1f} ms   p99 {percentile(found, 99):7.1f} ms"
        f"   max {max(found):7.1f} ms   ({len(found)} starts)"
    )


if __name__ == "__main__":
    main()
