"""A caller who reads what became of runs, as people read it on the page, and has some of them done once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from runtime.log import LogError
from runtime.record import TopicPartition
from schemas import topics
from simulation.cluster.client import ApiNode, Caller
from simulation.evidence import marker

if TYPE_CHECKING:
    from runtime.log import Reader
    from simulation.cluster.site import Site

SECONDS_OF_AN_HOUR = 3600.0
RECENT = 100  # runs, of which one is looked at
CREATED, FINISHED = "tidewheel.run.created.v1", "tidewheel.run.finished.v1"
Run = dict[str, Any]  # data of `run.created`


class Redoer(Caller):
    """Reruns what is over, redrives what was given up, some of it twice, and asks now and then for what is open."""

    def __init__(self, site: Site, node: ApiNode, name: str) -> None:
        super().__init__(site, node, name)
        self._log = site.log_of(self._machine, site.clock())
        self._reader: Reader | None = None
        self._open: dict[tuple[str, str], Run] = {}
        self._over: list[tuple[Run, str]] = []  # with their outcomes

    def live(self) -> None:
        """As often as the situation says."""
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(self._site.options.rate("again") / SECONDS_OF_AN_HOUR))
            if self._site.under_faults:
                self._read()
                self._ask()

    def _ask(self) -> None:
        letters = [run for run, outcome in self._over[-RECENT:] if outcome == "dead_lettered"]
        what = self.chance.choices(("rerun", "redrive", "open"), (4, 4, 1))[0]
        if what == "open" and self._open:
            self._wish("run.rerun", self.chance.choice(list(self._open.values())[-RECENT:]))
        elif what == "redrive" and letters:
            letter = self.chance.choice(letters)
            for _ in range(self.chance.choice((1, 1, 2))):
                self._wish("run.redrive", letter, outcome="dead_lettered")
        elif what == "rerun" and self._over:
            run, outcome = self.chance.choice(self._over[-RECENT:])
            self._wish("run.rerun", run, **self.chance.choice(({}, {"outcome": outcome})))

    def _wish(self, kind: str, run: Run, **more: Any) -> None:
        self._site.story.fault("again", self.name, f"asks for {kind} of {run['run_id']}")
        data = {"tenant": run["tenant"], "name": run["schedule"], "run_id": run["run_id"], "run": run} | more
        data["definition"] = self.chance.choice(("same", "current"))
        if self.chance.randrange(3) == 0:
            data["payload"] = {"seconds": 3, "marker": marker(run["tenant"]), "again": self._count}
        self.call(kind, data)

    # --- what is read ---------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Up to the end, as far as the log answers."""
        try:
            while found := self._opened().poll(records_max=1000, bytes_max=1 << 22, timeout=0.5):
                for record in found:
                    self._take(orjson.loads(record.value or b"{}"))
        except LogError:
            return  # What was read is known; the rest comes next time.

    def _opened(self) -> Reader:
        if self._reader is None:
            places = [TopicPartition(topics.RUN_EVENTS, number) for number in range(self._site.layout.schedule)]
            self._reader = self._log.open_reader(dict.fromkeys(places, 0))
        return self._reader

    def _take(self, event: dict[str, Any]) -> None:
        data = event.get("data", {})
        if event.get("type") == CREATED:
            self._open[data["tenant"], data["run_id"]] = data
        elif event.get("type") == FINISHED:
            run = self._open.pop((data["tenant"], data["run_id"]), None)
            if run is not None:
                self._over.append((run, str(data["outcome"])))
