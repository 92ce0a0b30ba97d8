"""What runs inside a copy of the packages: the simulation, once for each line of options, up to the first that fails.

One process for all of a mutant's runs, because starting one takes longer than a short hour. Each run that ends is told
in one line of JSON on standard output: the failures, none when all held.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

import orjson

from simulation.cluster.options import read
from simulation.cluster.verdict import simulate

FAILURES_MAX = 20


def main(lines: BinaryIO, out: BinaryIO) -> None:
    """Run what is asked for."""
    for line in lines:
        failures = simulate(read(line.decode())).failures
        out.write(orjson.dumps(failures[:FAILURES_MAX]) + b"\n")
        out.flush()
        if failures:
            return


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
