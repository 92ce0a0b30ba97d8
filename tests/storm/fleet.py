"""Processes of every role on one broker, each with a data folder of its own, to be killed, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from deploy.kafka.broker import free_port
from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
TIDEWHEEL = str(Path(sys.executable).parent / "tidewheel")
START_SECONDS = 120  # for a dozen Python processes on two busy cores


@dataclass(slots=True, eq=False)
class Member:
    """One process: how it is started, and the one that runs now."""

    name: str
    command: Sequence[str]
    output: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    frozen: bool = False
    _process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process is there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    def start(self) -> None:
        """Start it; what it says goes behind what it said before."""
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self.command, cwd=ROOT, env=os.environ | dict(self.environment), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output,
            )  # fmt: skip
        self.frozen = False

    def is_ready(self) -> bool:
        """Whether it has ever said so."""
        return self.said("is ready") > 0

    def said(self, words: str) -> int:
        """How often it said them."""
        return self.output.read_bytes().count(words.encode())

    def kill(self) -> None:
        """SIGKILL: no word, no clean-up."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP: its sockets stay open, and it believes that no time passes."""
        self._signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        """SIGCONT: it goes on in the middle of what it was doing."""
        self._signal(signal.SIGCONT)
        self.frozen = False

    def ask_to_stop(self) -> None:
        """SIGTERM."""
        self.thaw()
        self._signal(signal.SIGTERM)

    def wait(self, seconds: float) -> int | None:
        """Its exit code; killed when it takes longer."""
        if self._process is None:
            return None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


class Fleet:
    """All processes of a storm: `roles` says how many of each; every other worker speaks HTTP, to the one API.

    The others speak to Kafka, so that work goes on while the API is down, as it does where people have several.
    """

    def __init__(
        self, folder: Path, bootstrap: str, *, namespace: str, roles: Mapping[str, int], workers: int, slots: int,
        partitions: int = 4, session_timeout: str = "6s",
    ) -> None:  # fmt: skip
        self._folder = folder
        self._bootstrap, self._namespace = bootstrap, namespace
        self._replicas = bootstrap.count(",") + 1  # as many as there are brokers
        self._in_sync = self._replicas // 2 + 1
        self.url = f"http://127.0.0.1:{free_port(1)}"
        self._config = folder / "tidewheel.toml"
        self._config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = {partitions}\n'
            f'session_timeout = "{session_timeout}"\n'
            f"replication_factor = {self._replicas}\nmin_insync_replicas = {self._in_sync}\n"
            f'read_model = "sqlite:///{folder / "read-model.sqlite"}"\nport = {self.url.rpartition(":")[2]}\n',
            encoding="utf-8",
        )
        self.api = self._server("api", 0)
        self.owners = [self._server(role, number) for role, count in roles.items() for number in range(count)]
        self.workers = [self._worker(number, slots) for number in range(workers)]

    @property
    def members(self) -> list[Member]:
        """Everyone."""
        return [self.api, *self.owners, *self.workers]

    def log(self) -> KafkaLog:
        """What all of them stand on, to be looked at."""
        settings = KafkaSettings(
            bootstrap=self._bootstrap, namespace=self._namespace, replication_factor=self._replicas,
            min_insync_replicas=self._in_sync,
        )  # fmt: skip
        return KafkaLog(settings, SystemClock())

    def start(self) -> None:
        """The API first, which makes the topics; then everyone else, again and again as by a supervisor."""
        self.api.start()
        eventually(self._answers, within=START_SECONDS, what=f"{self.url} answers")
        for member in (*self.owners, *self.workers):
            member.start()
        for member in self.owners:
            eventually(partial(self._is_ready, member), within=START_SECONDS, what=self.said)

    def revive(self) -> list[Member]:
        """Start again who has ended, as a supervisor does; who that was."""
        ended = [member for member in self.members if not member.is_running]
        for member in ended:
            member.start()
        return ended

    def stop(self) -> None:
        """Everyone at once; who does not listen is killed."""
        for member in self.members:
            member.ask_to_stop()
        for member in self.members:
            member.wait(30)

    def said(self) -> str:
        """The last words of each, for a test that failed."""
        texts = (f"--- {member.name}\n{_tail(member.output)}" for member in self.members if member.output.exists())
        return "\n".join(texts)

    def _is_ready(self, member: Member) -> bool:
        self.revive()  # A process that finds no broker ends, and a busy machine's broker may not answer for a while.
        return member.is_ready()

    def _server(self, role: str, number: int) -> Member:
        name = f"{role}-{number}"
        command = [TIDEWHEEL, "serve", "--config", str(self._config), "--roles", role, "--data"]
        return Member(name, [*command, str(self._folder / name)], self._folder / f"{name}.log")

    def _worker(self, number: int, slots: int) -> Member:
        name = f"worker-{number}"
        command = [TIDEWHEEL, "worker", "tests.storm.tasks:worker", "--slots", str(slots)]
        over_kafka = ["--bootstrap", self._bootstrap, "--namespace", self._namespace]
        reaches = over_kafka if number % 2 else ["--url", self.url]
        return Member(name, [*command, *reaches], self._folder / f"{name}.log")

    def _answers(self) -> bool:
        assert self.api.is_running, f"the API has ended:\n{_tail(self.api.output)}"
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz").status_code == httpx.codes.OK
        return False


def _tail(file: Path, size: int = 3000) -> str:
    return file.read_bytes()[-size:].decode("utf-8", "replace")
