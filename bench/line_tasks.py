"""The task of the line benchmark: it notes its nominal instant and when it began, in 24 bytes, and is done."""

from __future__ import annotations

import os
import struct
import time

from tidewheel import RunContext, Worker

NOTE = struct.Struct("<qqq")  # schedule number, nominal instant and start in microseconds

worker = Worker(queue="default")
_notes = os.open(os.environ.get("TIDEWHEEL_BENCH_NOTES", os.devnull), os.O_CREAT | os.O_WRONLY | os.O_APPEND)


@worker.task("bench.note")
async def note(ctx: RunContext, number: int) -> None:
    """Write one note, unbuffered: it survives a kill of this process."""
    nominal = int(ctx.nominal_time.timestamp()) * 1_000_000 if ctx.nominal_time else 0
    os.write(_notes, NOTE.pack(number, nominal, time.time_ns() // 1000))
