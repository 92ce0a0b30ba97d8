"""The databases that the read model is tested on: a test that wants `databases` runs on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.support.postgres import Databases, postgresql

__all__ = ["postgresql"]

NewDatabase = Callable[[], str]


@pytest.fixture(scope="module")
def databases(request, postgresql) -> Iterator[Databases]:
    """Those of one file of tests."""
    databases = Databases(postgresql, request.module.__name__.rpartition(".")[2])
    yield databases
    databases.drop()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request, tmp_path) -> Iterator[NewDatabase]:
    """Gives the URL of an empty database, another one each time it is called."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: f"sqlite:///{tmp_path}/model{next(numbers)}.sqlite"
        return
    databases: Databases = request.getfixturevalue("databases")
    yield databases.new
    databases.empty()


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """The URL of an empty database."""
    return new_database()
