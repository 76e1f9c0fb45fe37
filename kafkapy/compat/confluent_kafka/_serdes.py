"""Removes the serializers and deserializers from a client's configuration, builds them, and closes them."""

from __future__ import annotations

import inspect
from typing import Any

from kafkapy.named_tuple import NamedTuple


class Serdes(NamedTuple):
    """The serializers or deserializers ("serdes") of a client, and the rest of the client's configuration.

    `key` and `value` are the serdes of keys and of values; None means that the application passes and receives bytes.
    `owned` has the serdes that were made by a builder (`key.serializer.builder`); the client closes them. `conf` is the
    configuration without these entries.
    """

    key: Any
    value: Any
    owned: list[Any]
    conf: dict[str, Any]


def take_serdes(conf: dict[str, Any], key_property: str, value_property: str) -> Serdes:
    """Removes the serializers or deserializers from a configuration; returns them and the rest of the configuration.

    `key_property` and `value_property` are configuration keys, such as `key.serializer`. The value of such a key is a
    serializer. Instead, the configuration may have the key with `.builder` appended. Its value is an object whose
    method `build(configuration, is_key)` returns the pair (serializer, remaining configuration). Raises ValueError if a
    key and its builder are both given, or if a builder does not return such a pair.
    """
    taking = _Taking(conf, value_property)
    for name, is_key in ((key_property, True), (value_property, False)):
        builder = taking.builder(name)
        if builder is not None:
            taking.add(name, builder.build(dict(taking.rest), is_key))
    return taking.serdes()


async def take_serdes_awaited(conf: dict[str, Any], key_property: str, value_property: str) -> Serdes:
    """Does the work of `take_serdes` for builders whose `build` may be a coroutine function, and awaits the coroutines.

    The arguments, the result and the errors are those of `take_serdes`.
    """
    taking = _Taking(conf, value_property)
    for name, is_key in ((key_property, True), (value_property, False)):
        builder = taking.builder(name)
        if builder is not None:
            taking.add(name, await awaited(builder.build(dict(taking.rest), is_key)))
    return taking.serdes()


class _Taking:
    """The removal of the serializers or deserializers ("serdes") from a configuration: first for keys, then for values.

    `rest` is the configuration without the entries that were removed so far.
    """

    def __init__(self, conf: dict[str, Any], value_property: str) -> None:
        self.rest = dict(conf)
        self._value_property = value_property
        self._found: list[Any] = []
        self._owned: list[Any] = []

    def builder(self, name: str) -> Any:
        """Removes the entries `name` (a serde) and `name` with ".builder" appended from the configuration.

        Returns the builder if the configuration has one; the caller passes the builder's result to `add`. Otherwise
        stores the serde (None if it is not configured) and returns None. Raises ValueError if the configuration has
        both entries.
        """
        serde, builder = self.rest.pop(name, None), self.rest.pop(f"{name}.builder", None)
        if serde is not None and builder is not None:
            raise ValueError(f"Cannot configure both {name} and {name}.builder; use one or the other")
        if builder is None:
            self._found.append(serde)
        return builder

    def add(self, name: str, result: Any) -> None:
        """Stores the serde that a builder has made, and reduces `rest` to the configuration that the builder has left.

        `result` is the pair (serde, remaining configuration) that the builder returned; `name` is the serde's
        configuration key. Raises ValueError, which names the key, if `result` is not such a pair.
        """
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
            raise ValueError(f"{name}.builder must return a (serde, configuration) tuple from build()")
        serde, left = result
        self.rest = {
            key: value for key, value in self.rest.items() if key in left or key.startswith(self._value_property)
        }
        self._found.append(serde)
        self._owned.append(serde)

    def serdes(self) -> Serdes:
        """Returns the serdes of keys and of values, the serdes made by builders, and the rest of the configuration."""
        return Serdes(self._found[0], self._found[1], self._owned, self.rest)


def offer_cluster_id(serdes: Serdes, resolver: Any, coroutine: Any = None) -> None:
    """Passes functions that return the cluster's id to the serdes that accept them.

    A serde with the method `set_cluster_id_resolver` receives `resolver`, which blocks; a serde with the method
    `set_async_cluster_id_resolver` receives `coroutine`, a coroutine function. A function that is None is not passed.
    """
    for serde in (serdes.key, serdes.value):
        for name, function in (("set_cluster_id_resolver", resolver), ("set_async_cluster_id_resolver", coroutine)):
            setter = getattr(serde, name, None)
            if setter is not None and function is not None:
                setter(function)


def close_serdes(owned: list[Any]) -> None:
    """Closes the serdes in the list `owned` and empties the list; raises the first error after all were closed."""
    first: Exception | None = None
    while owned:
        try:
            close = getattr(owned.pop(), "close", None)
            if close is not None:
                close()
        except Exception as error:
            first = first or error
    if first is not None:
        raise first


async def close_serdes_awaited(owned: list[Any]) -> None:
    """Closes the serdes in the list `owned` and empties the list.

    Calls `aclose` or else `close` of each serde; both may be coroutine functions. Raises the first error after all were
    closed.
    """
    first: Exception | None = None
    while owned:
        serde = owned.pop()
        close = getattr(serde, "aclose", None) or getattr(serde, "close", None)
        try:
            if close is not None:
                await awaited(close())
        except Exception as error:
            first = first or error
    if first is not None:
        raise first


async def awaited(result: Any) -> Any:
    """Returns `result` itself or, if it is awaitable, the result of awaiting it."""
    return await result if inspect.isawaitable(result) else result
