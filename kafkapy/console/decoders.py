"""Decoders of keys and values of records for people: bytes to text, with the reason when a decoder fails.

The decoder `auto` tries the decoders that fit the topic, then JSON, text and msgpack, and shows the bytes as hex if
none of them accepts the content. `decode` and `preview` never raise an exception, because a producer may write any
content: if the chosen decoder does not accept the content, they use `auto`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kafkapy.console.schema_decoder import SchemaDecoder, SchemaUnknown
from kafkapy.errors import ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.coordinator_record import Coordinator, decode_coordinator_key, decode_coordinator_value
from kafkapy.protocol.message_json import message_json
from kafkapy.protocol.record_frame import UnknownRecordError, decode_metadata_record
from kafkapy.types import METADATA_TOPIC

# A decoder reads no more bytes than this: the page of a record shows a part of a larger one and offers its bytes.
LARGEST_CONTENT = 1 << 20
LARGEST_HEX = 4096
_MOST_LEVELS = 200
_COORDINATORS = {
    "__consumer_offsets": Coordinator.GROUP,
    "__transaction_state": Coordinator.TRANSACTION,
    "__share_group_state": Coordinator.SHARE,
}


class Decoded(NamedTuple):
    """Content as text, and the name of the decoder that made it.

    `failure` says why another decoder failed, or that only a part of the content is shown; otherwise it is "".
    `is_null` is True for null. `value` is the parsed tree if the content is like JSON, otherwise None.
    """

    text: str
    decoder: str
    failure: str = ""
    is_null: bool = False
    value: Any = None


class Undecodable(Exception):
    """Raised by a decoder if the content is not in its format; the text of the exception is the reason."""


def _text(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        raise Undecodable(f"byte {error.start} is not UTF-8: {error.reason}") from None


def _json(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    try:
        value = json.loads(data)
    except RecursionError:
        raise Undecodable("JSON that is nested too deeply") from None
    except ValueError as error:
        raise Undecodable(f"not JSON: {error}") from None
    return _pretty(value), value


def _msgpack(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    import msgpack

    try:
        value = msgpack.unpackb(data, strict_map_key=False, max_ext_len=1 << 16, timestamp=3)
    except (
        ValueError,
        TypeError,  # an array or a map is the key of a map
        OverflowError,  # a time that Python cannot represent
        RecursionError,
        msgpack.UnpackException,
        msgpack.StackError,
    ) as error:
        raise Undecodable(f"not msgpack: {error or type(error).__name__}") from None
    return _pretty(value), value


def _pretty(value: Any) -> str:
    """Returns a tree of JSON values as indented JSON. Raises Undecodable for a tree with too many levels."""
    try:
        _check_depth(value)
        text = json.dumps(value, indent=2, ensure_ascii=False, default=_other)
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape and no page can have
            return json.dumps(value, indent=2, default=_other)
        return text
    except (RecursionError, TypeError) as error:
        raise Undecodable(f"the content cannot be shown as JSON: {error}") from None


def _check_depth(value: Any) -> None:
    """Raises RecursionError for a tree with more than _MOST_LEVELS levels, which no page can show."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise RecursionError(f"it has more than {_MOST_LEVELS} levels")


