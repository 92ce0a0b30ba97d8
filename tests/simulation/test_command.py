"""`python -m simulation`, as it is typed."""

import subprocess
import sys

import orjson
import pytest


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_seeds_are_judged_by_as_many_processes_as_are_wanted(jobs, tmp_path):
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "simulation", "--seeds", "2", "--hours", "0.02", "--jobs", jobs]
    done = subprocess.run([*command, "--results", results], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    line = orjson.loads(results.read_bytes())
    assert (line["first"], line["seeds"], line["violations"]) == (1, 2, 0)
