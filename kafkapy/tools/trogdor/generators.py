"""The functions that generate the key or the value of a record from the number of the record.

Trogdor's types of generators are constant, sequential and random bytes, null, and the present time.
"""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.tools.option import ToolError

Generator = Callable[[int], bytes | None]
SEQUENTIAL_KEYS: Mapping[str, Any] = {"type": "sequential", "size": 4}
EMPTY_VALUES: Mapping[str, Any] = {"type": "constant", "size": 512}
_TYPES = ("constant", "null", "sequential", "timestampConstant", "uniformRandom")


def generator_of(fields: Mapping[str, Any]) -> Generator:
    """Returns a function that makes the bytes of a record's key or value from the number of the record.

    `fields` is the JSON object that describes the generator. Raises ToolError for a type that is not supported.
    """
    kind, size = fields.get("type"), int(fields.get("size") or 0)
    if kind == "null":
        return lambda number: None
    if kind == "constant":
        constant = base64.b64decode(fields.get("value") or "") or bytes(size)
        return lambda number: constant
    if kind == "sequential":
        start = int(fields.get("startOffset") or 0)
        return lambda number: (start + number).to_bytes(8, "little").ljust(size, b"\0")[:size]
    if kind == "uniformRandom":
        seed, padding = int(fields.get("seed") or 0), int(fields.get("padding") or 0)
        return lambda number: random.Random(seed + number).randbytes(max(size - padding, 0)).ljust(size, b"\0")
    if kind == "timestampConstant":
        return lambda number: (time.time_ns() // 1_000_000).to_bytes(8, "little").ljust(size, b"\0")[:size]
    raise ToolError(f"{kind} is not a supported type of generator: {', '.join(_TYPES)}")
