"""Our NamedTuple, compared with the one of typing."""

import copy
import pickle
import typing
from typing import Generic, TypeVar

import pytest

from kafkapy.named_tuple import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple):
    """A point."""

    x: int
    y: "str | None"
    z: bytes = b""

    def doubled(self) -> int:
        return 2 * self.x

    @property
    def has_z(self) -> bool:
        return bool(self.z)


class Theirs(typing.NamedTuple):
    """A point."""

    x: int
    y: "str | None"
    z: bytes = b""

    def doubled(self) -> int:
        return 2 * self.x

    @property
    def has_z(self) -> bool:
        return bool(self.z)


class Box(NamedTuple, Generic[T]):
    content: T


class Empty(NamedTuple):
    pass


def points(kind):
    return [kind(1, "a"), kind(1, y="a"), kind(x=1, y="a", z=b""), kind(2, None, b"z")]


@pytest.mark.parametrize(
    "view",
    [
        tuple,
        hash,
        lambda point: repr(point).partition("(")[2],
        lambda point: (point.x, point.y, point.z, point.doubled(), point.has_z),
        lambda point: point._asdict(),
        lambda point: tuple(point._replace(y="b")),
        lambda point: (point._fields, point._field_defaults, point.__match_args__, type(point).__doc__),
        lambda point: tuple(type(point)._make([7, 8, 9])),
        lambda point: copy.copy(point) == pickle.loads(pickle.dumps(point)) == point,
        lambda point: sorted([point, type(point)(0, "a")])[0].x,
    ],
)
def test_an_instance_is_like_one_of_typing(view):
    assert [view(point) for point in points(Ours)] == [view(point) for point in points(Theirs)]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda kind: kind(),
        lambda kind: kind(1),
        lambda kind: kind(1, "a", b"", 4),
        lambda kind: kind(1, "a", w=1),
        lambda kind: kind(1, "a")._replace(w=1),
        lambda kind: kind._make([1]),
        lambda kind: setattr(kind(1, "a"), "x", 2),
        lambda kind: setattr(kind(1, "a"), "w", 2),
    ],
)
def test_a_misuse_raises_what_typing_raises(misuse):
    raised = []
    for kind in (Ours, Theirs):
        with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
            misuse(kind)
        raised.append(caught.type)
    assert raised[0] is raised[1]


def test_a_generic_class_and_one_without_fields():
    assert Box[int](3).content == 3 == Box(3)[0]
    assert Empty() == ()


def test_a_field_without_a_default_must_not_follow_one_with_a_default():
    with pytest.raises(TypeError, match="a field of Wrong without a default"):

        class Wrong(NamedTuple):
            x: int = 0
            y: int


def test_the_first_instance_of_a_derived_class_leaves_the_base_alone():
    class Base(NamedTuple):
        x: int

    class Derived(Base):
        pass

    assert type(Derived(1)) is Derived
    assert type(Base(1)) is Base
