"""A small log in which everything is as it should be."""

import pytest

from tests.audit.world import World, at


@pytest.fixture
def world() -> World:
    """Every minute from noon on; the runs of 12:01 to 12:03 exist, and all up to 12:03:30 is decided."""
    world = World()
    world.version()
    world.created("12:01", "12:02", "12:03")
    world.decided(at("12:03:30"))
    return world
