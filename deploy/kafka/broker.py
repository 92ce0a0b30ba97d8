"""A Kafka for development and tests without containers: the broker's own jars, run by the machine's Java.

    python deploy/kafka/broker.py [--data DIR] [--brokers 3] [--port 9092]

The jars are fetched once, by Maven, into a cache that all checkouts share. Each node is broker and controller in one,
listens on the loopback address only and keeps everything below DIR: started again, it has its data. Nothing but the
standard library is needed, so this works before anything is installed.

A cluster ends with the process that started it, even if that is killed. A crash of a node loses nothing that it
acknowledged: the operating system still holds what was written.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import string
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

KAFKA = "4.4.0"  # pom.xml names the same.
HERE = Path(__file__).parent
HOST = "127.0.0.1"
CONTROLLER_PORT_DISTANCE = 100  # A controller listens so far above its broker.
# Below the range from which the system gives out ports for outgoing connections: between choosing a port and listening
# on it a JVM starts, and meanwhile nobody is given a port from here by chance.
FREE_PORTS = range(20_000, 32_000)
START_SECONDS = 90  # Three JVMs took 30 on two cores that others kept busy.
STOP_SECONDS = 10  # A node that lost its quorum would wait for it longer; its data is safe without a farewell.
# The quick compiler alone: a node is up with half the work, and tests are over before the other would pay.
# KAFKA_OPTS, as Kafka's own scripts know it, overrules: -XX:TieredStopAtLevel=4 brings back full speed for benchmarks.
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")
LOOK_SECONDS = 1  # How soon the starter notices that a node has died.
SAYS_LITTLE = re.compile(r"\S+ INFO |\s+(at|\.\.\.) ")  # Of a broker's log: what went well, and the way to a failure.
WORDS_MAX = 15  # Lines of a failed start: a terminal shows them with room to spare.


class Unavailable(Exception):
    """There can be no broker here; the message says what to install or to mend."""


class Node:
    """One broker and controller: its folder, its ports, and the process that runs it now."""

    def __init__(self, number: int, port: int, folder: Path) -> None:
        self.number = number
        self.port = port
        self.folder = folder
        self.address = f"{HOST}:{port}"
        self.voter = f"{number}@{HOST}:{port + CONTROLLER_PORT_DISTANCE}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def prepare(self, cluster_id: str, voters: Sequence[str], settings: Mapping[str, str]) -> None:
        """Write its settings, and on the first start its empty storage."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._settings.write_text(self._filled_in(voters) + _lines(settings), encoding="utf-8")
        if not (self.folder / "log" / "meta.properties").exists():
            _run(java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(self._settings)))

    def start(self) -> None:
        """Start the process; `is_ready` tells when it serves. It ends with the calling thread."""
        assert not self.is_running, f"node {self.number} runs already"
        for port in (self.port, self.port + CONTROLLER_PORT_DISTANCE):
            if not is_free(port):
                raise Unavailable(f"port {port} is taken: stop who listens there, or choose another port")
        command = java("kafka.Kafka", str(self._settings), log=self._log)
        with self._output.open("wb") as output:
            # A session of its own: Ctrl-C is for the starter, which ends its nodes in order.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def is_ready(self, brokers: int) -> bool:
        """Whether it serves and knows so many brokers, itself included; Unavailable when it has ended."""
        self.must_run()
        return brokers_known_to(self.address) >= brokers

    def must_run(self) -> None:
        if not self.is_running:
            raise Unavailable(f"broker {self.number} has ended:\n{self._last_words()}")

    def kill(self) -> None:
        """SIGKILL: no word, no clean-up."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP: alive, connected and silent, like a machine that swaps or a pause for garbage."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it goes on as if nothing had been."""
        self._signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        self._signal(signal.SIGCONT)  # Frozen, it would not hear.
        self._signal(signal.SIGTERM)

    def wait_stopped(self, deadline: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _filled_in(self, voters: Sequence[str]) -> str:
        template = string.Template((HERE / "server.properties").read_text(encoding="utf-8"))
        return template.substitute(
            node=self.number,
            port=self.port,
            controller_port=self.port + CONTROLLER_PORT_DISTANCE,
            voters=",".join(voters),
            log=self.folder / "log",
            replicas=len(voters),
            replicas_in_sync=len(voters) // 2 + 1,
        )

    def _last_words(self) -> str:
        files = [path for path in (self._log, self._output) if path.exists()]
        lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
        return "\n".join([line for line in lines if not SAYS_LITTLE.match(line)][-WORDS_MAX:])

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    @property
    def _output(self) -> Path:
        return self.folder / "output"


class Cluster:
    """One or three nodes over one data folder."""

    def __init__(
        self, data: Path, *, brokers: int = 1, port: int = 0, settings: Mapping[str, str] | None = None
    ) -> None:
        """Port 0 takes free ones. Settings overrule those of server.properties."""
        first = port or free_port(brokers)
        self.data = data.absolute()
        self.nodes = [Node(1 + index, first + index, self.data / f"node-{1 + index}") for index in range(brokers)]
        self.bootstrap = ",".join(node.address for node in self.nodes)
        self._settings = dict(settings or {})
        self._claimed: TextIO | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every node that does not run, and return when all of them serve; they end with the calling thread."""
        self._claim()
        try:
            for node in self.nodes:
                if not node.is_running:
                    node.prepare(self._id(), [each.voter for each in self.nodes], self._settings)
                    node.start()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def wait_ready(self) -> None:
        """Return when every node serves and knows all others."""
        deadline = time.monotonic() + START_SECONDS
        pause = threading.Event()
        while not all(node.is_ready(len(self.nodes)) for node in self.nodes):
            if time.monotonic() > deadline:
                raise Unavailable(f"not ready after {START_SECONDS} s; {self.data}/node-*/broker.log may say why")
            pause.wait(0.05)

    def must_run(self) -> None:
        for node in self.nodes:
            node.must_run()

    def stop(self) -> None:
        """End all nodes at once, those that do not listen the hard way."""
        for node in self.nodes:
            node.ask_to_stop()
        deadline = time.monotonic() + STOP_SECONDS
        for node in self.nodes:
            node.wait_stopped(deadline)
        if self._claimed is not None:
            self._claimed.close()
            self._claimed = None

    def _claim(self) -> None:
        """Hold the folder's lock until the end: nobody else rewrites the settings of nodes that run."""
        if self._claimed is not None:
            return
        self.data.mkdir(parents=True, exist_ok=True)
        lock = (self.data / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Unavailable(f"{self.data} is that of a cluster which runs already: choose another folder") from None
        self._claimed = lock

    def _id(self) -> str:
        """One for all nodes and for ever; by it a client can tell that it talks to another cluster than before."""
        path = self.data / "cluster.id"
        if not path.exists():
            path.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="), encoding="utf-8")
        return path.read_text(encoding="utf-8")


def brokers_known_to(address: str) -> int:
    """How many brokers a broker names when asked for the cluster; 0 when it does not answer."""
    host, port = address.split(":")
    question = struct.pack(">hhihi", 3, 1, 1, -1, 0)  # Metadata, version 1, number 1, no client id, no topics.
    known = struct.Struct(">iii")  # Of the answer its size, its number and the count of brokers.
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1) as connection:
        connection.sendall(struct.pack(">i", len(question)) + question)
        answer = connection.recv(known.size, socket.MSG_WAITALL)
        if len(answer) == known.size:
            return int(known.unpack(answer)[2])
    return 0


def free_port(brokers: int) -> int:
    """The first of so many ports in a row on which nobody listens, nor where their controllers would."""
    while True:
        first = random.choice(FREE_PORTS)
        ports = range(first, first + brokers)
        if all(is_free(port) and is_free(port + CONTROLLER_PORT_DISTANCE) for port in ports):
            return first


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def java(main: str, *arguments: str, log: Path | None = None) -> list[str]:
    """The command that runs one of Kafka's programs."""
    binary = shutil.which("java", path=_java_path())
    if binary is None:
        raise Unavailable("Kafka needs Java 17 or newer and there is none: install it (Debian: default-jre-headless)")
    overruling = os.environ.get("KAFKA_OPTS", "").split()
    logging = [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}", f"-Dbroker.log={log}"] if log else []
    return [
        *_ends_with_its_parent(),
        *(binary, *JVM, *logging, *overruling),
        *("-cp", f"{jars()}/*", main, *arguments),
    ]


def jars() -> Path:
    """The folder with Kafka's jars: the one that KAFKA_LIBS names, or the cache, filled on first use."""
    if named := os.environ.get("KAFKA_LIBS"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidewheel"
    folder = cache / f"kafka-{KAFKA}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with alone(cache / "kafka.lock"):
            if not folder.exists():
                _fetch_jars(folder)
    return folder


def _fetch_jars(folder: Path) -> None:
    """Have Maven fill a folder beside the right one, which then appears whole or not at all."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            "Kafka's jars are fetched with Maven and there is none: install it (Debian: maven), "
            "or set KAFKA_LIBS to the libs folder of a Kafka that you have"
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as fetching:
        libs = Path(fetching) / "libs"
        what = ["dependency:copy-dependencies", f"-DoutputDirectory={libs}"]
        _run([maven, "--batch-mode", "--quiet", "--file", str(HERE / "pom.xml"), *what])
        libs.rename(folder)


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Of all processes only one is inside; the system lets the next one in when it ends, however it ends."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if "UnsupportedClassVersionError" in done.stderr:
        raise Unavailable(f"Kafka needs Java 17 or newer, and this one is older: {' '.join(command)}")
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _lines(settings: Mapping[str, str]) -> str:
    """Last in the file, where they overrule what stands above."""
    return "".join(f"\n{key}={value}" for key, value in settings.items())


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin{os.pathsep}{os.environ.get('PATH', '')}" if home else None


def _ends_with_its_parent() -> list[str]:
    """On Linux a node is killed when the thread that started it ends: a killed starter leaves nothing behind."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def main() -> None:
    options = _options()
    try:
        if options.fetch:
            jars()
        else:
            _serve(Cluster(options.data, brokers=options.brokers, port=options.port, settings=dict(options.set)))
    except Unavailable as why:
        sys.exit(str(why))


def _serve(cluster: Cluster) -> None:
    """Until SIGTERM or Ctrl-C; Unavailable when a node dies before."""
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    with cluster:
        print(cluster.bootstrap, flush=True)
        while not ending.wait(LOOK_SECONDS):
            cluster.must_run()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a Kafka for development and tests until told to stop.")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="the folder that keeps everything")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--port", type=int, default=9092, help="of the first broker, others count on; 0: any")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="KEY=VALUE", help="of the broker")
    parser.add_argument("--fetch", action="store_true", help="fetch the jars and start nothing")
    return parser.parse_args()


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE")
    return key, value


if __name__ == "__main__":
    main()
