"""Configuration keys as typed attributes of the object that holds their values."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from kafkapy.config.value import Password

T = TypeVar("T")


class KeyValues:
    """The typed values of configuration keys, stored by key in `_values`; subclasses have an attribute for each key."""

    __slots__ = ()
    _values: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        """Returns the typed value of a key; None if the key is unset. Raises KeyError for an unknown key."""
        return self._values[key]


class TypedKey(Generic[T]):
    """A descriptor for an attribute of KeyValues that returns the value of the configuration key `key`."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def __get__(self, owner: KeyValues, owner_type: type | None = None) -> T:
        value: T = owner._values[self.key]
        return value


def boolean(key: str) -> TypedKey[bool]:
    return TypedKey(key)


def integer(key: str) -> TypedKey[int]:
    return TypedKey(key)


def optional_integer(key: str) -> TypedKey[int | None]:
    return TypedKey(key)


def number(key: str) -> TypedKey[float]:
    return TypedKey(key)


def optional_number(key: str) -> TypedKey[float | None]:
    return TypedKey(key)


def text(key: str) -> TypedKey[str]:
    return TypedKey(key)


def optional_text(key: str) -> TypedKey[str | None]:
    return TypedKey(key)


def words(key: str) -> TypedKey[list[str]]:
    return TypedKey(key)


def optional_words(key: str) -> TypedKey[list[str] | None]:
    return TypedKey(key)


def optional_password(key: str) -> TypedKey[Password | None]:
    return TypedKey(key)
