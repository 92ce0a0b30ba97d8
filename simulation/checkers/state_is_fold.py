"""I4: state is the fold of the log.

The rows of a store at changelog offset o are those that the committed changelog up to o folds to, rows of torn
transactions left out; its footer is the last one before o. The digest in each footer (where there is one: the sum, in
128 bits, of BLAKE2b over each row's key, value and length of key) is that of the rows up to there. Every wakeup that
the store says a key has stands in its index, or nobody would ask that key in time. What the group has committed is what
the last footer says (when all is at rest: before that, a commit may be on its way). Footers never go back over their
inputs, nor over what is answered beyond their positions.

A store that its machine lost or left may have been on its way to a later offset: there a row may be a later one. It is
not judged where disks are tampered with: what was done to it nobody has had to find out yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from runtime.record import TopicPartition
from simulation.checkers.reading import ROW, Changelog, Data, changelog, changelogs
from simulation.evidence import NEWER, Evidence, StoreContents, Violation

ID = "I4"
CHECKPOINT, KEYED, AT, ON_EVIDENCE = b"m", b"k", b"w", b"e"
NEVER = b"\xff" * 8
DIGESTS = 1 << 128
TAMPERED = {"D2", "D3", "D4"}  # a flipped bit, a store that says it is ahead, one that is put back
SHOWN_MAX = 3  # differing rows that are named: enough to see what they have in common

Rows = dict[bytes, bytes]


def observed(evidence: Evidence) -> int:
    """How many stores and digests were held against their changelog."""
    digests = sum(
        bool(written.footer and written.footer.get("digest")) for log in changelogs(evidence) for written in log.whole
    )
    return digests + len(_judged(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every store and every position that the log does not explain."""
    for store, checkpoint in _judged(evidence):
        yield from _store(evidence, store, checkpoint)
        yield from _wakeups(store)
    for log in changelogs(evidence):
        yield from _digests(log)
        yield from _positions_go_back(log)
    if evidence.rested_at is not None:
        yield from _groups(evidence)


def _judged(evidence: Evidence) -> list[tuple[StoreContents, Data]]:
    """The stores that have begun, with up to where they have followed."""
    stores = [store for store in evidence.stores if store.owned or not evidence.faults & TAMPERED]
    return [(store, checkpoint) for store in stores if (checkpoint := _checkpoint(store)) is not None]


def _checkpoint(store: StoreContents) -> Data | None:
    """Up to where the store has followed; None for one that has not begun."""
    raw = dict(store.entries).get(CHECKPOINT)
    return None if raw is None else orjson.loads(raw)


def _store(evidence: Evidence, store: StoreContents, checkpoint: Data) -> Iterator[Violation]:
    name, until = _named(store), checkpoint["changelog_offset"]
    log = changelog(evidence, (store.role, store.partition))
    wanted, footer = folded(log, until)
    found = {key: value for key, value in store.entries if key.startswith(ROW)}
    differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    if not store.owned and differing:
        later = _written_since(evidence, store, until)
        differing = [key for key in differing if found.get(key) not in later.get(key, ())]
    if differing:
        shown = ", ".join(repr(key) for key in differing[:SHOWN_MAX])
        what = f"{len(differing)} rows are not what the changelog up to {until} folds to: {shown}"
        yield Violation(invariant=ID, what=what, where=name)
    if store.owned and _known(checkpoint.get("footer")) != _known(footer):
        stands, should = (None if each is None else each["sequence"] for each in (checkpoint.get("footer"), footer))
        what = f"its footer is that of transaction {stands}, where {should} is the last before {until}"
        yield Violation(invariant=ID, what=what, where=name)


def _known(footer: Data | None) -> Data | None:
    """A footer without what only the next version knows: who has read it in this one has not kept that."""
    if footer is None:
        return None
    positions = [{name: value for name, value in each.items() if name != NEWER} for each in footer["positions"]]
    return {name: value for name, value in footer.items() if name != NEWER} | {"positions": positions}


