"""What is done when a state is not what its log says: it is told, with where they differ. Nothing is mended.

A store that follows its changelog can differ from the owner's by a fault of a disk or of ours. Which of them is right
is for a person to say: the changelog is, unless rows of it are missing, and then a store is all that is left of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime import digest, ranges
from runtime.footer import DECISION_KEY, FOOTER_KEY
from runtime.telemetry import Event, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.footer import Footer
    from runtime.log import Log
    from runtime.partition import Partition
    from runtime.store import Store
    from runtime.telemetry import Telemetry

COMPARED_MAX = 500_000  # records of a changelog: some seconds, and a tenth of a gigabyte; beyond it nothing is compared
NAMED_MAX = 20  # enough to see a pattern


def verify(log: Log, partition: Partition, store: Store, footer: Footer, offset: int, telemetry: Telemetry) -> None:
    """Hold a store that has followed its changelog up to a footer against the digest there; raise the alarm."""
    found = digest.counted(store)
    labels = {"role": partition.role, "partition": str(partition.number)}
    telemetry.set(Metric.STATE_DIFFERS, labels, 0 if found == footer.digest else 1)
    if found != footer.digest:
        telemetry.error(
            Event.STATE_DIFFERS, sequence=footer.sequence, logged=footer.digest, found=found,
            where=list(_differing(log, partition, store, offset + 1)), **labels,
        )  # fmt: skip


def _differing(log: Log, partition: Partition, store: Store, until: int) -> Iterator[str]:
    """The first rows in which a store is not its changelog, which it has followed up to `until`."""
    latest: dict[bytes, int] = {}
    begin = log.begin_offset(partition.changelog)
    if until - begin > COMPARED_MAX:
        yield f"not compared: the changelog has {until - begin} records"
        return
    for records in ranges.read(log, partition.changelog, begin, until):
        for record in records:
            key = record.key or b""
            if record.offset < until and key != FOOTER_KEY and not key.startswith(DECISION_KEY):
                latest[key] = 0 if record.value is None else digest.of_row(key, record.value)
    yield from _named(latest, store)


def _named(latest: dict[bytes, int], store: Store) -> Iterator[str]:
    left = NAMED_MAX
    for key, value in store.scan(digest.ROWS, digest.ROWS_END):
        expected = latest.pop(key, 0)
        if expected != digest.of_row(key, value) and left:
            left -= 1
            yield f"{key!r}: {'another value' if expected else 'not in the changelog'}"
    for key in [key for key, expected in latest.items() if expected][:left]:
        yield f"{key!r}: not in the store"
