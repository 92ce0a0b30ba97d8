"""A node whose owners the tests play."""

import pytest

from tests.api.house import House, answer


def pytest_collection_modifyitems(items):
    """Schemathesis 4.32 names the test of each operation, and pytest 9.2 makes its id of the function's name alone.

    Of tests with one id a worker of xdist is given the first, again and again: one of all operations was tried.
    """
    for item in items:
        label = getattr(item, "operation_label", None)
        if label is not None and item.id.params is None:
            item._id = item.id.with_params(label)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def house(tmp_path):
    async with House(tmp_path) as house:
        house.owner = lambda _command, record: [answer(record, 200)]
        yield house
