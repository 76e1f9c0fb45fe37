"""Validators of typed configuration values; errors have Kafka's wording.

A validator is a callable object: `validator(name, value)` raises ConfigError for a bad value; `str(validator)` is the
range in Kafka's notation (`[0,...]`, `[a, b]`), empty if every value is valid.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from kafkapy.errors import ConfigError


class Validator(Protocol):
    """The type of validators: functions that check the value of a configuration key."""

    def __call__(self, name: str, value: Any) -> None:
        """Returns without a result if the value of the key `name` is valid; otherwise raises ConfigError."""


def invalid_value(name: str, value: object, reason: str) -> ConfigError:
    """Returns the ConfigError for an invalid value of the key `name`, in Kafka's wording."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {reason}")


class between:  # noqa: N801  (reads as a word of the tables)
    """A validator that accepts a number from `low` to `high`, both inclusive; None means no limit."""

    __slots__ = ("high", "low")

    def __init__(self, low: float | None, high: float | None) -> None:
        self.low = low
        self.high = high

    def __call__(self, name: str, value: float) -> None:
        if self.low is not None and value < self.low:
            raise invalid_value(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise invalid_value(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        ends = ("" if self.low is None else f"{self.low},", "" if self.high is None else f",{self.high}")
        return f"[{ends[0]}...{ends[1]}]"


def at_least(low: int) -> between:
    """Returns a validator that accepts numbers from `low` on."""
    return between(low, None)


class _Address:
    """A validator of an address to listen on: `host:port` (an IPv6 address in brackets), a port alone, or nothing."""

    __slots__ = ()

    def __call__(self, name: str, value: str) -> None:
        match = re.fullmatch(_ENDPOINT_PATTERN, value)
        if value and (match is None or int(match["port"]) > 65535):
            raise invalid_value(name, value, "accepted is host:port or a port, 0 to 65535; an IPv6 address in brackets")

    def __str__(self) -> str:
        return "host:port"


# Patterns are compiled at their first use, which most starts do not reach.
_ENDPOINT_PATTERN = r"(?:(?:\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z\-._]*):)?(?P<port>[0-9]{1,5})"
ADDRESS = _Address()


class _ZnodePath:
    """A validator of the path of a znode."""

    __slots__ = ()

    def __call__(self, name: str, value: str) -> None:
        if not re.fullmatch(r"/|(/[^/\s]+)+", value):
            raise invalid_value(name, value, "accepted is the path of a znode, such as / or /kafka")

    def __str__(self) -> str:
        return "path of a znode"


ZNODE_PATH = _ZnodePath()


class one_of:  # noqa: N801
    """A validator that accepts one of the texts `words`."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, name: str, value: str) -> None:
        if value not in self.words:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]"


class one_of_ignoring_case(one_of):  # noqa: N801
    """A validator that accepts one of `words` in upper or lower case. `words` are upper case.

    `str(validator)`, which the documentation of the key shows, begins with "(case insensitive)", as in Kafka.
    """

    __slots__ = ()

    def __call__(self, name: str, value: str | None) -> None:
        if value is None or value.upper() not in self.words:
            raise invalid_value(name, value, f"String must be one of (case insensitive): {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"(case insensitive) {super().__str__()}"


class one_of_any_case(one_of):  # noqa: N801
    """A validator that accepts one of `words` in upper or lower case. `words` are lower case.

    `str(validator)`, which the documentation of the key shows, is only the list of the words, as for `one_of`.
    """

    __slots__ = ()

    def __call__(self, name: str, value: str) -> None:
        super().__call__(name, value.lower())


class list_of:  # noqa: N801
    """A validator that accepts a list whose elements are all in `words` or, without `words`, are not empty.

    Duplicates are accepted here; `parse_value` removes them.
    """

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, name: str, value: list[str]) -> None:
        for element in value:
            if not element:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words and element not in self.words:
                raise invalid_value(name, element, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""


class filled_list_of(list_of):  # noqa: N801
    """A validator that accepts what `list_of` accepts, except the empty list."""

    __slots__ = ()

    def __call__(self, name: str, value: list[str]) -> None:
        if not value:
            accepted = str(self) or "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {accepted}")
        super().__call__(name, value)


class _NonEmptyString:
    def __call__(self, name: str, value: str) -> None:
        if not value:
            raise invalid_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class _NonNullString:
    def __call__(self, name: str, value: str | None) -> None:
        if value is None:
            raise invalid_value(name, "null", "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class _GzipLevel:
    def __call__(self, name: str, value: int) -> None:
        if value != -1 and not 1 <= value <= 9:
            raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class _ThrottledReplicas:
    """A validator that accepts `*`, or a list of partition:broker pairs."""

    _pair = r"[0-9]+:[0-9]+"

    def __call__(self, name: str, value: list[str]) -> None:
        if value != ["*"] and not all(re.fullmatch(self._pair, element) for element in value):
            shown = f"[{', '.join(value)}]"
            reason = f"{name} must be the literal '*' or a list of replicas in the following format: {self}"
            raise invalid_value(name, shown, reason)

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class _AutoOffsetReset:
    """A validator that accepts earliest, latest, none, or a duration before now in ISO 8601 form."""

    _duration = r"by_duration:P(?=\d|T\d)(\d+D)?(T(?=[\d.])(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?"

    def __call__(self, name: str, value: str) -> None:
        if value not in ("latest", "earliest", "none") and not re.fullmatch(self._duration, value):
            words = "'earliest', 'latest', 'none' or of the format 'by_duration:<PnDTnHnMn.nS>'"
            raise invalid_value(name, value, f"the value should be either {words}.")

    def __str__(self) -> str:
        return "[latest, earliest, none, by_duration:PnDTnHnMn.nS]"


ANY = None
AUTO_OFFSET_RESET = _AutoOffsetReset()
NON_EMPTY_STRING = _NonEmptyString()
NON_NULL_STRING = _NonNullString()
GZIP_LEVEL = _GzipLevel()
THROTTLED_REPLICAS = _ThrottledReplicas()
