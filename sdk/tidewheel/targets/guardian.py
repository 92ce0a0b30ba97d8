"""Stands between a worker and one command, so that nothing of the command outlives either of them.

The worker starts this file by its path, with the numbers of two pipes: what to run is read from the first, how it
ended is written to the second. A byte in the first asks the command to end (SIGTERM); its end, however it came about,
kills at once. So does the worker's death. What the command started and left behind is killed when the command ends.

Only the standard library is imported, and little of it: each command waits for it. It is a process of its own because
limits and users must be set between fork and exec, which is not safe in a process that has threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # of prctl(2)
_SPEC_BYTES_MAX = 1024 * 1024  # The worker writes it; this ends a mistake.
_LIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_AS,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
}
_DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


def main(control: int, status: int) -> None:
    """Run what `control` says, and tell `status` how it ended: {"exit": 3}, {"signal": 9} or {"unusable": why}."""
    worker = os.getppid()
    for own in (control, status):
        fcntl.fcntl(own, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    wake = _hear_signals()
    _prctl(_SET_SUBREAPER, 1)
    _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    spec = json.loads(_line(control))
    failure_reader, failure_writer = os.pipe()
    guardian = os.getpid()
    command = os.fork()
    if command == 0:
        _become(spec, guardian, failure_writer)
    os.close(failure_writer)
    for inherited in (0, 1, 2):  # Its ends of the command's pipes: else they would stay open after the command.
        os.close(inherited)
    failure = os.read(failure_reader, 4096).decode()  # ends when the command was begun, in a group of its own
    ended = _watch(command, control, wake, worker)
    _end_all(command)
    os.write(status, json.dumps({"unusable": failure} if failure else ended).encode())


# --- the command's side ----------------------------------------------------------------------------------------------


def _become(spec: dict[str, Any], guardian: int, failure: int) -> NoReturn:
    """Become the command; what keeps this from happening is said through `failure`."""
    try:
        os.setsid()
        for number in _DEFAULT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.umask(0o077)
        for name, value in spec["limits"].items():
            resource.setrlimit(_LIMITS[name], (value, value))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # A core holds the payload.
        if spec["user"] is not None:
            uid, gid, groups = spec["user"]
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)  # after the change of user, which forgets it
        if os.getppid() != guardian:
            os._exit(1)
        os.chdir(spec["cwd"])
        os.execve(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606 -- that is the point: no shell
    except BaseException as error:  # noqa: BLE001 -- nothing may return into the guardian's own code
        os.write(failure, f"{type(error).__name__}: {error}"[:1024].encode())
    os._exit(1)


# --- the guardian's side ---------------------------------------------------------------------------------------------


def _watch(command: int, control: int, wake: int, worker: int) -> dict[str, int]:
    """Until the command has ended, by itself or killed."""
    sources = [control, wake]
    while True:
        if (ended := _reap(command)) is not None:
            return ended
        ready, _, _ = select.select(sources, [], [])
        if wake in ready and (signal.SIGTERM in os.read(wake, 64) or os.getppid() != worker):
            _signal_group(command, signal.SIGKILL)
        if control in ready:
            if os.read(control, 64):
                _signal_group(command, signal.SIGTERM)
            else:
                _signal_group(command, signal.SIGKILL)
                sources.remove(control)


def _reap(command: int) -> dict[str, int] | None:
    """How the command ended, once it has. Others that ended are its orphans."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return {"exit": 255}  # cannot be: nobody else waits for it
        if pid == 0:
            return None
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return {"exit": code} if code >= 0 else {"signal": -code}


def _end_all(command: int) -> None:
    """Kill all that is left of the command: its group, and what left the group and has this process as its parent."""
    _signal_group(command, signal.SIGKILL)
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # ended meanwhile
            if stat.read_text().rpartition(")")[2].split()[1] == own:
                found.append(int(stat.parent.name))
    return found


def _signal_group(command: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command, number)


def _hear_signals() -> int:
    """A descriptor that becomes readable when a child ended or this process is to end; nothing else disturbs it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return reader


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the pipe alone tells of the worker's death, and orphans are found by their group."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _line(descriptor: int) -> bytes:
    read = b""
    while not read.endswith(b"\n"):
        more = os.read(descriptor, 65536)
        if not more or len(read) > _SPEC_BYTES_MAX:
            sys.exit(1)
        read += more
    return read


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
