"""A line under schedules, and the process of it that a test strikes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.line import Line, standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.mortal import Mortal


@pytest.fixture(scope="module")
def bootstrap(broker: str) -> str:
    """The brokers that the lines of a file stand on: those of all tests, unless a file has its own."""
    return broker


@pytest.fixture(scope="module")
def line(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """One for all tests of a file, each of which leaves it as it can be gone on from."""
    with standing(tmp_path_factory.mktemp("line"), bootstrap) as line:
        yield line


@pytest.fixture
def node(line: Line, role: str) -> Mortal:
    """The one of this role; all live, whatever the test before did to them."""
    line.revive()
    return line.of(role)
