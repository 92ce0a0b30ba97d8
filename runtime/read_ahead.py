"""What has been read and is not answered yet: each input's records in their turns, and whom they are about.

A burst of records of one key stands before everything else in its partition. Whoever knows that all of it is about
that key need not let the others wait for it: a key of which nothing is held here is known as far as has been read.
Reading is cheap and answering is not, so it is a multiple of what is answered that is read; and of what is far from its
turn no more is looked at than whom it is about. Of what is held here the strands of an input take turns
(`runtime.strands`), as the inputs do: who floods the partition waits for himself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from runtime.logs.reading import size_of
from runtime.machine import PARTITION
from runtime.strands import SHARED, Strands, number_of
from schemas.faults import Refused

# Records that are understood as they come: the next batch. Of the others an input is larger than its record, what is
# said of one that cannot be read is larger still, and to understand it is what would make those wait that are due.
UNDERSTOOD_MAX = 500
# Of those whom a glance tells nothing of, what is understood is kept while a partition holds no more than that: a few
# thousand runs, which would be read twice. An input takes up to three times the memory of its record.
KEPT_BYTES_MAX = 2 * 1024 * 1024
_NO_BOUNDS: Mapping[TopicPartition, int] = MappingProxyType({})

if TYPE_CHECKING:
    from runtime.record import Record, TopicPartition
    from runtime.strands import Further

Read = Callable[["Record"], tuple[bytes, Any] | None]  # `Core.read`
About = Callable[["Record"], bytes | None]  # `Core.about`
StrandOf = Callable[["Record", bytes | None, Any], bytes]  # `Core.strand`


class Unanswered(NamedTuple):
    """A record with its input; or with what is wrong with it, which is said, or raised, when its turn comes.

    With neither it is far from its turn, and is understood when that comes.
    """

    record: Record
    key: bytes | None  # None: of a record that is refused, which changes nobody's state
    input: Any = None
    refusal: Refused | None = None
    impossible: Exception | None = None


class Allowance:
    """What the partitions of a process may hold together: a host of sixty-four would have room for 4 GiB of floods.

    Once they hold `bytes_max` each may still have `share`, a batch, so that none stands still for another. Calls come
    from the threads of all of them.
    """

    def __init__(self, bytes_max: int = 256 * 1024 * 1024, *, share: int = 1024 * 1024) -> None:
        self._bytes_max = bytes_max
        self._share = share
        self._holders: WeakSet[ReadAhead] = WeakSet()  # a partition that is given back is forgotten with its processor
        self._lock = Lock()

    def join(self, holder: ReadAhead) -> None:
        """Count what a partition holds from now on."""
        with self._lock:
            self._holders.add(holder)

    def allows(self, held: int) -> bool:
        """Whether a partition that holds so many bytes may read more."""
        if held < self._share:
            return True
        with self._lock:
            return sum(holder.size for holder in self._holders) < self._bytes_max


class ReadAhead:
    """Records between the position of the reader and the one that is committed. Calls from one thread.

    It holds no more than `records_max`, and stops at `bytes_max`, or where the process has no more to allow; either may
    be passed by one read.
    """

    def __init__(
        self, read: Read, about: About, strand: StrandOf, inputs: Iterable[TopicPartition], *, records_max: int,
        bytes_max: int, allowance: Allowance | None = None,
    ) -> None:  # fmt: skip
        self._read = read
        self._about_whom = about
        self._strand = strand
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._allowance = allowance or Allowance()
        self._queues: dict[TopicPartition, Strands] = {item: Strands() for item in inputs}
        self._about: Counter[bytes] = Counter()  # only keys of which there is something
        self._count = 0
        self._bytes = 0
        self._allowance.join(self)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """How many bytes the records that are held have."""
        return self._bytes

    @property
    def room(self) -> int:
        """How many records more may be read."""
        if self._bytes >= self._bytes_max or not self._allowance.allows(self._bytes):
            return 0
        return self._records_max - self._count

    def resume(self, further: Mapping[TopicPartition, Further]) -> None:
        """Pass over what a predecessor has answered of what will be read."""
        for item, strands in further.items():
            self._queues[item].resume(strands)

    def add(self, records: Iterable[Record]) -> None:
        """Hold what was read; what is not for us is none of ours, and what is answered is done."""
        for record in records:
            is_near = self._count < UNDERSTOOD_MAX
            key = None if is_near else self._about_whom(record)
            entry = self._understood(record) if key is None else Unanswered(record, key)
            if entry is None:
                continue
            queue = self._queues[record[:2]]  # type: ignore[index]  # a tuple is its own kind of name
            strand = self._strand_of(entry)
            if queue.is_answered(strand, record.offset):
                continue
            if not is_near and key is None and (entry.input is None or self._bytes >= KEPT_BYTES_MAX):
                entry = Unanswered(record, entry.key)  # not even this name keeps what led to a refusal
            queue.append(strand, entry)
            self._count += 1
            self._bytes += size_of(record)
            if entry.key is not None:
                self._about[entry.key] += 1

    def take(
        self, records_max: int, bytes_max: int, of_each: Mapping[TopicPartition, int] = _NO_BOUNDS
    ) -> list[Unanswered]:  # fmt: skip
        """The next ones to be answered: inputs take turns, and their strands do, so that none waits for another.

        At least one, where there is any; `of_each` bounds what an input that is named gives, by number.
        """
        taken: list[Unanswered] = []
        size = 0
        left = {item: of_each.get(item, records_max) for item in self._queues}
        while len(taken) < records_max and size < bytes_max:
            ready = [item for item, queue in self._queues.items() if queue and left[item] > 0]
            if not ready:
                break
            for item in ready[: records_max - len(taken)]:
                left[item] -= 1
                taken.append(entry := self._queues[item].popleft())
                size += self._leaves(entry)
        return [self._understood_now(entry) for entry in taken]

    def is_about(self, key: bytes) -> bool:
        """Whether something is held that is about a key itself."""
        return key in self._about

    def is_known(self, key: bytes) -> bool:
        """Whether nothing is held that is about a key, or about what all keys share."""
        return key not in self._about and PARTITION not in self._about

    def position(self, item: TopicPartition, polled: int) -> int:
        """Where the first record of an input stands that is not answered, given where the next one is read."""
        return self._queues[item].position(polled)

    def further(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Further]:
        """Which strands of the inputs are answered beyond these positions, where they stand now."""
        return {item: self._queues[item].further(position) for item, position in positions.items()}

    def _strand_of(self, entry: Unanswered) -> int:
        if entry.key == PARTITION:
            return SHARED
        return number_of(self._strand(entry.record, entry.key, entry.input))

    def _understood(self, record: Record) -> Unanswered | None:
        try:
            read = self._read(record)
        except Refused as refusal:
            return Unanswered(record, None, refusal=refusal)
        except Exception as impossible:  # noqa: BLE001 -- what was read before it is answered before it stops us
            return Unanswered(record, PARTITION, impossible=impossible)
        return None if read is None else Unanswered(record, *read)

    def _understood_now(self, entry: Unanswered) -> Unanswered:
        if entry.input is not None or entry.refusal is not None or entry.impossible is not None:
            return entry
        understood = self._understood(entry.record)
        assert understood is not None, "it is about somebody"
        return understood

    def _leaves(self, entry: Unanswered) -> int:
        size = size_of(entry.record)
        self._count -= 1
        self._bytes -= size
        if entry.key is not None:
            self._about[entry.key] -= 1
            if not self._about[entry.key]:
                del self._about[entry.key]
        return size
