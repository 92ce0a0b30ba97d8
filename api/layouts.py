"""What the shards of queues have said in this node's inboxes: how many there are, and where runs want a slot.

A shard that wants slots says so every five seconds, so a word is believed for three of them. Nothing here is stored: a
node that was restarted hears it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api.mailbox import Word

BELIEVED_SECONDS = 15.0


@dataclass(slots=True)
class Heard:
    """A word, when it came, and its place among all that came."""

    data: Mapping[str, Any]
    at: float
    number: int


class Layouts:
    """The last word of each shard, by queue. Only queues with several shards have any."""

    def __init__(self) -> None:
        self.number = 0  # of the last word
        self._by_queue: dict[str, dict[int, Heard]] = {}

    def hear(self, word: Word, now: float) -> bool:
        """A shard says how it stands. Whether workers should know at once: it begins or ceases to want slots."""
        self.number += 1
        known = self._by_queue.setdefault(word.queue, {})
        before = known.get(word.shard)
        known[word.shard] = Heard(word.data, now, self.number)
        return before is None or any(
            _says(before.data, name) != _says(word.data, name) for name in ("queued", "shards")
        )

    def shards(self, queue: str) -> int:
        """How many shards a queue has, as far as is known."""
        heard = self._by_queue.get(queue)
        return 1 if not heard else max(heard.values(), key=lambda each: each.number).data["shards"]

    def wanting(self, queue: str, now: float) -> list[int]:
        """The shards in which runs want a slot."""
        return sorted(word["shard"] for word in self.since(queue, 0, now) if word["queued"])

    def since(self, queue: str, number: int, now: float) -> Iterator[Mapping[str, Any]]:
        """What was said after a word and still counts, the newest last: it says how many shards there are.

        Of a shard that wants nothing its word counts for ever.
        """
        for heard in sorted(self._by_queue.get(queue, {}).values(), key=lambda each: each.number):
            if heard.number > number and (not heard.data["queued"] or now - heard.at < BELIEVED_SECONDS):
                yield heard.data


def _says(data: Mapping[str, Any], name: str) -> Any:
    return bool(data["queued"]) if name == "queued" else data[name]
