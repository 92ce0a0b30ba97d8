"""Tasks that run in processes of their own: other processes find them here."""

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from tidewheel import RunContext

memory: list[int] = []
seen_first = os.environ.get("MARK")  # when this module is imported


def remember(ctx: RunContext, day: str) -> dict[str, Any]:
    memory.append(os.getpid())
    ctx.log.info("remembering %s", day)
    ctx.heartbeat({"done": 1})
    return {"pid": os.getpid(), "run": ctx.run_id, "day": day, "calls": len(memory)}


def look_around() -> dict[str, str | None]:
    names = ("MARK", "OTHER", "TIDEWHEEL_RUN_ID", "TIDEWHEEL_ATTEMPT")
    return {"first": seen_first, **{name: os.environ.get(name) for name in names}}


async def gently(ctx: RunContext) -> int:
    await asyncio.sleep(0)
    return ctx.attempt


def fail() -> None:
    raise ValueError("no such day")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    ctypes.string_at(0)


def listen(ctx: RunContext, file: str) -> None:
    note(file)
    while True:
        threading.Event().wait(0.01)
        ctx.heartbeat()


def stubborn(file: str) -> None:
    child = subprocess.Popen(["/bin/sleep", "600"])
    Path(file).write_text(f"{os.getpid()} {child.pid}\n")
    threading.Event().wait()


def note(file: str) -> None:
    Path(file).write_text(f"{os.getpid()}\n")


async def for_ever(file: str) -> None:
    note(file)
    await asyncio.Event().wait()


def talk(ctx: RunContext, secret: str) -> None:
    """In every way in which a process can say something."""
    ctx.log.warning("logged %s", secret)
    print("printed", secret)  # noqa: T201 -- heard by its worker
    os.write(2, b"written below Python\n")
    subprocess.run(["/bin/echo", "said by a child"], check=True)


def print_and_wait() -> None:
    print("early")  # noqa: T201 -- heard by its worker
    threading.Event().wait()


def print_and_die() -> None:
    print("last words", flush=True)  # noqa: T201 -- heard by its worker
    os.kill(os.getpid(), signal.SIGKILL)
