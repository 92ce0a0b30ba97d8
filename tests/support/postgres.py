"""A PostgreSQL server for tests: started when the first test wants it, shared by all workers, gone when they are gone.

The server is Debian's. It stands in a temporary folder and listens on a socket there, so no port can be taken. Beside
it stands a process that watches a pipe which every worker holds open: when the last one has let go, however it ended,
the watch ends the server and removes the folder.

TIDEWHEEL_TEST_POSTGRESQL names another server: the URL of a database from which others may be created.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pwd
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

GIVEN = "TIDEWHEEL_TEST_POSTGRESQL"
MISSING = (
    "the tests of the shared read model need a PostgreSQL server and found none under /usr/lib/postgresql/*/bin: "
    f"install one (apt-get install postgresql), or name one by its URL in {GIVEN}"
)
ROOT = Path(__file__).parents[2]
SECONDS = "60"  # a deadline for starting and stopping, not a measure

# The rows of a test outlive no loss of power. Names are ordered by a language, as on many servers: what is ordered by
# bytes must say so itself.
FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=200")
_LANGUAGE = ("--locale-provider=icu", "--icu-locale=en-US")


class NoServer(Exception):
    """There is no PostgreSQL on this machine; the text says what to install."""


class LocalServer:
    """One server in a folder of its own, that can be stopped hard and started again."""

    def __init__(self, folder: Path, *, settings: Sequence[str] = FAST) -> None:
        self._folder = folder
        self._settings = settings
        self._bin = _binaries()
        self.url = f"postgresql://postgres@/postgres?host={folder}"

    def create(self) -> None:
        """Make the folder ready; root hands it to the user that Debian made for the server."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        owner = _owner()
        if owner is not None:
            shutil.chown(self._folder, owner, owner)
        language = _LANGUAGE if int(self._bin.parent.name) >= 15 else ()
        self._call(
            "initdb", "--pgdata", str(self._data), "--no-sync", "--auth=trust", "--username=postgres",
            "--encoding=UTF8", "--locale=C.UTF-8", *language,
        )  # fmt: skip

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = " ".join(f"-c {setting}" for setting in (*self._settings, "listen_addresses=''"))
        self._call(
            "pg_ctl", "start", "--wait", "--timeout", SECONDS, "--pgdata", str(self._data),
            "--log", str(self._folder / "log"), "--options", f"{options} -k {self._folder}",
        )  # fmt: skip

    def stop(self) -> None:
        """End it at once: connections break, nothing is flushed."""
        self._call("pg_ctl", "stop", "--wait", "--timeout", SECONDS, "--mode=immediate", "--pgdata", str(self._data))

    def new(self, name: str) -> str:
        """The URL of a new database."""
        return _new_database(self.url, name)

    def remove(self) -> None:
        """Leave nothing of it."""
        shutil.rmtree(self._folder)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _call(self, program: str, *arguments: str) -> None:
        """By its own user, away from a folder that this one may not see. No pipe: the server would hold it open."""
        with (self._folder / "output").open("w+b") as output:
            done = subprocess.run(
                [self._bin / program, *arguments], cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                user=_owner(), group=_owner(), extra_groups=[] if _owner() else None, check=False,
            )  # fmt: skip
            output.seek(0)
            assert done.returncode == 0, f"{program}: {output.read().decode()}"


def _binaries() -> Path:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not versions:
        raise NoServer(MISSING)
    return versions[-1].parent


def _owner() -> str | None:
    """Who the server runs as: it refuses root, and everybody else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise NoServer(MISSING) from None


# --- one server for all workers -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server for these tests, the same for all workers."""
    if given := os.environ.get(GIVEN):
        yield given
        return
    try:
        _binaries()
        _owner()
    except NoServer as error:
        pytest.fail(str(error))
    with shared(os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))) as url:
        yield url


@contextlib.contextmanager
def shared(name: str) -> Iterator[str]:
    """The server of this name, started by whoever comes first; it ends when the last one has left."""
    folder = Path(tempfile.gettempdir()) / f"tidewheel-pg-{name[:16]}"
    with _alone(folder):
        held = _hold(folder)
        if held is None:
            _start_watch(folder)
            held = _hold(folder)
    assert held is not None
    try:
        yield LocalServer(folder).url
    finally:
        os.close(held)


def _hold(folder: Path) -> int | None:
    """The pipe, held open; None when nobody watches it."""
    try:
        return os.open(folder / "held", os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENXIO}:
            return None
        raise


def _start_watch(folder: Path) -> None:
    """Return when the server answers; the watch stays, in a session of its own, so that Ctrl-C ends the tests first."""
    command = [sys.executable, "-m", "tests.support.postgres", str(folder)]
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            check=False,
        )  # fmt: skip
        output.seek(0)
        assert done.returncode == 0, output.read()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One worker, or the watch, at a time."""
    with folder.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start(folder: Path) -> None:
    """Start a server, and leave a watch that ends it."""
    shutil.rmtree(folder, ignore_errors=True)
    server = LocalServer(folder)
    server.create()
    server.start()
    os.mkfifo(folder / "held")
    pipe = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    if os.fork() == 0:
        watch(folder, server, pipe)


def watch(folder: Path, server: LocalServer, pipe: int) -> None:
    """End the server when nobody holds the pipe any more."""
    poll = select.poll()
    poll.register(pipe, 0)  # that the last holder has gone is told in any case
    poll.poll(60_000)  # the one who started us comes at once, or never
    while True:
        poll.poll()
        with _alone(folder):
            if poll.poll(0):
                server.stop()
                server.remove()
                folder.with_suffix(".lock").unlink()
                return


# --- databases ----------------------------------------------------------------------------------------------------


def _new_database(server: str, name: str) -> str:
    """One with nothing in it; its text is UTF-8 whatever the server's own is."""
    with psycopg.connect(server, autocommit=True) as connection:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'")
        connection.execute(statement.format(sql.Identifier(name)))
    return url_of(server, name)


def url_of(server: str, name: str) -> str:
    """The URL of another database on a server."""
    return re.sub(r"(://[^/]*/)[^?]*", rf"\g<1>{name}", server, count=1)


class Databases:
    """Empty databases on a server, all of whose names begin alike. Made once, and emptied for the next test."""

    def __init__(self, server: str, name: str) -> None:
        self._server = server
        self._name = f"{re.sub(r'[^a-z0-9]', '_', name.lower())[:40]}_{os.getpid()}"
        self._made: dict[str, str] = {}  # name → URL
        self._taken = 0

    def new(self) -> str:
        """The URL of one with nothing in it."""
        if self._taken == len(self._made):
            name = f"{self._name}_{self._taken}"
            self._made[name] = _new_database(self._server, name)
        self._taken += 1
        return list(self._made.values())[self._taken - 1]

    def empty(self) -> None:
        """Let the next test have those that were taken."""
        taken, self._taken = list(self._made.values())[: self._taken], 0
        for url in taken:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'tidewheel%'")
                for (schema,) in schemas.fetchall():
                    connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))

    def drop(self) -> None:
        """Every one of them."""
        with psycopg.connect(self._server, autocommit=True) as connection:
            for name in self._made:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


if __name__ == "__main__":
    start(Path(sys.argv[1]))
