"""Between two commits a partition knows who wants to be woken first, and asks no state twice what it wants."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.machine import Wakeup
from runtime.stores.memory import MemoryStore
from runtime.workspace import Workspace
from schemas.facts import SchedulePaused, ScheduleResumed
from tests.runtime.shell import NOON
from tests.runtime.toy import Count, ToyCore

# Of a few keys, in each batch: seconds after noon at which it wants to be woken; None: no longer.
BATCHES = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.none() | st.integers(0, 9), min_size=1, max_size=3), max_size=12
)


class ListeningCore(ToyCore):
    """Remembers of whom it was asked what they want."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def wakeup(self, state: Count) -> Wakeup:
        self.asked.append(state.name)
        return super().wakeup(state)


def want(workspace: Workspace, name: str, at: datetime | None) -> None:
    """A key wants to be woken at an instant, or not at all."""
    common = {"tenant": "t", "schedule": name, "version": 1, "effective_at": NOON, "accepted_at": NOON}
    fact = SchedulePaused(**common) if at is None else ScheduleResumed(**common, note=at.isoformat())  # type: ignore[arg-type]
    workspace.evolve(name.encode(), fact)


def commit(workspace: Workspace) -> None:
    """The end of a batch."""
    workspace.stage()
    workspace.apply({})


@settings(max_examples=100)
@given(batches=BATCHES)
def test_the_earliest_wakeup_is_known_as_wakeups_come_and_go(batches: list[dict[str, int | None]]) -> None:
    """Whichever was the first before."""
    workspace = Workspace(ToyCore(), MemoryStore())
    wanted: dict[str, datetime] = {}
    for batch in batches:
        for name, second in batch.items():
            wanted.pop(name, None)
            if second is not None:
                wanted[name] = NOON + timedelta(seconds=second)
            want(workspace, name, wanted.get(name))
        commit(workspace)
        assert workspace.earliest_wakeup() == min(wanted.values(), default=None)


def test_an_entry_that_no_state_wants_any_more_is_not_the_earliest_once_it_was_dropped() -> None:
    """A store may hold one after a crash; the one behind it is found."""
    store = MemoryStore()
    stale = b"w" + (1_000).to_bytes(8, "big") + b"a"
    store.apply({stale: b""})
    workspace = Workspace(ToyCore(), store)
    want(workspace, "a", NOON + timedelta(seconds=5))
    commit(workspace)
    assert workspace.earliest_wakeup() == datetime.fromisoformat("1970-01-01T00:00:01Z")

    workspace.drop_if_stale(stale)

    assert workspace.earliest_wakeup() == NOON + timedelta(seconds=5)


def test_a_state_that_no_fact_has_changed_is_not_asked_again_what_it_wants() -> None:
    """It said so when it was indexed; whoever is due was asked in the batch before, and nothing has happened to it."""
    core = ListeningCore()
    workspace = Workspace(core, MemoryStore())
    want(workspace, "a", NOON)
    want(workspace, "b", NOON)
    commit(workspace)
    want(workspace, "b", None)
    commit(workspace)

    assert workspace.wakeup(b"a") == Wakeup(at=NOON)
    assert workspace.wakeup(b"b") == Wakeup()
    assert core.asked == ["a", "b", "b"]


def test_states_that_are_loaded_anew_are_asked_anew() -> None:
    """A new owner would: what was noted goes with the state that it was noted of."""
    core = ListeningCore()
    workspace = Workspace(core, MemoryStore())
    want(workspace, "a", NOON)
    commit(workspace)

    workspace.forget_states()

    assert workspace.wakeup(b"a") == Wakeup(at=NOON)
    assert core.asked == ["a", "a"]
