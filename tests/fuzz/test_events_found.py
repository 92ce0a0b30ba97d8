"""What the fuzz of records found, and stays mended: each value with the fault that it has now.

A reader's other exception stops the partition that reads the record, and with it all schedules there.
"""

from __future__ import annotations

from typing import Any

import pytest

from schemas import definitions
from schemas.faults import Refused


def faults(data: Any, read: Any = definitions.read_job, *, strict: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        read(data, strict=strict, pointer="/data/definition")
    return [(fault.pointer.removeprefix("/data/definition"), fault.code) for fault in refused.value.faults]


@pytest.mark.parametrize("kind", [{}, [], ["task"], {"type": "task"}, 1, None, True])
def test_a_target_whose_type_is_no_text_is_refused(kind):
    """A list or an object was a TypeError: it has no hash."""
    target = {"type": kind, "name": "reports.nightly"}
    for strict in (True, False):
        [(pointer, _)] = faults({"target": target}, strict=strict)
        assert pointer == "/target/type"
        [(pointer, _)] = faults(
            {"job": {"target": target}, "trigger": {"every": "PT1M"}}, definitions.read_schedule, strict=strict
        )
        assert pointer == "/job/target/type"
