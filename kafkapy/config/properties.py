"""`.properties` files, read exactly as java.util.Properties reads them (Latin-1, escapes, continuation lines)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkapy.errors import ConfigError

# Control characters that no text file holds; tab, line feed, form feed and carriage return are text.
CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_content(path: str) -> bytes:
    """Returns the bytes of a file. Raises ConfigError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"Cannot read the configuration file {path}: {error.strerror}") from error


def read_properties(path: str) -> dict[str, str]:
    """Returns the keys and values of a file; the last value of a repeated key counts.

    Raises ConfigError if the file cannot be read.
    """
    return parse_properties(read_content(path).decode("latin-1"))


def parse_properties(text: str) -> dict[str, str]:
    """Returns the keys and values of a `.properties` text."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        properties[_unescape(raw_key)] = _unescape(raw_value)
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Yields logical lines: a line that ends with an odd number of backslashes is joined with the next one.

    Comments and blank lines are omitted.
    """
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = line if pending is None else pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
            continue
        pending = None
        yield line
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Returns key and value, still escaped; the key ends at the first unescaped `=`, `:` or blank."""
    pos = 0
    while pos < len(line) and line[pos] not in "=:" + _BLANK:
        pos += 2 if line[pos] == "\\" else 1
    key, rest = line[:pos], line[pos:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    pos = 0
    while pos < len(text):
        char = text[pos]
        pos += 1
        if char == "\\" and pos < len(text):
            char = text[pos]
            pos += 1
            if char == "u":
                digits = text[pos : pos + 4]
                if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                    raise ConfigError(f"Malformed \\uxxxx encoding in the configuration file: \\u{digits}")
                char = chr(int(digits, 16))
                pos += 4
            else:
                char = _ESCAPES.get(char, char)
        result.append(char)
    # Joins a pair of \uXXXX surrogates into one character.
    return "".join(result).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
