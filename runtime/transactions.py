"""The transactions of one partition: what a batch decided is written as one, and then applied to the store.

A transaction is written in this order: decision record (flushed), outputs (flushed), rows and footer, which share a
partition; positions are committed with it. Without outputs all of it goes to that partition, where it keeps its order,
and nothing is flushed. Only then is the store changed, in one atomic write. What a crash does, at each point:

    before the commit      nothing was seen; the successor reads the same inputs again
    during the commit      whole or not at all; a torn one is rolled forward from its decision record (restore)
    after the commit       the store is behind; the successor replays the changelog's tail
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from runtime import continuity, hanging
from runtime import footer as framing
from runtime.clock_watch import NEVER_READ
from runtime.footer import DecisionHead, Footer, InputPosition
from runtime.log import LogError
from runtime.partition import Checkpoint, Partition, checkpoint_bytes
from runtime.record import SEQUENCE_HEADER, Outgoing, TopicPartition
from runtime.telemetry import Event, Metric
from runtime.workspace import META

if TYPE_CHECKING:
    from runtime.batch import Batch
    from runtime.clock import Clock
    from runtime.clock_watch import ClockWatch
    from runtime.log import Log, Producer
    from runtime.strands import Further
    from runtime.telemetry import Telemetry
    from runtime.workspace import Workspace


class Transactions:
    """Writes them for one owner, in their order.

    `take_over`, `end_what_hangs`, `resume` where there was one, `expect`, then `write`.
    """

    def __init__(
        self, partition: Partition, log: Log, workspace: Workspace, watch: ClockWatch, clock: Clock,
        telemetry: Telemetry,
    ) -> None:  # fmt: skip
        self._partition = partition
        self._log = log
        self._workspace = workspace
        self._watch = watch
        self._clock = clock
        self._telemetry = telemetry
        self._labels = {"role": partition.role, "partition": str(partition.number)}
        self._producer: Producer | None = None
        self._partitions: Mapping[str, int] = {}
        self._incarnations: Mapping[str, str] = {}
        self._decided_until = NEVER_READ
        self._sequence = self._epoch_min = 0
        self._ended_at: int | None = None  # where the last transaction of ours has its footer
        self._outputs: Sequence[Outgoing] = ()  # and what it sent
        self._signed: tuple[int, int] | None = None  # the log's epoch of our client, and with which one we sign

    @property
    def sequence(self) -> int:
        """Of the last transaction."""
        return self._sequence

    @property
    def decided_until(self) -> datetime:
        """Up to where the last transaction says that everything is decided."""
        return self._decided_until

    # --- taking over ----------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Fence the predecessor, whose open transaction that aborts.

        What stands before it in the changelog may hang, and go with it: its owner may have been told that it was
        committed, and have begun another one. So what has its footer there is copied first (`runtime.hanging`); if it
        is the one that is open, its copy is carried out instead of deciding the same anew.
        """
        if opened := self._what_is_open():
            self._copy(opened, whole=True)
        self._producer = self._log.open_producer(self._partition.transactional_id, group=self._partition.role)

    def end_what_hangs(self) -> None:
        """End what a predecessor has left without an end in the changelog, if anything.

        Taking over has ended all that the log's coordinator knew of. What is open all the same it takes for ended
        already, be it committed or aborted: nobody else will end it, and whoever reads on waits for ever. Our next end
        is its end too. It is a commit, as an abort would take what its owner may have been told is committed; what
        was to be aborted is carried out instead (`runtime.restore`). Should we fail before that, our successor's abort
        is its end: then there is the copy that is made before (`runtime.hanging`). No positions go with it, for which
        a broker may want it repeated; those of the group may hang as well, and go first: nobody comes back for them.
        """
        opened = self._what_is_open()
        if not opened:
            return
        self._copy(opened)
        self.end_positions()
        changelog, producer = self._partition.changelog, self._opened()
        producer.begin()
        producer.send((hanging.ended(changelog, opened.start),))
        producer.commit({})
        self._telemetry.warning(Event.TRANSACTION_HUNG, topic=changelog.topic, begins_at=opened.start, **self._labels)

    def end_positions(self) -> None:
        """End what may hang of the group's positions: none can be asked for until then. Either end is good for them."""
        changelog, producer = self._partition.changelog, self._opened()
        producer.begin()
        producer.commit({changelog: self._log.end_offset(changelog)})  # a position that nobody reads by

    def _what_is_open(self) -> range:
        """The offsets of the changelog that no committed reader gets to."""
        changelog = self._partition.changelog
        end = self._log.end_offset(changelog)
        return range(self._log.stable_offset(changelog), end)

    def _copy(self, opened: range, *, whole: bool = False) -> None:
        copies = hanging.copies(self._log, self._partition.changelog, opened.start, opened.stop, whole=whole)
        self._log.append(copies)

    def resume(self, footer: Footer) -> None:
        """Go on behind the last whole transaction."""
        self._decided_until = footer.decided_until
        self._sequence, self._epoch_min, self._signed = footer.sequence, footer.epoch + 1, None
        self._tell_how_far()

    def outbid(self, epoch: int) -> None:
        """Write with a higher epoch than the owner of a torn transaction had."""
        self._epoch_min, self._signed = max(self._epoch_min, epoch + 1), None

    def expect(self, incarnations: Mapping[str, str], partitions: Mapping[str, int]) -> None:
        """Which topics these are: the incarnation of those we remember places of, the counts of those we write to.

        The counts are kept, not copied: they grow with the topics that are written to for the first time.
        """
        self._incarnations, self._partitions = incarnations, partitions

    @property
    def tells_time(self) -> bool:
        """Whether a commit answers with the log's time."""
        return self._opened().tells_time

    def close(self) -> None:
        """Let the id go; idempotent."""
        if self._producer is not None:
            self._producer.close()

    # --- writing --------------------------------------------------------------------------------------------------

    def decided(self, batch: Batch) -> datetime:
        """Up to where the partition has decided everything."""
        if batch.answered:
            return max(self._decided_until, batch.moment.read_until)
        oldest = self._workspace.earliest_wakeup() or batch.moment.read_until
        return max(self._decided_until, min(batch.moment.read_until, oldest - timedelta(milliseconds=1)))

    def write(
        self, batch: Batch, positions: Mapping[TopicPartition, int], further: Mapping[TopicPartition, Further],
        decided_until: datetime,
    ) -> None:  # fmt: skip
        """The transaction, then the store. `batch` may be a new one or one that is rolled forward.

        Where no marker stands behind the transaction before, that hung, and has ended with ours: here, and maybe not
        where it sent something, which is sent again in another one.
        """
        continuity.check_topics(self._log, self._incarnations, self._partitions)
        producer = self._opened()
        epoch, began, changelog = producer.epoch, self._clock.since_boot(), self._partition.changelog
        rows = self._workspace.stage()
        listed = continuity.listed(positions, further, self._incarnations)
        producer.begin()  # Its client may be another one from here on, and we sign with another epoch.
        if producer.epoch != epoch:  # the transaction before was in doubt
            self._check_nothing_hangs()
        parts = self._decision_parts(batch, listed, decided_until) if batch.facts else []
        producer.send(
            Outgoing(*changelog, framing.DECISION_KEY + b"%04d" % index, part) for index, part in enumerate(parts)
        )
        if batch.outputs:  # Who finds one of them must find what was decided.
            producer.flush()
        producer.send(batch.outputs)
        if batch.outputs:
            producer.flush()  # Its footer says that they are there. To another partition it would overtake them.
        footer = Footer(
            role=self._partition.role, partition=self._partition.number, epoch=self._owner_epoch(),
            sequence=batch.sequence, clock_mark=batch.moment.now, decided_until=decided_until, positions=listed,
            facts=len(batch.facts), outputs=len(batch.outputs), rows=len(rows), decision_parts=len(parts),
            changelog_id=self._incarnations[changelog.topic], digest=self._workspace.walk.taken(began),
        )  # fmt: skip
        producer.send(Outgoing(*changelog, key, value) for key, value in rows.items())
        sent_at = self._clock.since_boot()
        producer.send((Outgoing(*changelog, framing.FOOTER_KEY, framing.footer_bytes(footer)),))
        receipt = producer.commit(positions)
        self._workspace.apply({META: checkpoint_bytes(self._checkpoint(footer, receipt.offsets[-1] + 1))})
        self._sequence, self._decided_until = batch.sequence, decided_until
        self._tell_how_far()
        self._watch.hear(receipt.told_at, sent_at)
        self._telemetry.observe(Metric.COMMIT_SECONDS, self._labels, self._clock.since_boot() - began)
        before, outputs, self._outputs = self._ended_at, self._outputs, batch.outputs
        self._ended_at = receipt.offsets[-1] if producer.marks_ends else None
        if before is not None and receipt.offsets[0 if parts else len(batch.outputs)] == before + 1:
            self._telemetry.warning(Event.TRANSACTION_HUNG, topic=changelog.topic, begins_at=before, **self._labels)
            if outputs:
                self.write(_again(outputs, batch), positions, further, decided_until)

    def _check_nothing_hangs(self) -> None:
        """LogError where something does: an abort of ours would take it, and what else it sent may hang elsewhere."""
        if self._what_is_open():
            changelog = self._partition.changelog
            raise LogError(f"{changelog.topic}/{changelog.partition}: the last transaction was left without an end")

    def _tell_how_far(self) -> None:
        self._telemetry.set(Metric.DECIDED_UNTIL, self._labels, self._decided_until.timestamp())

    def _decision_parts(
        self, batch: Batch, positions: tuple[InputPosition, ...], decided_until: datetime
    ) -> list[bytes]:
        head = DecisionHead(
            role=self._partition.role, partition=self._partition.number, epoch=self._owner_epoch(),
            sequence=batch.sequence, part=0, last=False, now=batch.moment.now, read_until=batch.moment.read_until,
            decided_until=decided_until, entropy=batch.moment.entropy.hex(), positions=positions,
        )  # fmt: skip
        return framing.decision_parts(head, batch.facts)

    def _checkpoint(self, footer: Footer, changelog_offset: int) -> Checkpoint:
        return Checkpoint(
            cluster_id=self._log.cluster_id, topic_id=footer.changelog_id, role=footer.role,
            partition=footer.partition, changelog_offset=changelog_offset, footer=footer,
        )  # fmt: skip

    def _owner_epoch(self) -> int:
        """The log's; should it have forgotten the id, one above the last, for each client that we write by."""
        epoch = self._opened().epoch
        if self._signed is None or self._signed[0] != epoch:
            self._signed = epoch, max(epoch, self._epoch_min)
            self._epoch_min = self._signed[1] + 1
        return self._signed[1]

    def _opened(self) -> Producer:
        assert self._producer is not None, "take over first"
        return self._producer


def _again(outputs: Sequence[Outgoing], behind: Batch) -> Batch:
    """What was sent, in a transaction of its own, which decides nothing."""
    sequence = behind.sequence + 1
    owner, _, _ = behind.headers[0][1].rpartition(b"-")
    headers = ((SEQUENCE_HEADER, b"%b-%d" % (owner, sequence)),)
    return replace(
        behind, sequence=sequence, headers=headers, facts=[], told=[], size=0,
        outputs=[output._replace(headers=headers + output.headers[1:]) for output in outputs],
    )  # fmt: skip
