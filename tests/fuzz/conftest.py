"""A node whose owners the tests play."""

import pytest

from tests.api.house import House, answer


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def house(tmp_path):
    async with House(tmp_path) as house:
        house.owner = lambda _command, record: [answer(record, 200)]
        yield house
