"""Workers that are lost with what they have, and what follows."""

from typing import Any

from schemas.facts import RunCreated
from schemas.internal import HandOut
from tests.dispatcher.harness import Bench, WorkerSim, job, retry, run

KILLER = "bad"


def of_job(name: str, number: int, **given: Any) -> RunCreated:
    """A run of a registered job that failures never hold."""
    return run(
        number, schedule=name, run_id=f"{name}.{number}", job=job(name=name, retry=retry(max_attempts=1), **given)
    )


class Life:
    """A process of a name that is started again whenever it died."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.name, self.lives = bench, name, 0
        self.worker = WorkerSim(bench, name, incarnation=f"{name}-0")

    def report(self, slots: int, **said: Any) -> list[Any]:
        return self.worker.report(slots=slots, **said)

    def dies(self) -> None:
        """It says nothing of what it was handed, not even that any of it began."""
        self.lives += 1
        self.worker = WorkerSim(self.bench, self.name, incarnation=f"{self.name}-{self.lives}")

    def holds(self) -> list[HandOut]:
        live = {entry.lease for entry in self.bench.state.runs.values() if entry.is_leased}
        return [item for item in self.worker.inbox_records() if item.lease in live]


def lose(life: Life, slots: int, times: int = 1) -> list[Any]:
    """It is handed what there is and dies of it, so many times; what follows from the last death alone."""
    for _ in range(times):
        life.report(slots)
        life.dies()
    return life.report(0)
