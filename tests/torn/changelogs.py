"""What a changelog must look like however its transactions were torn: pure, from its committed records alone.

Footers count up by one. A decision is of the transaction that follows on the last footer; where there is a second one
of the same number, it says the same: what was decided is never decided again. A footer that counts decision parts has
its decision before it, and no mark goes back. The outputs that a footer counts are all there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runtime import footer as framing
from runtime.footer import Decision, Footer
from runtime.record import Record


@dataclass(slots=True)
class Changelog:
    """The records of one partition, taken in order. `faults` are sentences; `torn` decisions had no footer at first."""

    footer: Footer | None = None
    decision: Decision | None = None
    faults: list[str] = field(default_factory=list)
    torn: int = 0
    _owing: list[Footer] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)

    def take(self, records: Iterable[Record]) -> None:
        """The next ones."""
        for record in records:
            key, value = record.key or b"", record.value or b""
            if key == framing.FOOTER_KEY:
                self._footer(framing.read_footer(value), record.offset)
            elif key.startswith(framing.DECISION_KEY):
                self._part(key, value, record.offset)

    def owing(self) -> list[Footer]:
        """The footers whose outputs have not been counted yet."""
        owing, self._owing = self._owing, []
        return owing

    def settle(self, owing: Iterable[Footer], outputs: Mapping[str, int]) -> None:
        """Hold what these footers count against the outputs that stand on the topics, by `tw-seq`."""
        for footer in owing:
            there = outputs.get(f"{footer.role}-{footer.partition}-{footer.sequence}", 0)
            if there < footer.outputs:
                self.faults.append(f": footer {footer.sequence} counts {footer.outputs} outputs, {there} are there")

    def _part(self, key: bytes, value: bytes, offset: int) -> None:
        if key.endswith(b"0000"):
            self._parts = []
        self._parts.append(value)
        decision = framing.join_decision(self._parts)
        if decision is not None:
            self._decision(decision, offset)

    def _decision(self, decision: Decision, offset: int) -> None:
        sequence, known = decision.head.sequence, self.decision
        expected = 1 if self.footer is None else self.footer.sequence + 1
        if sequence != expected:
            self.faults.append(f"@{offset}: decision {sequence}, expected {expected}")
        if known is not None and known.head.sequence == sequence:
            self.torn += 1
            if known.facts != decision.facts:
                self.faults.append(f"@{offset}: {sequence} was decided twice")
        self.decision = decision

    def _footer(self, footer: Footer, offset: int) -> None:
        last, self.footer = self.footer, footer
        self._owing.append(footer)
        if footer.sequence != (1 if last is None else last.sequence + 1):
            self.faults.append(f"@{offset}: footer {footer.sequence} after {last and last.sequence}")
        if last is not None and (footer.clock_mark < last.clock_mark or footer.decided_until < last.decided_until):
            self.faults.append(f"@{offset}: the marks of footer {footer.sequence} go back")
        if footer.decision_parts and (self.decision is None or self.decision.head.sequence != footer.sequence):
            self.faults.append(f"@{offset}: footer {footer.sequence} without its decision")
        if footer.decision_parts and self.decision is not None and len(self.decision.facts) != footer.facts:
            self.faults.append(f"@{offset}: footer {footer.sequence} counts {footer.facts} facts")
