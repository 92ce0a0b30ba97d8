"""Commands that wait: for a record of the catalog that is not adopted yet, or behind a command that does.

They stand in rows, in the order in which they were read: none overtakes another of its schedule. The first one is
looked at as soon as everything is read that the log held when it was published. What its sender had seen on the
catalog is adopted by then, and no occurrence behind it is decided: so this is nearly always the last look, and the
command takes effect at its own instant, as if it had not waited.

A record that is not there then is looked for again, for five seconds on the partition's clock. Occurrences go on
meanwhile: what waits in vain delays nobody but those behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.instants import millis
from scheduler.state import NO_DELAYS, Delays, ScheduleState, updated
from schemas import codec
from schemas.commands import COMMANDS, Command
from schemas.scheduling import CatalogAwaited, CommandDelayed, CommandTaken

if TYPE_CHECKING:
    from runtime.machine import Rows

DELAYED_MAX = 64  # of one schedule or job: more in five seconds is a publisher gone wild
PATIENCE_MS = 5_000
LOOK_EVERY_MS = 250  # twenty looks at most: each is a decision that is logged


def append(delays: Delays, rows: Rows, fact: CommandDelayed) -> Delays:
    """With one more command at the end."""
    rows.put(keys.number(keys.DELAYED, delays.first + delays.count), codec.dump(fact))
    look_ms = delays.look_ms if delays.count else _first_look_ms(fact)
    return Delays(count=delays.count + 1, first=delays.first, look_ms=look_ms)


def first(delays: Delays, rows: Rows) -> CommandDelayed:
    """The command whose turn it is."""
    row = rows.get(keys.number(keys.DELAYED, delays.first))
    assert row is not None, "what is counted stands in its row"
    return codec.load(CommandDelayed, codec.parse(row))


def without_first(delays: Delays, rows: Rows) -> Delays:
    """The next one has its turn."""
    rows.delete(keys.number(keys.DELAYED, delays.first))
    if delays.count == 1:
        return NO_DELAYS
    left = Delays(count=delays.count - 1, first=delays.first + 1)
    return Delays(count=left.count, first=left.first, look_ms=_first_look_ms(first(left, rows)))


def look_at_ms(delays: Delays) -> int | None:
    """When the first one is to be looked at."""
    return delays.look_ms if delays.count else None


def is_due(delays: Delays, horizon_ms: int) -> bool:
    """Whether it is time to look."""
    return bool(delays.count) and delays.look_ms <= horizon_ms


def until_ms(delayed: CommandDelayed) -> int:
    """How long it may wait."""
    return millis(delayed.delayed_at) + PATIENCE_MS


def command(delayed: CommandDelayed) -> Command:
    """As it was read."""
    return Command(
        id=delayed.command_id,
        source=delayed.source,
        type=delayed.command_type,
        request=COMMANDS[delayed.command_type].model_validate(delayed.data),
        position=delayed.position,
        appended_at=delayed.appended_at,
        reply_to=delayed.reply_to,
    )


def evolve_delayed(state: ScheduleState, fact: CommandDelayed) -> ScheduleState:
    """One more waits."""
    return updated(state, delays=append(state.delays, state.rows, fact))


def evolve_awaited(state: ScheduleState, fact: CatalogAwaited) -> ScheduleState:
    """The first one is looked at again later."""
    return updated(state, delays=replace(state.delays, look_ms=millis(fact.look_at)))


def evolve_taken(state: ScheduleState, _fact: CommandTaken) -> ScheduleState:
    """The first one waits no longer."""
    return updated(state, delays=without_first(state.delays, state.rows))


def _first_look_ms(delayed: CommandDelayed) -> int:
    # The log's clock may be a little ahead of ours, which is no reason to wait for it.
    return min(millis(delayed.appended_at), millis(delayed.delayed_at))
