"""The serializers and deserializers in a configuration: taking them out, building, closing."""

from __future__ import annotations

import inspect
from typing import Any

from kafkapy.named_tuple import NamedTuple


class Serdes(NamedTuple):
    """The serializers or deserializers of keys and values (None: bytes stay bytes).

    `owned` are those that builders have made, which the client closes. `conf` is the rest of the configuration.
    """

    key: Any
    value: Any
    owned: list[Any]
    conf: dict[str, Any]


def take_serdes(conf: dict[str, Any], key_property: str, value_property: str) -> Serdes:
    """Returns the serializers or deserializers that a configuration has, and the rest of the configuration.

    They are the values of the two keys, or are made by the builder in the key with `.builder` appended. Raises
    ValueError if a key and its builder are both given, or if a builder does not return a pair.
    """
    taking = _Taking(conf, value_property)
    for name, is_key in ((key_property, True), (value_property, False)):
        builder = taking.builder(name)
        if builder is not None:
            taking.add(name, builder.build(dict(taking.rest), is_key))
    return taking.serdes()


async def take_serdes_awaited(conf: dict[str, Any], key_property: str, value_property: str) -> Serdes:
    """Returns what `take_serdes` returns, also for builders whose `build` is a coroutine. Raises ValueError."""
    taking = _Taking(conf, value_property)
    for name, is_key in ((key_property, True), (value_property, False)):
        builder = taking.builder(name)
        if builder is not None:
            taking.add(name, await awaited(builder.build(dict(taking.rest), is_key)))
    return taking.serdes()


class _Taking:
    """A configuration out of which serializers or deserializers ("serdes") are taken: that of keys, then of values.

    `rest` is what is left of the configuration.
    """

    def __init__(self, conf: dict[str, Any], value_property: str) -> None:
        self.rest = dict(conf)
        self._value_property = value_property
        self._found: list[Any] = []
        self._owned: list[Any] = []

    def builder(self, name: str) -> Any:
        """Removes the serde `name` and its builder, `name` with ".builder" appended, from the configuration.

        Returns the builder, whose result the caller passes to `add`; None if there is no builder, so that the serde is
        taken (None if it is not configured either). Raises ValueError if the configuration has both.
        """
        serde, builder = self.rest.pop(name, None), self.rest.pop(f"{name}.builder", None)
        if serde is not None and builder is not None:
            raise ValueError(f"Cannot configure both {name} and {name}.builder; use one or the other")
        if builder is None:
            self._found.append(serde)
        return builder

    def add(self, name: str, result: Any) -> None:
        """Takes the serde in `result`, which is the pair (serde, remaining configuration) that a builder has returned.

        Raises ValueError, which names the key `name`, if `result` is not such a pair.
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
        """Returns the two serdes that were taken, those that builders have made, and the rest of the configuration."""
        return Serdes(self._found[0], self._found[1], self._owned, self.rest)


def offer_cluster_id(serdes: Serdes, resolver: Any, coroutine: Any = None) -> None:
    """Passes functions that return the cluster's id to the serdes that have a method for one.

    `resolver` blocks and is for `set_cluster_id_resolver`; `coroutine` is for `set_async_cluster_id_resolver`.
    """
    for serde in (serdes.key, serdes.value):
        for name, function in (("set_cluster_id_resolver", resolver), ("set_async_cluster_id_resolver", coroutine)):
            setter = getattr(serde, name, None)
            if setter is not None and function is not None:
                setter(function)


def close_serdes(owned: list[Any]) -> None:
    """Closes serdes; raises the first error after all were closed."""
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
    """Closes serdes, of which some have coroutines; raises the first error after all were closed."""
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
    """Returns the result of a serializer or deserializer; awaits it if it is a coroutine's."""
    return await result if inspect.isawaitable(result) else result
