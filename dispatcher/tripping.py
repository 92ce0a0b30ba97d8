"""The breakers of a shard: which of them hold runs, what is being tried of them, and which changes next.

A run that begins to wait while a breaker of its own is not closed stands apart, in a leaf of that breaker. One that
waited before is met when its turn comes: it is told then, and goes there too. So a breaker that opens costs nothing by
itself, however many runs wait behind it.

Of suspects one run each is with workers, and no more runs than there are workers: so each can have a worker without
another suspect, and the next loss says whose it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from itertools import takewhile

from dispatcher import breakers
from dispatcher.breakers import Aboard, Breaker
from dispatcher.run import OpenRun, key_of
from dispatcher.timers import Timers
from schemas.facts import AttemptFinished, AttemptOutcome, BreakerChanged, BreakerPolicy, BreakerState, Fact

Overdue = tuple[str, Aboard]  # a worker's incarnation, and what it had


class Breakers:
    """`on_changed` is called with tenant and name of each whose runs may be handed out more or less than before."""

    def __init__(
        self,
        policy_of: Callable[[str], BreakerPolicy | None],
        workers: Callable[[], int],
        on_changed: Callable[[str, str], None],
    ) -> None:
        self._policy_of = policy_of  # that a tenant's definition gives
        self._workers = workers  # how many take runs
        self._on_changed = on_changed
        self._closed: dict[str, Breaker] = {}  # by key; the one that was noted last stands last
        self._tripped: dict[str, Breaker] = {}
        self._probes: dict[
            str, dict[str, datetime]
        ] = {}  # of those that are half open: runs that are tried, since when
        self._suspects: dict[str, None] = {}  # keys of those of the tripped that are
        self._suspected: dict[str, OpenRun] = {}  # their runs that are tried, by key
        self._overdue: dict[str, Overdue] = {}  # of suspects: whose run was ended, and whose worker was not heard of
        self._is_full = False  # whether no other suspect may be tried, as was told
        self._timers: Timers[str] = Timers(self._due_at)
        self.touched: dict[str, None] = {}  # keys of those whose rows are to be written

    # --- questions ------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Breaker | None:
        """A breaker that has something to say."""
        return self._tripped.get(key) or self._closed.get(key)

    @property
    def tripped_count(self) -> int:
        """How many are not closed."""
        return len(self._tripped)

    def first_due(self) -> tuple[datetime, str] | None:
        """The breaker that changes first, and when."""
        return self._timers.first()

    def is_shut(self, tenant: str, name: str) -> bool:
        """Whether nothing of it may be handed out now."""
        key = key_of_breaker(tenant, name)
        breaker = self._tripped.get(key)
        if breaker is None:
            return False
        if breaker.state is BreakerState.OPEN or breaker.probe_failed is not None or self._is_tried(key, breaker):
            return True
        return breaker.suspect and (key in self._overdue or self._no_suspect_more())

    def is_suspect(self, tenant: str, name: str) -> bool:
        """Whether workers died one after another with runs of it, and it is not cleared of that."""
        return key_of_breaker(tenant, name) in self._suspects

    @property
    def tries_suspects(self) -> bool:
        """Whether any suspect has a run with a worker, or had one there of which nothing was heard since."""
        return bool(self._suspected or self._overdue)

    def tries(self, run: OpenRun) -> bool:
        """Whether a run is a suspect's, and with a worker."""
        return key_of(run) in self._suspected

    def with_suspects(self) -> set[str]:
        """The workers that have a run of a suspect, or had one and were not heard of since."""
        return {*(run.incarnation for run in self._suspected.values()), *(each[0] for each in self._overdue.values())}

    def suspects_with(self, incarnation: str) -> int:
        """How many suspects have, or had, a run there."""
        tried = (
            key_of_breaker(run.tenant, run.own_breaker)
            for run in self._suspected.values()
            if run.incarnation == incarnation
        )
        return len({*tried, *(key for key, _ in self._overdue_with(incarnation))})

    def stopped(self, facts: Iterable[Fact]) -> Iterator[Breaker]:
        """The suspects of which a worker says that it has stopped a run, as it was asked to."""
        for fact in facts:
            if type(fact) is AttemptFinished and fact.outcome is AttemptOutcome.CANCELLED and fact.started_at:
                run = self._suspected.get(key_of(fact))
                if run is not None:
                    yield self._tripped[key_of_breaker(run.tenant, run.own_breaker)]

    def heard_of(self, incarnation: str, still: Collection[int]) -> Iterator[Breaker]:
        """The suspects of which a run that had begun was ended under a worker that is there; not those it still has."""
        for key, aboard in self._overdue_with(incarnation):
            if aboard.handout not in still and aboard.begun:
                yield self._tripped[key]

    def outlived(self, incarnation: str, leases: Collection[str], at: datetime) -> Iterator[Breaker]:
        """The suspects of which a worker that has just reported holds a run, and has for as long as their wait."""
        for run in self._suspected.values():
            if run.incarnation == incarnation and run.lease in leases:
                breaker = self._tripped[key_of_breaker(run.tenant, run.own_breaker)]
                since = run.attempt_started_at or run.handed_out()
                if breaker.probe_failed is None and at - since >= breaker.policy.wait:
                    yield breaker

    def since(self, tenant: str, name: str) -> datetime | None:
        """Since when it has not been closed."""
        breaker = self._tripped.get(key_of_breaker(tenant, name))
        return None if breaker is None else breaker.since

    def until(self, tenant: str, name: str) -> datetime | None:
        """Until when nothing of it is handed out; None when that is not known."""
        breaker = self._tripped.get(key_of_breaker(tenant, name))
        return None if breaker is None else breaker.until

    def holding(self, run: OpenRun) -> str:
        """The breaker that a run which begins to wait stands behind; empty where all of its own are closed."""
        if not self._tripped:
            return ""
        return next((name for name in run.breakers if key_of_breaker(run.tenant, name) in self._tripped), "")

    def blocking(self, run: OpenRun) -> str:
        """The breaker that keeps a run from being handed out; empty where none does."""
        if not self._tripped:
            return ""
        return next((name for name in run.breakers if self.is_shut(run.tenant, name)), "")

    def trying(self, run: OpenRun) -> Iterator[str]:
        """The breakers of which a run would be a probe."""
        if self._tripped:
            yield from (name for name in run.breakers if key_of_breaker(run.tenant, name) in self._tripped)

    def tripped_of(self, tenant: str) -> Iterator[Breaker]:
        """Those of a tenant that are not closed, by name."""
        mine = (breaker for breaker in self._tripped.values() if breaker.tenant == tenant)
        yield from sorted(mine, key=lambda breaker: breaker.name)

    # --- changes --------------------------------------------------------------------------------------------------

    def restore(self, breaker: Breaker) -> None:
        """A breaker as its row says, in the order in which they were noted."""
        key = key_of_breaker(breaker.tenant, breaker.name)
        self._place(key, breaker)
        self._expect(key)

    def note(self, run: OpenRun, fact: AttemptFinished, *, next_offset: int) -> None:
        """An attempt ended; it counts where it was handed out since the breaker last changed."""
        if fact.outcome is AttemptOutcome.SUCCEEDED and not (self._closed or self._tripped or fact.held):
            return  # mostly: nobody has anything to forget
        policy = self._policy_of(run.tenant) or breakers.DEFAULT
        if fact.held:
            self.lose(run.aboard(fact.outcome), fact.finished_at, blame=fact.blame, next_offset=next_offset)
        if (failed := breakers.says(fact)) is not None:
            self._note(run, fact, run.own_breaker, run.breaker_policy or policy, failed=failed)
        if run.host_breaker and (failed := breakers.says_of_host(fact)) is not None:
            self._note(run, fact, run.host_breaker, policy, failed=failed)

    def lose(self, aboard: Aboard, at: datetime, *, next_offset: int, blame: float = 0.0) -> None:
        """A run went with its worker. `blame`: of a suspect.

        Also where its policy says that failures never open it: it is the others' workers that are lost.
        """
        self._forget(at)
        key = key_of_breaker(aboard.tenant, aboard.breaker)
        known = self.get(key)
        if known is not None and (known.state is BreakerState.OPEN or _is_older(aboard.handed_out_at, known)):
            return
        policy = aboard.policy or self._policy_of(aboard.tenant) or breakers.DEFAULT
        new = breakers.lost(known, aboard, policy, at, blame=blame, next_offset=next_offset)
        if new is not known:
            self._keep(key, new)
            self._on_changed(aboard.tenant, aboard.breaker)

    def change(self, fact: BreakerChanged) -> None:
        """A breaker stands otherwise."""
        key = key_of_breaker(fact.tenant, fact.breaker)
        known = self.get(key)
        if known is None:
            policy = self._policy_of(fact.tenant) or breakers.DEFAULT
            known = Breaker(tenant=fact.tenant, name=fact.breaker, policy=policy, noted_at=fact.changed_at)
        if fact.state is not BreakerState.HALF_OPEN:
            for run_key in self._probes.pop(key, ()):
                self._suspected.pop(run_key, None)
        self._overdue.pop(key, None)
        self._keep(key, breakers.changed(known, fact))
        self._on_changed(fact.tenant, fact.breaker)
        self.suspects_changed()

    def taken(self, run: OpenRun) -> None:
        """A run is with a worker, since the instant that it says."""
        if not self._tripped:
            return  # nearly always
        self._tried(run, lambda probes, key: probes.__setitem__(key, run.handed_out()))
        if self._suspects and self._is_probe_of_suspect(run):
            self._suspected[key_of(run)] = run
            self.suspects_changed()

    def given_back(self, run: OpenRun) -> None:
        """A run is with a worker no longer."""
        if self._tripped:
            self._tried(run, lambda probes, key: probes.pop(key, None))
        if self._suspected and self._suspected.pop(key_of(run), None) is not None:
            self.suspects_changed()

    def ran_over(self, incarnation: str, aboard: Aboard) -> None:
        """A run was ended without its worker's word: of a suspect no other goes until that is heard of, or missed."""
        key = key_of_breaker(aboard.tenant, aboard.breaker)
        if key not in self._suspects:
            return
        breaker = self._tripped[key]
        is_tried = breaker.state is BreakerState.HALF_OPEN and breaker.probe_failed is None
        if is_tried and not _is_older(aboard.handed_out_at, breaker):
            self._overdue[key] = incarnation, aboard
            self._on_changed(aboard.tenant, aboard.breaker)
            self.suspects_changed()

    def report(self, incarnation: str, still: Collection[int] = ()) -> None:
        """A worker is there, or has left in order; `still`: the hand-outs that it has though their time is up."""
        for key, aboard in self._overdue_with(incarnation):
            if aboard.handout not in still:
                self._settle(key, aboard)

    def miss(self, incarnation: str, at: datetime, *, next_offset: int) -> None:
        """A worker went without a word: of the suspects whose run was ended under it, each may have been the cause."""
        blame = breakers.share(self.suspects_with(incarnation))
        for key, aboard in self._overdue_with(incarnation):
            self.lose(aboard, at, blame=blame, next_offset=next_offset)
            self._settle(key, aboard)

    def suspects_changed(self) -> None:
        """There are more or fewer suspects, of them with workers, or workers."""
        is_full = self._no_suspect_more()
        if is_full is not self._is_full:
            self._is_full = is_full
            for key in self._suspects:
                breaker = self._tripped[key]
                self._on_changed(breaker.tenant, breaker.name)

    # --- what follows ---------------------------------------------------------------------------------------------

    def _is_tried(self, key: str, breaker: Breaker) -> bool:
        """Whether as many probes are out as may be."""
        most = 1 if breaker.suspect else breaker.policy.probes + breaker.probes_more
        return len(self._probes.get(key, ())) >= most

    def _no_suspect_more(self) -> bool:
        return len(self._suspected) + len(self._overdue) >= max(1, self._workers())

    def _overdue_with(self, incarnation: str) -> list[tuple[str, Aboard]]:
        """Of the suspects whose run was ended under a worker: by key, what it had."""
        return [(key, aboard) for key, (mine, aboard) in self._overdue.items() if mine == incarnation]

    def _settle(self, key: str, aboard: Aboard) -> None:
        """It is known what became of the worker."""
        del self._overdue[key]
        self._on_changed(aboard.tenant, aboard.breaker)
        self.suspects_changed()

    def _is_probe_of_suspect(self, run: OpenRun) -> bool:
        return key_of(run) in self._probes.get(key_of_breaker(run.tenant, run.own_breaker), ()) and self.is_suspect(
            run.tenant, run.own_breaker
        )

    def _tried(self, run: OpenRun, change: Callable[[dict[str, datetime], str], object]) -> None:
        for name in self.trying(run):
            key = key_of_breaker(run.tenant, name)
            breaker = self._tripped[key]
            if breaker.state is BreakerState.HALF_OPEN and not _is_older(run.handed_out(), breaker):
                change(self._probes.setdefault(key, {}), key_of(run))
                self._expect(key)
                self._on_changed(run.tenant, name)

    def _note(self, run: OpenRun, fact: AttemptFinished, name: str, policy: BreakerPolicy, *, failed: bool) -> None:
        key = key_of_breaker(run.tenant, name)
        known = self.get(key)
        if known is None and not (failed and policy.failures):
            return
        if known is not None and (known.state is BreakerState.OPEN or _is_older(run.handed_out(), known)):
            return
        self._forget(fact.finished_at)
        new = breakers.noted(known, fact, name, policy, failed=failed)
        self._keep(key, new)
        if breakers.is_over(new, fact.finished_at):
            del self._closed[key]
        self._on_changed(run.tenant, name)

    def _keep(self, key: str, breaker: Breaker) -> None:
        self._closed.pop(key, None)
        self._tripped.pop(key, None)
        self._place(key, breaker)
        self.touched[key] = None
        self._expect(key)

    def _place(self, key: str, breaker: Breaker) -> None:
        (self._closed if breaker.state is BreakerState.CLOSED else self._tripped)[key] = breaker
        if breaker.suspect:
            self._suspects[key] = None
        else:
            self._suspects.pop(key, None)

    def _forget(self, at: datetime) -> None:
        """Closed ones that have nothing to say any longer; the longest untouched stand first."""
        gone = list(takewhile(lambda pair: breakers.is_over(pair[1], at), self._closed.items()))
        for key, _ in gone:
            del self._closed[key]
            self.touched[key] = None

    def _expect(self, key: str) -> None:
        due_at = self._due_at(key)
        if due_at is not None:
            self._timers.not_before(key, due_at)

    def _due_at(self, key: str) -> datetime | None:
        breaker = self.get(key)
        if breaker is None:
            return None
        due_at = breakers.due_at(breaker)
        probes = self._probes.get(key)
        if due_at is None or not probes or breaker.probe_failed is not None or not self._is_tried(key, breaker):
            return due_at
        if breaker.suspect:
            return due_at  # another one could take down another worker before it is known that the first one did
        return min(due_at, breakers.next_probe_at(breaker, max(probes.values())))


def key_of_breaker(tenant: str, name: str) -> str:
    """What a breaker goes by in its shard."""
    return f"{tenant}/{name}"


def _is_older(handed_out_at: datetime, breaker: Breaker) -> bool:
    """Whether a run was handed out before the breaker last changed."""
    return breaker.changed_at is not None and handed_out_at < breaker.changed_at
