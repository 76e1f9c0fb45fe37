"""Parses lines into records of headers, key and value, by the properties of Apache Kafka's LineMessageReader."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, BinaryIO

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import ToolError, unknown_keys

log = logging.getLogger("kafkapy.tools.console_producer")

READER_PROPERTIES = """ parse.key=false
 parse.headers=false
 ignore.error=false
 key.separator=\\t
 headers.delimiter=\\t
 headers.separator=,
 headers.key.separator=:
 null.marker=   text that represents a null key, value or header value
With parse.headers and parse.key a line has the form
  h1:v1,h2:v2<tab>key<tab>value"""
READER_KEYS = (
    "parse.key",
    "parse.headers",
    "ignore.error",
    "key.separator",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
)
KAFKAS_READER = "org.apache.kafka.tools.LineMessageReader"


class InputRecord(NamedTuple):
    """A record to send, which was parsed from a line."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class LineReader:
    """A reader of one record per line. Configured once, then used by one thread."""

    shows_prompt = False

    def configure(self, properties: Mapping[str, str]) -> None:
        """Sets which of headers, key and value a line contains, and their separators.

        Raises ToolError, with Kafka's text, for two separators that are equal, or for a separator that equals the
        property null.marker, the text that stands for null.
        """
        for warning in unknown_keys(properties, ("topic", *READER_KEYS)):
            log.warning("%s", warning)

        def is_set(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        self._topic = properties["topic"]
        self._parses_key = is_set("parse.key")
        self._parses_headers = is_set("parse.headers")
        self._ignores_errors = is_set("ignore.error")
        texts = {
            "key.separator": properties.get("key.separator", "\t"),
            "headers.delimiter": properties.get("headers.delimiter", "\t"),
            "headers.separator": properties.get("headers.separator", ","),
            "headers.key.separator": properties.get("headers.key.separator", ":"),
        }
        marker = properties.get("null.marker")
        delimiter, separator, inner = (texts[f"headers.{name}"] for name in ("delimiter", "separator", "key.separator"))
        for one, other, names in (
            (delimiter, separator, "headers.delimiter and headers.separator"),
            (delimiter, inner, "headers.delimiter and headers.key.separator"),
            (separator, inner, "headers.separator and headers.key.separator"),
        ):
            if one == other:
                raise ToolError(f"{names} may not be equal")
        for name in ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator"):
            if texts[name] == marker:
                raise ToolError(f"null.marker and {name} may not be equal")
        self._key_separator = texts["key.separator"].encode()
        self._headers_delimiter = delimiter.encode()
        self._headers_separator = re.compile(separator.encode())
        self._headers_key_separator = inner.encode()
        self._null_marker = None if marker is None else marker.encode()
        self._line_number = 0

    def read_records(self, stream: BinaryIO) -> Iterator[InputRecord]:
        """Yields the record of each line of a stream.

        Raises ToolError for a line that lacks a separator, unless the property ignore.error is set (see `record`).
        """
        while True:
            self._prompt()
            raw = stream.readline()
            if not raw:
                return
            for line in _lines(raw):
                self._line_number += 1
                yield self.record(line)

    def record(self, line: bytes) -> InputRecord:
        """Returns the record of a line. `line` has no line end.

        Raises ToolError for a line that lacks a separator. If the property ignore.error is set, such a line is
        accepted: if the separator of the key is missing, the key is null and the rest of the line is the value; if the
        separator of the headers is missing, the record has no headers.
        """
        start = 0
        headers = self._part(self._parses_headers, line, start, self._headers_delimiter, "headers delimiter")
        if headers is not None:
            start = len(headers) + len(self._headers_delimiter)
        key = self._part(self._parses_key, line, start, self._key_separator, "key separator")
        if key is not None:
            start += len(key) + len(self._key_separator)
        value = line[start:]
        pairs = () if headers is None or headers == self._null_marker else self._headers(headers)
        return InputRecord(self._topic, self._or_null(key), self._or_null(value), pairs)

    def _prompt(self) -> None:
        if self.shows_prompt:
            sys.stdout.write(">")
            sys.stdout.flush()

    def _or_null(self, part: bytes | None) -> bytes | None:
        return None if part == self._null_marker else part

    def _part(self, is_wanted: bool, line: bytes, start: int, separator: bytes, name: str) -> bytes | None:
        if not is_wanted:
            return None
        index = line.find(separator, start)
        if index >= 0:
            return line[start:index]
        if self._ignores_errors:
            return None
        shown = line.decode("utf-8", "replace")
        raise ToolError(f"No {name} found on line number {self._line_number}: '{shown}'")

    def _headers(self, text: bytes) -> tuple[tuple[str, bytes | None], ...]:
        pairs = self._headers_separator.split(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return tuple(self._header(pair) for pair in pairs)

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, separator, value = pair.partition(self._headers_key_separator)
        shown = pair.decode("utf-8", "replace")
        if not separator:
            if self._ignores_errors:
                return shown, None
            raise ToolError(f"No header key separator found in pair '{shown}' on line number {self._line_number}")
        if name == self._null_marker:
            marker = name.decode("utf-8", "replace")
            raise ToolError(f"Header keys should not be equal to the null marker '{marker}' as they can't be null")
        return name.decode("utf-8", "replace"), self._or_null(value)


def _lines(raw: bytes) -> list[bytes]:
    """Returns the lines in `raw`, which was read up to a line feed, without their line ends.

    A carriage return ends a line too, as in Java. Invalid UTF-8 is replaced.
    """
    line = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode("utf-8", "replace").encode()
    return line.split(b"\r") if b"\r" in line else [line]


def load_reader(name: str) -> Any:
    """Returns the reader that `--line-reader` names: Kafka's class, or a Python class as `module:name`.

    A reader has the methods `configure(properties)` and `read_records(stream)`. Raises ToolError if the class cannot be
    loaded.
    """
    if name == KAFKAS_READER:
        return LineReader()
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolError(
            f"The line reader {name} cannot be loaded ({error}): write a Python class as module:name"
        ) from None
