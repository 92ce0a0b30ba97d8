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


def remember(ctx: RunContext, day: str) -> dict[str, Any]:
    memory.append(os.getpid())
    ctx.log.info("remembering %s", day)
    ctx.heartbeat({"done": 1})
    return {"pid": os.getpid(), "run": ctx.run_id, "day": day, "calls": len(memory)}


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