def _other(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _hex(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    lines = []
    for at in range(0, min(len(data), LARGEST_HEX), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<47}  {shown}")
    if len(data) > LARGEST_HEX:
        lines.append(f"… {len(data) - LARGEST_HEX} further bytes")
    return "\n".join(lines), None


def _coordinator(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    coordinator = _COORDINATORS.get(topic)
    if coordinator is None:
        raise Undecodable(f"{topic} is not the topic of a coordinator")
    try:
        decoded_key = decode_coordinator_key(data if key is None else key, coordinator)
        if key is None:
            return _message(decoded_key)
        return _message(decode_coordinator_value(type(decoded_key).API_KEY, data, coordinator))
    except (ProtocolViolation, UnknownRecordError, ValueError) as error:
        raise Undecodable(f"not a record of a coordinator: {error}") from None


def _metadata(data: bytes, topic: str, key: bytes | None) -> tuple[str, Any]:
    try:
        return _message(decode_metadata_record(data))
    except (ProtocolViolation, UnknownRecordError, ValueError) as error:
        raise Undecodable(f"not a record of the metadata log: {error}") from None


def _message(message: Any) -> tuple[str, Any]:
    value = {"type": type(message).__name__, **message_json(message, type(message).HIGHEST_VERSION)}
    return _pretty(value), value


Decoder = Callable[[bytes, str, bytes | None], tuple[str, Any]]
DECODERS: dict[str, Decoder] = {
    "json": _json,
    "text": _text,
    "msgpack": _msgpack,
    "hex": _hex,
    "coordinator": _coordinator,
    "metadata": _metadata,
}
SCHEMA = "schema"
CHOICES = ("auto", *DECODERS, SCHEMA)
# Bytes of msgpack that are not ASCII text: maps, arrays, binary and extension types, nil, booleans, floats, integers.
_MSGPACK_OPENINGS = frozenset(range(0x80, 0xA0)) | frozenset(range(0xC0, 0xE0))


def decode(
    data: bytes | None,
    topic: str,
    wanted: str = "auto",
    key: bytes | None = None,
    schemas: SchemaDecoder | None = None,
) -> Decoded:
    """Returns the key or value `data` of a record as text, made by the decoder `wanted`, one of CHOICES.

    `auto` chooses the decoder by the topic and the bytes. If another decoder fails, `auto` is used, and `failure` of
    the result says why. `key` is the record's key if `data` is its value, since some formats need it. `schemas` decodes
    with the schemas of a registry; None if there is no registry.
    """
    if data is None:
        return Decoded("null", wanted, is_null=True)
    note = ""
    if len(data) > LARGEST_CONTENT:
        note = f"the first {LARGEST_CONTENT} of {len(data)} bytes; all of them can be downloaded"
        text, _ = _hex(data, topic, key) if wanted == "hex" else (data[:LARGEST_CONTENT].decode("utf-8", "replace"), 0)
        return Decoded(text, "hex" if wanted == "hex" else "text", note)
    if wanted != "auto":
        try:
            return _decoded(wanted, data, topic, key, schemas)
        except Undecodable as error:
            return _readable(data, topic, key, None)._replace(failure=f"{wanted}: {error}")
    return _readable(data, topic, key, schemas)


def _readable(data: bytes, topic: str, key: bytes | None, schemas: SchemaDecoder | None) -> Decoded:
    """Decodes content by the first decoder that accepts it.

    The decoder with the registry's schemas is tried first, then the decoders in `_candidates`; the last is hex, which
    accepts all bytes.
    """
    failure = ""
    if schemas is not None and schemas.may_decode(data) and topic not in (*_COORDINATORS, METADATA_TOPIC):
        try:
            return _decoded(SCHEMA, data, topic, key, schemas)
        except Undecodable as error:
            failure = f"{SCHEMA}: {error}"
    for name in _candidates(data, topic):
        try:
            return _decoded(name, data, topic, key)._replace(failure=failure)
        except Undecodable:
            continue
    return _decoded("hex", data, topic, key)._replace(failure=failure)


def _decoded(name: str, data: bytes, topic: str, key: bytes | None, schemas: SchemaDecoder | None = None) -> Decoded:
    if name == SCHEMA:
        return _with_schema(data, topic, schemas)
    text, value = DECODERS[name](data, topic, key)
    return Decoded(text, name, value=value)


def _with_schema(data: bytes, topic: str, schemas: SchemaDecoder | None) -> Decoded:
    if schemas is None:
        raise Undecodable("the console knows no schema registry of this cluster; --schema-registry names it")
    try:
        value = schemas.decode(data, topic)
    except SchemaUnknown as error:
        raise Undecodable(str(error)) from None
    return Decoded(_pretty(value), SCHEMA, value=value)


def _candidates(data: bytes, topic: str) -> list[str]:
    found = []
    if topic in _COORDINATORS:
        found.append("coordinator")
    if topic == METADATA_TOPIC:
        found.append("metadata")
    if data[:1] in (b"{", b"["):
        found.append("json")
    found.append("text")
    if data and data[0] in _MSGPACK_OPENINGS:
        found.append("msgpack")
    return found


def preview(
    data: bytes | None,
    topic: str,
    wanted: str,
    key: bytes | None,
    limit: int,
    schemas: SchemaDecoder | None = None,
) -> Decoded:
    """Returns the key or value `data` as one line of at most `limit` characters and an ellipsis, for a list of records.

    `wanted` is the name of a decoder or "auto", `key` the record's key if `data` is its value. Content is decoded only
    as far as the line needs it.
    """
    if data is None:
        return Decoded("null", wanted, is_null=True)
    if wanted == "hex":
        return Decoded(data[: limit // 2].hex() + ("…" if len(data) > limit // 2 else ""), "hex")
    if wanted in ("auto", "text", "json") and topic not in (*_COORDINATORS, METADATA_TOPIC):
        # The usual record is shown without decoding more of it than the line has.
        start = data[: limit * 4]
        try:
            text = start.decode()
        except UnicodeDecodeError as error:
            # A character that was cut at the end is no fault.
            text = start[: error.start].decode() if len(data) > len(start) and error.start > len(start) - 4 else ""
        if text and _is_printable(text):
            failure = "" if wanted != "json" or data[:1] in (b"{", b"[") else "json: the content is text"
            return Decoded(_one_line(text, limit), "text", failure)
    decoded = decode(data[: LARGEST_CONTENT + 1], topic, wanted, key, schemas)
    if decoded.decoder == "hex":
        return decoded._replace(text=data[: limit // 2].hex() + ("…" if len(data) > limit // 2 else ""))
    if decoded.value is not None:
        text = json.dumps(decoded.value, ensure_ascii=False, default=_other, separators=(", ", ": "))
        return decoded._replace(text=_one_line(text, limit))
    return decoded._replace(text=_one_line(decoded.text, limit))


def _is_printable(text: str) -> bool:
    return all(character.isprintable() or character in "\n\r\t" for character in text)


def _one_line(text: str, limit: int) -> str:
    text = " ".join(text[: limit * 2].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
