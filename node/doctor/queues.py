"""What the server tells of queues with several shards: those that nobody needs, and those that are not empty yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from node.doctor.finding import Finding, note
from tidewheel import connection

ASK_SECONDS = 10.0
QUEUES_MAX = 200  # one page of them, by name


def examine(url: str, partitions: int) -> Iterator[Finding]:
    """The queues of the server at a URL; nothing where it does not tell."""
    try:
        with httpx.Client(base_url=url, timeout=ASK_SECONDS, trust_env=not connection.is_here(url)) as client:
            declared = client.get("/v1/queues", params={"limit": QUEUES_MAX}).raise_for_status().json()["queues"]
            for each in declared:
                yield from more_than_partitions(each, partitions)
                yield from leaving(client.get(f"/v1/queues/{each['name']}/backlog").raise_for_status().json())
    except (httpx.HTTPError, httpx.InvalidURL, KeyError) as error:
        yield note(f"no queues are told at {url} ({type(error).__name__})", "ask with the rights to read them")


def more_than_partitions(queue: Mapping[str, Any], partitions: int) -> Iterator[Finding]:
    """Shards beyond the number of owners split limits and slots, and are no faster."""
    shards = (queue.get("definition") or {}).get("shards", 1)
    if shards > partitions:
        what = f"queue {queue['name']} has {shards} shards, and the dispatchers {partitions} partitions: some share one"
        yield note(what, f"give it {partitions} at most: limits and slots are split over all of them")


def leaving(backlog: Mapping[str, Any]) -> Iterator[Finding]:
    """Shards that the queue has no more and that still hold runs."""
    for shard in backlog["shards"]:
        if shard.get("leaving"):
            what = f"shard {shard['shard']} of queue {backlog['queue']} is left over from before"
            counts = f"{shard['waiting']} runs wait in it, {shard['running']} are with workers"
            yield note(f"{what}: {counts}", "workers of the queue finish them; see that one is there")
