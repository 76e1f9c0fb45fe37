"""Slow, obvious codec of Kafka's messages: interprets the facts of Kafka's releases field by field.

This is the oracle for the generated classes: it shares no code with them, nor with the definitions. A message is any
object whose attributes are the fields in snake_case; decoding returns a Record of them.
"""

import json
import re
import struct
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FACTS = Path(__file__).parent.parent / "data" / "kafka_messages.json"
NUMBERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
DEFAULTS: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": bytes(16),
    "records": None,
}


class NotEncodable(Exception):
    """The version cannot carry the value."""


class Malformed(Exception):
    """The bytes are not a message."""


class Record(SimpleNamespace):
    """Decoded fields by name."""


@cache
def facts() -> dict[str, dict[str, Any]]:
    return {message["name"]: message for message in json.loads(FACTS.read_text())["messages"]}


def attribute_name(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.replace("KRaft", "Kraft")).lower()


@cache
def versions_of(text: str | None, last: int) -> frozenset[int]:
    """Parses "0-3", "2+", "5", "0,8" or "none" into a set."""
    found: set[int] = set()
    for part in (text or "none").replace("none", "").split(","):
        if part.endswith("+"):
            found |= set(range(int(part[:-1]), last + 1))
        elif "-" in part:
            first, final = part.split("-")
            found |= set(range(int(first), int(final) + 1))
        elif part:
            found.add(int(part))
    return frozenset(found)


def message_versions(message: dict[str, Any]) -> list[int]:
    return sorted(versions_of(message["versions"], 0))


def default_of(field: dict[str, Any]) -> Any:
    """Returns the default value of a field; a new object at each call.

    The text "null" in a definition means that the default is null. A definition with JSON's null, as one without any
    default, means the default of the field's type.
    """
    given = field.get("default")
    if given == "null":
        return None
    if field["type"].startswith("[]"):
        return []
    if "fields" in field:
        return Record(**{attribute_name(f["name"]): default_of(f) for f in field["fields"]}, unknown_tagged_fields=())
    if given is None:
        return DEFAULTS.get(field["type"], 0)
    if field["type"] == "bool":
        return str(given).lower() == "true"
    return given if field["type"] == "string" else int(str(given), 0)


