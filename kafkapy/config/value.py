"""Conversion of configuration values: texts are read as Java reads them and written as Kafka shows them."""

from __future__ import annotations

import re
from typing import Any

from kafkapy.config.row import BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, REQUIRED, SHORT, ConfigType, Row
from kafkapy.config.validator import invalid_value, list_of

# The characters that Java's String.trim() removes: all up to the space.
_TRIMMED = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"[+-]?\d+")
# Patterns are compiled at their first use, which most starts do not reach.
_DECIMAL = r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)"
_HEXADECIMAL = r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?"
_BITS = {SHORT: 16, INT: 32, LONG: 64}


class Password:
    """A secret whose text is in `value` only; its representation is hidden. The object does not change after its
    construction.
    """

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return "[hidden]"


def parse_value(row: Row, text: str) -> Any:
    """Returns the typed, validated value of `text`. Raises ConfigError that names key, value and accepted values.

    A list whose elements must differ loses its duplicates, as in Kafka.
    """
    value = _parse(row.name, row.type, text.strip(_TRIMMED))
    if isinstance(row.validator, list_of):
        value = list(dict.fromkeys(value))
    if row.validator is not None:
        row.validator(row.name, value)
    return value


def default_value(row: Row) -> Any:
    """Returns the typed default value; None if the key is unset by default, or if it has to be set."""
    default = row.default
    if default is REQUIRED:
        return None
    if row.type is LIST and default is not None:
        return split_list(default)
    return default


def split_list(text: str) -> list[str]:
    """Returns the elements between commas without surrounding blanks; the empty text is the empty list."""
    return [element.strip() for element in text.split(",")] if text else []


def format_value(type: ConfigType | None, value: Any) -> str | None:
    """Returns the text of a typed value as Kafka shows it; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if type is BOOLEAN:
        return "true" if value else "false"
    if type is LIST:
        return ",".join(value)
    if type is DOUBLE:
        return format_double(float(value))
    return str(value)


def _parse(name: str, type: ConfigType, text: str) -> Any:
    bits = _BITS.get(type)
    if bits is not None:
        return _parse_integer(name, type, text, bits)
    if type is BOOLEAN:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise invalid_value(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if type is LIST:
        return split_list(text)
    if type is DOUBLE:
        return _parse_double(name, text)
    if type is PASSWORD:
        return Password(text)
    if type is CLASS and not text:
        return None
    return text


def _parse_integer(name: str, type: ConfigType, text: str, bits: int) -> int:
    # 20 digits hold every long; more would only be leading zeros.
    if _INTEGER.fullmatch(text) and len(text.lstrip("+-").lstrip("0")) <= 20:
        value = int(text)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise invalid_value(name, text, f"Not a number of type {type.name}")


def _parse_double(name: str, text: str) -> float:
    if re.fullmatch(_DECIMAL, text, re.ASCII):
        return float(text if text.endswith(("NaN", "Infinity")) else text.rstrip("fFdD"))
    if re.fullmatch(_HEXADECIMAL, text, re.ASCII):
        return float.fromhex(text.rstrip("fFdD"))
    raise invalid_value(name, text, "Not a number of type DOUBLE")


def format_double(value: float) -> str:
    """Formats a number like Java's Double.toString.

    The result is plain from 0.001 to 10,000,000, and otherwise in scientific notation.
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, exponent = f"{value:.17e}".split("e")
    for precision in range(1, 18):  # the shortest text that reads back, as repr does
        shortest = f"{value:.{precision}e}"
        if float(shortest) == value:
            mantissa, exponent = shortest.split("e")
            break
    return f"{mantissa}E{int(exponent)}"