def folded(log: Changelog, until: int) -> tuple[Rows, Data | None]:
    """The rows that the transactions before an offset leave behind, and the footer of the last of them."""
    rows: Rows = {}
    footer: Data | None = None
    for written in log.whole:
        assert written.footer_at is not None
        if written.footer_at.offset >= until:
            break
        footer = written.footer
        for key, value in written.rows:
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
    return rows, footer


def _written_since(evidence: Evidence, store: StoreContents, since: int) -> Mapping[bytes, set[bytes | None]]:
    log = changelog(evidence, (store.role, store.partition))
    later: dict[bytes, set[bytes | None]] = {}
    for written in log.whole:
        if written.footer_at is not None and written.footer_at.offset >= since:
            for key, value in written.rows:
                later.setdefault(key, set()).add(value)
    return later


def _wakeups(store: StoreContents) -> Iterator[Violation]:
    """`k<key>` holds the instants (eight bytes each) under which `w` and `e` entries of the key must stand."""
    entries = dict(store.entries)
    for key, value in store.entries:
        if not key.startswith(KEYED):
            continue
        for kind, instant in ((AT, value[:8]), (ON_EVIDENCE, value[8:])):
            if instant != NEVER and kind + instant + key[1:] not in entries:
                what = f"the key {key[1:]!r} wants to be asked, and stands in no index"
                yield Violation(invariant=ID, what=what, where=_named(store))


def _digests(log: Changelog) -> Iterator[Violation]:
    hashes: dict[bytes, int] = {}
    digest = 0
    for written in log.whole:
        for key, value in written.rows:
            hashed = 0 if value is None else _hash(key, value)
            digest += hashed - hashes.get(key, 0)
            hashes[key] = hashed
        assert written.footer is not None
        said = written.footer.get("digest")
        if said and int(said, 16) != digest % DIGESTS:
            what = f"transaction {written.footer['sequence']} says that it leaves other rows than the log folds to"
            yield Violation(invariant=ID, what=what, where=written.footer_at or written.at)
            return  # Every later one says so, too.


def _hash(key: bytes, value: bytes) -> int:
    return int.from_bytes(blake2b(key + value + len(key).to_bytes(2, "big"), digest_size=16).digest(), "big")


def _positions_go_back(log: Changelog) -> Iterator[Violation]:
    newest: dict[Any, Data] = {}
    for written in log.whole:
        assert written.footer is not None
        for item in written.footer["positions"]:
            key = (item["topic"], item["partition"], item.get("topic_id"))
            for back in _goes_back(newest.get(key, {"offset": 0}), item):
                what = f"{back} in {key[0]}-{key[1]}"
                yield Violation(invariant=ID, what=what, where=written.footer_at or written.at)
            newest[key] = item


def _goes_back(before: Data, after: Data) -> Iterator[str]:
    """What was answered stays so: up to the position, and up to where each strand is beyond it."""
    if after["offset"] < before["offset"]:
        yield f"the position goes from {before['offset']} back to {after['offset']}"
    strands = after.get("strands", {})
    for strand, offset in sorted(before.get("strands", {}).items()):
        reached = max(after["offset"], strands.get(strand, 0))
        if reached < offset:
            yield f"strand {strand} goes from {offset} back to {reached}"


def _groups(evidence: Evidence) -> Iterator[Violation]:
    """References are read by every partition of a role, which all commit them: any of their positions may stand."""
    for role, committed in sorted(evidence.positions.items()):
        last: dict[TopicPartition, set[int]] = {}
        for log in changelogs(evidence, role):
            for item in log.whole[-1].footer["positions"] if log.whole and log.whole[-1].footer else ():
                last.setdefault(TopicPartition(item["topic"], item["partition"]), set()).add(item["offset"])
        for place, offsets in sorted(last.items()):
            if committed.get(place) not in offsets:
                what = f"group {role} is at {committed.get(place)}; its last footer says {sorted(offsets)}"
                yield Violation(invariant=ID, what=what, where=f"{place.topic}-{place.partition}")


def _named(store: StoreContents) -> str:
    return f"store of {store.role}-{store.partition} on {store.machine}"
