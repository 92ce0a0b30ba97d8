"""Who gives way on a machine that is full."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from node.priority import gives_way


@pytest.mark.parametrize(
    ("roles", "way"),
    [
        (("projector",), True),
        (("projector", "api"), False),
        (("scheduler", "dispatcher", "projector", "api"), False),
        (("scheduler",), False),
        (("worker",), False),
    ],
)
def test_only_who_makes_rows_and_nothing_else_gives_way(roles: tuple[str, ...], way: bool) -> None:
    assert gives_way(roles) == way


def test_who_gives_way_has_a_niceness_of_five_more_than_it_was_started_with() -> None:
    script = "from node.priority import give_way; import os; give_way(); print(os.getpriority(os.PRIO_PROCESS, 0))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(said) == os.getpriority(os.PRIO_PROCESS, 0) + 5
