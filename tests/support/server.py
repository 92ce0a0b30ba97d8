"""A real `tidewheel dev` in a process of its own, to be used, killed and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.waiting import eventually

TIDEWHEEL = str(Path(sys.executable).parent / "tidewheel")
ROOT = Path(__file__).parents[2]


class Server:
    """One data folder, and the process that serves it now."""

    def __init__(self, folder: Path, *, tasks: str = "tests.kill.tasks:worker", slots: int = 200) -> None:
        self.data = folder / "data"
        self._output = (folder / "output").open("ab")
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._tasks, self._slots = tasks, slots
        self._process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(base_url=self.url, timeout=30)

    def start(self, *, within: float = 60) -> None:
        """Start it and wait until it is ready."""
        command = [TIDEWHEEL, "dev", "--data", str(self.data), "--port", str(self.port), "--tasks", self._tasks]
        environment = os.environ | {"TIDEWHEEL_WORKER_SLOTS": str(self._slots)}
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=self._output, stderr=self._output)
        eventually(self.is_ready, within=within, what=f"{self.url} is ready")

    def is_ready(self) -> bool:
        """Whether /readyz says so; fails at once when the process has ended."""
        assert self._process is not None
        assert self._process.poll() is None, f"the server ended with {self._process.returncode}"
        with contextlib.suppress(httpx.HTTPError):
            return self.http.get("/readyz").status_code == httpx.codes.OK
        return False

    def kill(self) -> None:
        """SIGKILL: no word, no clean-up."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def kill_child(self, module: str) -> None:
        """SIGKILL to the child that runs a module; the server goes on."""
        assert self._process is not None
        for file in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                if module in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
                    os.kill(child, signal.SIGKILL)
                    return
        raise AssertionError(f"the server has no child {module}")

    def stop(self) -> int:
        """SIGTERM, as an operator or Ctrl-C would; its exit code."""
        if self._process is None or self._process.poll() is not None:
            return 0
        self._process.terminate()
        return self._process.wait(60)

    def close(self) -> None:
        """Stop it and let go of everything."""
        self.stop()
        self.http.close()
        self._output.close()

    def end_offset(self, topic: str) -> int:
        """Records that a topic holds, over all partitions."""
        total = 0
        for partition in range(4):
            total += self.http.get(f"/v1/log/{topic}/{partition}", params={"limit": 1}).json()["end"]
        return total

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, against this server."""
        environment = os.environ | {"TIDEWHEEL_URL": self.url}
        return subprocess.run(
            [TIDEWHEEL, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
