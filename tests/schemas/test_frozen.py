"""A frozen class behaves as a frozen dataclass does; it is only filled faster."""

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from schemas.frozen import frozen, twin


@frozen
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


@frozen
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


def test_fields_are_given_by_name_and_defaults_stand_in():
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=5).y) == (1, 2, 5)
    assert Point(x=1).tags is not Point(x=1).tags


def test_a_missing_or_unknown_field_is_a_type_error():
    with pytest.raises(TypeError, match=r"Point.__init__\(\) missing 1 required keyword-only argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(x=1, z=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Point(1)  # type: ignore[call-arg]


def test_an_object_is_of_the_class_and_never_changes():
    point = Point(x=1)
    assert type(point) is Point
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]


def test_it_compares_replaces_prints_copies_and_pickles_as_a_dataclass():
    point = Point(x=1, tags=["a"])
    assert point == Point(x=1, tags=["a"]) != Point(x=2, tags=["a"])
    assert dataclasses.replace(point, x=3) == Point(x=3, tags=["a"])
    assert repr(point) == "Point(x=1, y=2, tags=['a'])"
    assert copy.deepcopy(point) == point == pickle.loads(pickle.dumps(point))


def test_a_class_may_check_itself_when_it_is_complete():
    with pytest.raises(ValueError, match="negative"):
        Checked(x=-1)


def test_a_class_that_inherits_fields_is_refused():
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        a: int

    with pytest.raises(AssertionError, match="inherits fields"):
        twin(
            dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(
                type("Derived", (Base,), {"__annotations__": {"b": int}})
            )
        )
