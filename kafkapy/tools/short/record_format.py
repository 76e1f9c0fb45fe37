"""Format strings for records, in the letters of kcat and rpk: `%k %v\\n`, `%t[%p]@%o`, `%V{big32}%v`.

    %t topic    %p partition    %o offset     %T timestamp in ms; %T{iso} as a date
    %k key      %K its size     %v or %s value     %V or %S its size     %h headers     %% a percent sign

Keys and values may have an encoding: `%k{hex}`, `%v{base64}`. A number may be binary: `%V{big32}`, `{little16}` and so
on. The size of null is -1. `\\n`, `\\t`, `\\r`, `\\0`, `\\\\` and `\\xNN` stand for single bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kafkapy.client import ConsumerRecord
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import UsageError

TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS = "t", "p", "o", "T", "h"
KEY, KEY_SIZE, VALUE, VALUE_SIZE = "k", "K", "v", "V"
NUMBERS = frozenset((PARTITION, OFFSET, TIMESTAMP, KEY_SIZE, VALUE_SIZE))
_ALIASES = {"s": VALUE, "S": VALUE_SIZE}
LETTERS = (TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, KEY, KEY_SIZE, VALUE, VALUE_SIZE)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(
    r"%(?:(?P<letter>[A-Za-z])(?:\{(?P<modifier>[^}]*)\})?|(?P<percent>%))|\\(?:x(?P<hex>[0-9A-Fa-f]{2})|(?P<escape>.))"
)
_BINARY = re.compile(r"(big|little)(8|16|32|64)")
HEX, BASE64, ISO = "hex", "base64", "iso"
VALUES_AS_LINES = "%v\\n"


class Field(NamedTuple):
    """A field of a record in a format string: its letter, and the modifier in braces or ""."""

    letter: str
    modifier: str

    @property
    def shown(self) -> str:
        """The field as it is written in a format string."""
        return f"%{self.letter}{{{self.modifier}}}" if self.modifier else f"%{self.letter}"


Part = bytes | Field


def parse_format(text: str) -> list[Part]:
    """Returns the literal bytes and the fields of a format string, in their order.

    Raises UsageError for an unknown field, modifier or escape.
    """
    parts: list[Part] = []
    literal = b""
    position = 0
    for found in _TOKEN.finditer(text):
        literal += _literal_bytes(text[position : found.start()])
        position = found.end()
        if found["letter"]:
            if literal:
                parts.append(literal)
                literal = b""
            parts.append(_field(found["letter"], found["modifier"] or "", found[0]))
        elif found["percent"]:
            literal += b"%"
        elif found["hex"]:
            literal += bytes.fromhex(found["hex"])
        elif found["escape"] in _ESCAPES:
            literal += _ESCAPES[found["escape"]]
        else:
            raise UsageError(f"{found[0]} is not an escape of a format string (known: \\n \\t \\r \\0 \\\\ \\xNN)")
    literal += _literal_bytes(text[position:])
    return [*parts, literal] if literal else parts


def _literal_bytes(text: str) -> bytes:
    """Returns the bytes of a text between fields. Raises UsageError for a percent sign that does not begin a field."""
    if "%" in text:
        raise UsageError("a single % in a format string is not a field; write %% for a percent sign")
    return text.encode()


def _field(letter: str, modifier: str, shown: str) -> Field:
    letter = _ALIASES.get(letter, letter)
    if letter not in LETTERS:
        raise UsageError(
            f"{shown} is not a field of a format string (known: {' '.join(f'%{each}' for each in LETTERS)})"
        )
    accepted = {"", "ascii"}
    if letter in NUMBERS and _BINARY.fullmatch(modifier):
        accepted.add(modifier)
    if letter in (KEY, VALUE):
        accepted |= {HEX, BASE64}
    if letter == TIMESTAMP:
        accepted.add(ISO)
    if modifier not in accepted:
        raise UsageError(f"{shown} has an unknown modifier {{{modifier}}}")
    return Field(letter, "" if modifier == "ascii" else modifier)


def byte_order(modifier: str) -> tuple[int, str] | None:
    """Returns the size in bytes, and "big" or "little", of the binary number that a modifier such as `big32` names.

    Returns None if the modifier names no binary number.
    """
    found = _BINARY.fullmatch(modifier)
    return (int(found[2]) // 8, found[1]) if found else None


class RecordFormatter:
    """Formats records by a format string. Any thread may use the object."""

    def __init__(self, text: str, null: bytes = b"") -> None:
        """`null` is printed for a key or value that is null. Raises UsageError for an invalid format string."""
        self._null = null
        self._writers = [self._writer(part) for part in parse_format(text)]

    def configure(self, properties: Any) -> None:
        """Ignores the properties, because this formatter has none."""

    def format(self, record: ConsumerRecord) -> bytes:
        """Returns the text for a record in the format, as bytes."""
        return b"".join([writer(record) for writer in self._writers])

    def _writer(self, part: Part) -> Callable[[ConsumerRecord], bytes]:
        if isinstance(part, bytes):
            return lambda record: part
        modifier = part.modifier
        if part.letter in NUMBERS:
            read = _NUMBERS[part.letter]
            if modifier == ISO:
                return lambda record: iso_time(record.timestamp).encode()
            return lambda record: _number(read(record), modifier)
        if part.letter == TOPIC:
            return lambda record: record.topic.encode()
        if part.letter == HEADERS:
            return lambda record: b",".join(
                name.encode() + b"=" + (self._null if value is None else value) for name, value in record.headers
            )
        if part.letter == KEY:
            return lambda record: self._encoded(record.key, modifier)
        return lambda record: self._encoded(record.value, modifier)

    def _encoded(self, data: bytes | None, modifier: str) -> bytes:
        return self._null if data is None else encode(data, modifier)


_NUMBERS: dict[str, Callable[[ConsumerRecord], int]] = {
    PARTITION: lambda record: record.partition,
    OFFSET: lambda record: record.offset,
    TIMESTAMP: lambda record: record.timestamp,
    KEY_SIZE: lambda record: -1 if record.key is None else len(record.key),
    VALUE_SIZE: lambda record: -1 if record.value is None else len(record.value),
}


def _number(number: int, modifier: str) -> bytes:
    binary = byte_order(modifier)
    if binary is None:
        return b"%d" % number
    size, order = binary
    try:
        return number.to_bytes(size, "big" if order == "big" else "little", signed=True)
    except OverflowError:
        raise UsageError(f"{number} does not fit into {{{modifier}}}") from None


def encode(data: bytes, encoding: str) -> bytes:
    """Returns `data` in an encoding: "hex", "base64", or "" for `data` itself."""
    if encoding == HEX:
        return data.hex().encode()
    return base64.b64encode(data) if encoding == BASE64 else data


def decode(text: bytes, encoding: str) -> bytes:
    """Returns the bytes that `text` represents in an encoding; the reverse of `encode`. Raises ValueError for invalid
    text."""
    if encoding == HEX:
        return binascii.unhexlify(text.strip())
    return base64.b64decode(text, validate=True) if encoding == BASE64 else text


def iso_time(wall_ms: int) -> str:
    """Returns a time in ms since 1970 as a date in UTC, or "-" for a record without a timestamp.

    A time after the year 9999 is returned as the number, because clients may set any timestamp, such as microseconds.
    """
    if wall_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(wall_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(wall_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
