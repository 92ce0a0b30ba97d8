"""What stands in the files of a broker: the batches of a partition, one a line, markers of transactions among them.

No client shows them: who wrote a batch, and how its transaction ended. The broker may run or be gone.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

# Offset of the first record, bytes that follow, attributes, distance of the last record, producer id and its epoch.
_BATCH = struct.Struct(">qi4x1x4xhi8x8xqh")
_HEADER_BYTES, _PREFIX_BYTES = 61, 12  # of a batch; the prefix, offset and length, is not counted by the length
_TRANSACTIONAL, _MARKER = 0x10, 0x20
# Behind the header stand five lengths and differences of a byte each, and the version of the key in two.
_MARKER_TYPE_AT = _HEADER_BYTES + 7
_MARKERS = {0: "abort", 1: "commit"}


def told(folder: Path, *topics: str) -> str:
    """The batches of these topics' partitions below a node's folder, those without any left out."""
    partitions = sorted(place for topic in topics for place in folder.glob(f"log/{topic}-*") if place.is_dir())
    return "\n".join(f"{place.name} {line}" for place in partitions for line in batches(place))


def batches(partition: Path) -> Iterator[str]:
    """As `4-5 records of 1000 epoch 0 in a transaction` or `6 commit of 1000 epoch 0`, in their order."""
    for segment in sorted(partition.glob("*.log")):
        content, at = segment.read_bytes(), 0
        while at + _HEADER_BYTES <= len(content):
            begin = at
            first, size, attributes, distance, producer, epoch = _BATCH.unpack_from(content, begin)
            if size <= 0:  # not written yet
                break
            at += _PREFIX_BYTES + size
            by = f"of {producer} epoch {epoch}"
            if attributes & _MARKER:
                (kind,) = struct.unpack_from(">h", content, begin + _MARKER_TYPE_AT)
                yield f"{first} {_MARKERS[kind]} {by}"
            else:
                within = " in a transaction" if attributes & _TRANSACTIONAL else ""
                yield f"{first}-{first + distance} records {by}{within}"
