"""A node that is asked at noon on the first of March 2026."""

import pytest

from tests.api.house import House
from tests.api.reads.asking import NOON


@pytest.fixture
async def house(tmp_path):
    """It is noon on the first of March 2026."""
    async with House(tmp_path, now=lambda: NOON) as house:
        yield house