def is_default(field: dict[str, Any], value: Any) -> bool:
    if "fields" in field and not field["type"].startswith("[]") and value is not None and default_of(field) is not None:
        if value.unknown_tagged_fields:
            return False
        return all(is_default(f, getattr(value, attribute_name(f["name"]))) for f in field["fields"])
    return value == default_of(field) and (value is None) == (default_of(field) is None)


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Codec:
    """Encodes and decodes one message in one version."""

    def __init__(self, name: str, version: int) -> None:
        self.message = facts()[name]
        self.last = message_versions(self.message)[-1]
        self.version = version
        self.flexible = version in versions_of(self.message["flexible_versions"], self.last)

    def holds(self, text: str | None) -> bool:
        return self.version in versions_of(text, self.last)

    def is_tagged(self, field: dict[str, Any]) -> bool:
        return self.flexible and self.holds(field.get("tagged_versions"))

    # -- encoding

    def encode(self, value: Any) -> bytes:
        return self.encode_fields(self.message["fields"], value)

    def encode_fields(self, fields: list[dict[str, Any]], value: Any) -> bytes:
        out, tags = b"", dict(value.unknown_tagged_fields)
        if tags and not self.flexible:
            raise NotEncodable("tagged fields")
        for field in fields:
            part = getattr(value, attribute_name(field["name"]))
            if not self.holds(field["versions"]):
                if not field.get("ignorable") and not is_default(field, part):
                    raise NotEncodable(field["name"])
            elif not self.is_tagged(field):
                out += self.encode_field(field, part)
            elif not is_default(field, part):
                if field["tag"] in tags:
                    raise NotEncodable(field["name"])
                tags[field["tag"]] = self.encode_field(field, part)
        if self.flexible:
            out += unsigned_varint(len(tags))
            for tag in sorted(tags):
                out += unsigned_varint(tag) + unsigned_varint(len(tags[tag])) + tags[tag]
        return out

    def encode_field(self, field: dict[str, Any], value: Any) -> bytes:
        compact = self.flexible and field.get("flexible_versions") != "none"
        if value is None and not self.holds(field.get("nullable_versions")):
            raise NotEncodable(f"{field['name']} is null")
        kind = field["type"]
        if kind.startswith("[]"):
            element = {**field, "type": kind[2:], "nullable_versions": "none"}
            body = None if value is None else b"".join(self.encode_field(element, each) for each in value)
            return self.encode_sized(body, compact, False, None if value is None else len(value))
        if "fields" in field:
            if value is None:
                return b"\x00" if self.is_tagged(field) else b"\xff"
            present = b"\x01" if self.holds(field.get("nullable_versions")) else b""
            return present + self.encode_fields(field["fields"], value)
        if kind in ("string", "bytes", "records"):
            raw = value.encode() if isinstance(value, str) else None if value is None else bytes(value)
            return self.encode_sized(raw, compact, kind == "string", None if raw is None else len(raw))
        if kind == "bool":
            return b"\x01" if value else b"\x00"
        return value if kind == "uuid" else struct.pack(NUMBERS[kind], value)

    def encode_sized(self, body: bytes | None, compact: bool, is_string: bool, count: int | None) -> bytes:
        if compact:
            return unsigned_varint(0 if count is None else count + 1) + (body or b"")
        return struct.pack(">h" if is_string else ">i", -1 if count is None else count) + (body or b"")

    # -- decoding

    def decode(self, data: bytes) -> Record:
        self.data, self.pos = data, 0
        value = self.decode_fields(self.message["fields"])
        if self.pos != len(data):
            raise Malformed("bytes are left over")
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.pos:
            raise Malformed("bytes end early")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def take_unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("varint is too long")

    def decode_fields(self, fields: list[dict[str, Any]]) -> Record:
        record = Record(unknown_tagged_fields=())
        known = {}
        for field in fields:
            present = self.holds(field["versions"])
            tagged = present and self.is_tagged(field)
            if tagged:
                known[field["tag"]] = field
            value = self.decode_field(field) if present and not tagged else default_of(field)
            setattr(record, attribute_name(field["name"]), value)
        for _ in range(self.take_unsigned_varint() if self.flexible else 0):
            tag, size = self.take_unsigned_varint(), self.take_unsigned_varint()
            end = self.pos + size
            if tag in known:
                setattr(record, attribute_name(known[tag]["name"]), self.decode_field(known[tag]))
                if self.pos != end:
                    raise Malformed("tagged field has another size")
            else:
                record.unknown_tagged_fields += ((tag, self.take(size)),)
        return record

    def decode_field(self, field: dict[str, Any]) -> Any:
        compact = self.flexible and field.get("flexible_versions") != "none"
        nullable = self.holds(field.get("nullable_versions"))
        kind = field["type"]
        if kind.startswith("[]"):
            count = self.decode_length(compact, False, nullable)
            element = {**field, "type": kind[2:], "nullable_versions": "none"}
            return None if count is None else [self.decode_field(element) for _ in range(count)]
        if "fields" in field:
            if nullable and self.is_tagged(field):
                if self.take_unsigned_varint() == 0:
                    return None
            elif nullable and struct.unpack(">b", self.take(1))[0] < 0:
                return None
            return self.decode_fields(field["fields"])
        if kind in ("string", "bytes", "records"):
            size = self.decode_length(compact, kind == "string", nullable)
            raw = None if size is None else self.take(size)
            return raw.decode() if raw is not None and kind == "string" else raw
        if kind == "bool":
            return self.take(1) != b"\x00"
        if kind == "uuid":
            return self.take(16)
        return struct.unpack(NUMBERS[kind], self.take(struct.calcsize(NUMBERS[kind])))[0]

    def decode_length(self, compact: bool, is_string: bool, nullable: bool) -> int | None:
        if compact:
            length = self.take_unsigned_varint() - 1
        else:
            length = struct.unpack(">h", self.take(2))[0] if is_string else struct.unpack(">i", self.take(4))[0]
        if length < -1 or (length == -1 and not nullable):
            raise Malformed("length")
        return None if length == -1 else length
