"""What runs inside a copy of the packages: the simulation, once for each line of options, up to the first that fails.

One process for all of a mutant's runs, because starting one takes longer than a short hour. Each run that ends is told
in one line of JSON on standard output: the seconds that it computed, and the failures, none when all held.

A run that computes for longer than it may ends the process with SIGXCPU. Seconds are the processor's: on a busy machine
a run takes as long as it likes.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from typing import BinaryIO

import orjson

from simulation.cluster.options import read
from simulation.cluster.verdict import simulate

FAILURES_MAX = 20


def main(lines: BinaryIO, out: BinaryIO, seconds_max: float) -> None:
    """Run what is asked for."""
    for line in lines:
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began + seconds_max), resource.RLIM_INFINITY))
        failures = simulate(read(line.decode())).failures
        out.write(orjson.dumps([time.process_time() - began, failures[:FAILURES_MAX]]) + b"\n")
        out.flush()
        if failures:
            return


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]))
