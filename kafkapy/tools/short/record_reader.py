"""Reads records from a stream by a format string, the reverse of `record_format`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import ToolError, UsageError
from kafkapy.tools.short.record_format import (
    HEADERS,
    ISO,
    KEY,
    KEY_SIZE,
    NUMBERS,
    PARTITION,
    TIMESTAMP,
    TOPIC,
    VALUE,
    VALUE_SIZE,
    Field,
    byte_order,
    decode,
    parse_format,
)

_INPUT_CHUNK_BYTES = 1 << 16
_SIZES = {KEY: KEY_SIZE, VALUE: VALUE_SIZE}


class ReadRecord(NamedTuple):
    """A record that was read from the input.

    A field that the format does not contain is None, or () for the headers. `timestamp` is in ms since 1970.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None
    topic: str | None = None


class RecordReader:
    """Reads records of a format. Not thread-safe."""

    def __init__(self, text: str, null: bytes | None = None) -> None:
        """`null` is the text that represents a null key or value; None if no text does.

        Raises UsageError for an invalid format string, and for one that does not determine the end of each field.
        """
        self._null = null
        self._parts = parse_format(text)
        self._check(text)

    def _check(self, text: str) -> None:
        sized: set[str] = set()
        fields = [part for part in self._parts if isinstance(part, Field)]
        if not fields:
            raise UsageError(f"{text} has no field, so that the input cannot be divided into records")
        for index, part in enumerate(self._parts):
            if not isinstance(part, Field):
                continue
            if part.modifier == ISO:
                raise UsageError("a timestamp is read in ms since 1970: use %T")
            if part.letter in (KEY_SIZE, VALUE_SIZE):
                sized.add(part.letter)
            has_size = _SIZES.get(part.letter) in sized or byte_order(part.modifier) is not None
            is_last = index == len(self._parts) - 1
            if not has_size and not is_last and isinstance(self._parts[index + 1], Field):
                raise UsageError(
                    f"{part.shown} is followed by another field: put a text between them, or its size first"
                )

    def read(self, stream: BinaryIO) -> Iterator[ReadRecord]:
        """Yields the records of a stream up to its end. Raises ToolError for input that does not match the format."""
        source = _Source(stream)
        number = 0
        while not source.is_at_end():
            number += 1
            yield self._record(source, number)

    def _record(self, source: _Source, number: int) -> ReadRecord:
        found: dict[str, Any] = {}
        try:
            for index, part in enumerate(self._parts):
                following = self._parts[index + 1] if index + 1 < len(self._parts) else None
                if isinstance(part, Field):
                    self._read_field(part, following, index + 2 >= len(self._parts), source, found)
                elif index == 0 or not self._ends_by_delimiter(index - 1):
                    source.expect(part)
        except ValueError as error:
            raise ToolError(f"record {number} of the input does not match the format: {error}") from None
        headers = self._headers(found.get(HEADERS))
        return ReadRecord(
            found.get(KEY),
            found.get(VALUE),
            headers,
            found.get(PARTITION),
            found.get(TIMESTAMP),
            found.get(TOPIC),
        )

    def _ends_by_delimiter(self, index: int) -> bool:
        """Returns whether the item `index` of the format is a field that ends where the text after it begins.

        The reader consumes this text with the field. A binary field, or a field whose size is in an earlier field, ends
        without a delimiter.
        """
        part = self._parts[index]
        if not isinstance(part, Field) or byte_order(part.modifier) is not None:
            return False
        size = _SIZES.get(part.letter)
        return not any(isinstance(each, Field) and each.letter == size for each in self._parts[:index])

    def _read_field(self, part: Field, following: Any, is_last: bool, source: _Source, found: dict[str, Any]) -> None:
        binary = byte_order(part.modifier)
        if binary is not None:
            size, order = binary
            found[part.letter] = int.from_bytes(source.take(size), "big" if order == "big" else "little", signed=True)
            return
        size_letter = _SIZES.get(part.letter, "")
        if size_letter in found:
            size = found[size_letter]
            if size < -1:
                raise ValueError(f"{size} is not a size in bytes, or -1 for null")
            found[part.letter] = None if size == -1 else decode(source.take(size), part.modifier)
            return
        text = source.rest() if following is None else source.until(following, may_end=is_last)
        found[part.letter] = self._value(part, text)

    def _value(self, part: Field, text: bytes) -> Any:
        if part.letter in NUMBERS:
            if not text.strip().lstrip(b"-").isdigit():
                raise ValueError(f"{text[:40]!r} is not a number for {part.shown}")
            return int(text)
        if part.letter == TOPIC:
            return text.decode()
        if part.letter == HEADERS:
            return text
        if self._null is not None and text == self._null:
            return None
        try:
            return decode(text, part.modifier)
        except ValueError:
            raise ValueError(f"{text[:40]!r} is not {part.modifier}") from None

    def _headers(self, text: bytes | None) -> tuple[tuple[str, bytes | None], ...]:
        pairs = (each.partition(b"=") for each in text.split(b",")) if text else ()
        return tuple((name.decode(), None if value == self._null else value) for name, _, value in pairs)


class _Source:
    """A stream of bytes with a buffer, from which the fields of records are taken."""

    def __init__(self, stream: BinaryIO) -> None:
        # `read1` returns what a terminal or pipe has, so that records are sent before the end of the input.
        self._read = getattr(stream, "read1", stream.read)
        self._buffer = b""
        self._pos = 0
        self._has_ended = False

    def _fill(self) -> bool:
        """Reads more bytes; returns False at the end of the stream."""
        if self._has_ended:
            return False
        chunk = self._read(_INPUT_CHUNK_BYTES)
        self._has_ended = not chunk
        self._buffer = self._buffer[self._pos :] + chunk
        self._pos = 0
        return not self._has_ended

    def is_at_end(self) -> bool:
        return self._pos == len(self._buffer) and not self._fill()

    def take(self, size: int) -> bytes:
        """Returns the next `size` bytes. Raises ValueError at the end of the stream."""
        while len(self._buffer) - self._pos < size:
            if not self._fill():
                raise ValueError("the input ends within a field")
        self._pos += size
        return self._buffer[self._pos - size : self._pos]

    def until(self, delimiter: bytes, *, may_end: bool) -> bytes:
        """Returns the bytes before the next delimiter, which is consumed.

        If `may_end` is set, the end of the stream is a delimiter as well; otherwise ValueError is raised there.
        """
        searched = self._pos
        while (found := self._buffer.find(delimiter, searched)) < 0:
            searched = max(len(self._buffer) - self._pos - len(delimiter) + 1, 0)
            if not self._fill():
                if may_end:
                    return self.rest()
                raise ValueError(f"{delimiter!r} is missing")
        text = self._buffer[self._pos : found]
        self._pos = found + len(delimiter)
        return text

    def rest(self) -> bytes:
        """Returns all bytes up to the end of the stream."""
        while self._fill():
            pass
        text = self._buffer[self._pos :]
        self._pos = len(self._buffer)
        return text

    def expect(self, text: bytes) -> None:
        """Consumes a text. Raises ValueError if something else follows."""
        if self.take(len(text)) != text:
            raise ValueError(f"{text!r} is missing")
