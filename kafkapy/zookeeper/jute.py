"""The encoding of ZooKeeper's messages (Jute): big-endian integers, and buffers with a length before them.

A length of -1 stands for None. Every read checks the end of the message before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TypeVar

from kafkapy.errors import ProtocolViolation

T = TypeVar("T")

_INT = Struct(">i")
_LONG = Struct(">q")
NULL_LENGTH = _INT.pack(-1)

# Encoders of single values.
encode_int = _INT.pack
encode_long = _LONG.pack


class JuteReader:
    """Reads the values of one message in their order. Raises ProtocolViolation if the message is too short."""

    __slots__ = ("_data", "_pos")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read."""
        return len(self._data) - self._pos

    def read_bool(self) -> bool:
        return self.read_bytes(1) != b"\0"

    def read_int(self) -> int:
        value: int = _INT.unpack(self.read_bytes(4))[0]
        return value

    def read_long(self) -> int:
        value: int = _LONG.unpack(self.read_bytes(8))[0]
        return value

    def read_buffer(self) -> bytes | None:
        length = self.read_int()
        if length < -1:
            raise ProtocolViolation(f"a buffer of {length} bytes")
        return None if length == -1 else self.read_bytes(length)

    def read_string(self) -> str | None:
        """Returns a string, or None for null. As in Java, U+FFFD replaces bytes that are not UTF-8."""
        encoded = self.read_buffer()
        return None if encoded is None else encoded.decode(errors="replace")

    def read_text(self) -> str:
        """Returns a string that may not be null."""
        text = self.read_string()
        if text is None:
            raise ProtocolViolation("a null string")
        return text

    def read_vector(self, read_element: Callable[[], T]) -> list[T] | None:
        """Returns the elements, each of which `read_element` reads; None for the null vector.

        As in ZooKeeper, a vector whose length is below -1 is empty.
        """
        count = self.read_int()
        if count == -1:
            return None
        if count > self.remaining:  # each element has at least one byte
            raise ProtocolViolation(f"a vector of {count} elements in {self.remaining} bytes")
        return [read_element() for _ in range(count)]

    def read_texts(self) -> list[str]:
        return self.read_vector(self.read_text) or []

    def read_bytes(self, length: int) -> bytes:
        start = self._pos
        end = start + length
        if end > len(self._data):
            raise ProtocolViolation(f"{length} bytes are expected where {self.remaining} are left")
        self._pos = end
        return self._data[start:end]


def encode_bool(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def encode_buffer(value: bytes | None) -> bytes:
    return NULL_LENGTH if value is None else _INT.pack(len(value)) + value


def encode_string(value: str | None) -> bytes:
    return NULL_LENGTH if value is None else encode_buffer(value.encode())


def encode_strings(values: Sequence[str]) -> bytes:
    return _INT.pack(len(values)) + b"".join([encode_string(value) for value in values])
