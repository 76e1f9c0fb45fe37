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
    rest = dict(conf)
    found: list[Any] = []
    owned: list[Any] = []
    for name, is_key in ((key_property, True), (value_property, False)):
        serde, builder = rest.pop(name, None), rest.pop(f"{name}.builder", None)
        if serde is not None and builder is not None:
            raise ValueError(f"Cannot configure both {name} and {name}.builder; use one or the other")
        if builder is not None:
            result = builder.build(dict(rest), is_key)
            if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
                raise ValueError(f"{name}.builder must return a (serde, configuration) tuple from build()")
            serde, left = result
            rest = {key: value for key, value in rest.items() if key in left or key.startswith(value_property)}
            owned.append(serde)
        found.append(serde)
    return Serdes(found[0], found[1], owned, rest)


def offer_cluster_id(serdes: Serdes, resolver: Any) -> None:
    """Passes a function that returns the cluster's id to the serdes that have `set_cluster_id_resolver`."""
    for serde in (serdes.key, serdes.value):
        setter = getattr(serde, "set_cluster_id_resolver", None)
        if setter is not None:
            setter(resolver)


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


async def awaited(result: Any) -> Any:
    """Returns the result of a serializer or deserializer; awaits it if it is a coroutine's."""
    return await result if inspect.isawaitable(result) else result
