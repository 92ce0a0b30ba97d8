"""Processes of the next version (F7): they know fields that this version does not, at every level of what is ours.

There is no next version yet, so it is modelled by what the rules of compatibility permit it: additive changes. Facts
that it encodes, rows, footers, decision records and reports of workers have a field more; so have the objects inside
of facts. What it rolls forward or passes on it leaves as it was written, as this version does. Its event ids are of
its own content. Maps that users or names fill have no fields, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import orjson

from runtime.footer import DECISION_KEY, FOOTER_KEY
from runtime.processor import Processor
from runtime.record import Outgoing
from schemas import codec, identity, topics
from schemas.facts import RunFinished
from simulation.evidence import NEWER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.batch import Batch
    from runtime.log import Log, Producer
    from runtime.machine import Output, Rows
    from schemas.facts import Fact
    from simulation.clock import MachineClock
    from simulation.cluster.options import Options
    from simulation.cluster.site import Site
    from simulation.loop import Machine

EXTENSION = "simnewer"  # attributes of CloudEvents have no underscores
MORE: Mapping[str, Any] = {"of": ["the next version", 2], "since": None}
_MORE = orjson.dumps({NEWER: MORE})[:-1]


def drawn(options: Options, machine: Machine) -> bool:
    """Whether a process is of the next version."""
    return options.has("F7") and Random(f"version {options.seed} {machine.name}").choice((True, False))


def log_of(site: Site, machine: Machine, clock: MachineClock) -> Any:
    """The log of a process that only appends to it."""
    log = site.log_of(machine, clock)
    return NewerLog(log) if drawn(site.options, machine) else log


def event(value: bytes) -> bytes:
    """A CloudEvent of ours as the next version writes it: more attributes, more data, and an id of that content."""
    document = orjson.loads(value)
    kind, data = codec.TYPES[document["type"]], document.pop("data")
    grown = orjson.dumps(_grown(kind, data))
    known = document["id"]
    if known == identity.event_id(document["type"], document["subject"], orjson.dumps(data)):
        document["id"] = identity.event_id(document["type"], document["subject"], grown)
    return orjson.dumps({**document, EXTENSION: "2"})[:-1] + b',"data":' + grown + b"}"


def row(value: bytes) -> bytes:
    """A row, or what stands in it line by line. What is no JSON object has no room for more."""
    return b"\n".join(_object(line) for line in value.split(b"\n")) if value.startswith(b"{") else value


def frame(value: bytes) -> bytes:
    """A footer, or a part of a decision record: the facts in it are as they were encoded."""
    document = orjson.loads(value)
    document["positions"] = [{NEWER: MORE, **position} for position in document["positions"]]
    return orjson.dumps({NEWER: MORE, **document})


def _object(line: bytes) -> bytes:
    return _MORE + (b"," + line[1:] if line != b"{}" else b"}")


def _grown(kind: Any, data: Any) -> Any:
    """The value of an annotation with more fields wherever it is one of our objects."""
    if isinstance(data, list):
        inner = next(iter(_inside(kind, tuple)), None)
        return [_grown(inner, each) for each in data] if inner is not None else data
    if not isinstance(data, dict):
        return data
    own: Any = next((each for each in (kind, *_inside(kind, None)) if is_dataclass(each)), None)
    if own is None:
        return data
    hints = _hints(own)
    return {NEWER: MORE, **{name: _grown(hints.get(name), value) for name, value in data.items()}}


def _inside(kind: Any, origin: type | None) -> tuple[Any, ...]:
    """The members of an optional one, or the elements of a tuple."""
    if get_origin(kind) is tuple:
        return get_args(kind) if origin is tuple else ()
    if get_origin(kind) is Mapping or getattr(get_origin(kind), "__name__", "") == "Mapping":
        return ()
    members = get_args(kind)
    return next((get_args(each) for each in members if get_origin(each) is tuple), ()) if origin is tuple else members


@lru_cache(maxsize=1024)  # all classes there are
def _hints(kind: type) -> Mapping[str, Any]:
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}


class NewerProcessor(Processor):
    """The shell of the next version."""

    __slots__ = ("_encodes",)

    _encodes: bool

    def _apply(self, batch: Batch, fact: Fact) -> None:
        self._encodes = fact is not self._given.fact
        super()._apply(batch, fact)
        self._encodes = False

    def _stage(self, batch: Batch, fact: Fact, encoded: bytes, key: bytes | None, routes: Sequence[Output]) -> None:
        if getattr(self, "_encodes", False):
            encoded = event(encoded)
            if type(fact) is RunFinished:  # what goes into its rows is the id that it has
                id_ = orjson.loads(encoded)["id"]
                if id_ != codec.UNPUBLISHED:
                    object.__setattr__(fact, "known_id", id_)
                    codec.encode(fact, source="", time=fact.finished_at)  # which is asked for the id next
        super()._stage(batch, fact, encoded, key, routes)

    def _value(self, route: Output, batch: Batch) -> bytes | None:
        value = super()._value(route, batch)
        return value if value is None or route.carried is not None else event(value)


class NewerCore:
    """Any core; the rows that it writes have a field more."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def load(self, key: bytes, rows: Rows) -> Any:
        """See `runtime.machine.Core`."""
        return self._core.load(key, NewerRows(rows))

    def save(self, key: bytes, state: Any, rows: Rows) -> None:
        """See `runtime.machine.Core`."""
        self._core.save(key, state, NewerRows(rows))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


class NewerRows:
    """See `NewerCore`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.get, self.delete, self.scan = rows.get, rows.delete, rows.scan

    def put(self, name: bytes, value: bytes) -> None:
        """See `runtime.machine.Rows`."""
        self._rows.put(name, row(value))


class NewerLog:
    """Any log; what frames transactions has more fields, and so have records that are sent outside of any."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def open_producer(self, transactional_id: str, *, group: str) -> NewerProducer:
        """See `Log.open_producer`."""
        return NewerProducer(self._log.open_producer(transactional_id, group=group))

    def append(self, records: Iterable[Outgoing]) -> Any:
        """See `Log.append`."""
        return self._log.append([*_framed(map(_reported, records))])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class NewerProducer:
    """See `NewerLog`."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def send(self, records: Iterable[Outgoing]) -> None:
        """See `Producer.send`."""
        self._producer.send(_framed(records))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


def _reported(record: Outgoing) -> Outgoing:
    return record._replace(value=event(record.value or b"")) if record.topic == topics.ATTEMPTS else record


def _framed(records: Iterable[Outgoing]) -> Iterator[Outgoing]:
    for record in records:
        frames = record.key is not None and (record.key == FOOTER_KEY or record.key.startswith(DECISION_KEY))
        yield record._replace(value=frame(record.value)) if frames and record.value is not None else record
