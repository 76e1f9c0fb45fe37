"""Decoders of keys and values into text, as Java's deserializers and `toString` produce it."""

from __future__ import annotations

import struct
from collections.abc import Callable

from kafkapy.client.serialization import find_deserializer

Decoder = Callable[[bytes], str]
_PACKAGE = "org.apache.kafka.common.serialization."


def _number(code: str, name: str) -> Decoder:
    layout = struct.Struct(f">{code}")

    def decode(data: bytes) -> str:
        if len(data) != layout.size:
            raise ValueError(f"Size of data received by {name}Deserializer is not {layout.size}")
        return str(layout.unpack(data)[0])

    return decode


def _fraction(code: str, name: str) -> Decoder:
    layout = struct.Struct(f">{code}")

    def decode(data: bytes) -> str:
        if len(data) != layout.size:
            raise ValueError(f"Size of data received by {name}Deserializer is not {layout.size}")
        return java_fraction(layout.unpack(data)[0], layout)

    return decode


def java_fraction(value: float, layout: struct.Struct) -> str:
    """Returns the shortest decimal that converts back to the number, in Java's form: 1.0, 1.0E10, NaN, Infinity.

    `layout` is `>f` for a float or `>d` for a double; a float needs fewer digits.
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = next(
        text for digits in range(1, 18) if layout.pack(float(text := f"{value:.{digits - 1}e}")) == layout.pack(value)
    )
    mantissa, _, exponent_text = shortest.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    digits, exponent = mantissa.lstrip("-").replace(".", ""), int(exponent_text)
    if value == 0:
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0") if exponent >= 0 else "0"
        rest = digits[exponent + 1 :] if exponent >= 0 else "0" * (-exponent - 1) + digits
        return f"{sign}{whole}.{rest or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _boolean(data: bytes) -> str:
    if data not in (b"\0", b"\1"):
        raise ValueError("Size of data received by BooleanDeserializer is not 1")
    return "true" if data == b"\1" else "false"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _bytes(data: bytes) -> str:
    """Returns the text of Java's class Bytes: printable characters as they are, all others as \\xNN."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in data)


JAVA_DESERIALIZERS: dict[str, Decoder] = {
    f"{_PACKAGE}StringDeserializer": _text,
    f"{_PACKAGE}LongDeserializer": _number("q", "Long"),
    f"{_PACKAGE}IntegerDeserializer": _number("i", "Integer"),
    f"{_PACKAGE}ShortDeserializer": _number("h", "Short"),
    f"{_PACKAGE}DoubleDeserializer": _fraction("d", "Double"),
    f"{_PACKAGE}FloatDeserializer": _fraction("f", "Float"),
    f"{_PACKAGE}BooleanDeserializer": _boolean,
    f"{_PACKAGE}UUIDDeserializer": _text,
    f"{_PACKAGE}BytesDeserializer": _bytes,
    f"{_PACKAGE}ByteArrayDeserializer": _text,
}
JAVA_DECODERS: dict[str, Decoder] = {
    "StringDecoder": _text,
    "LongDecoder": _number("q", "Long"),
    "IntegerDecoder": _number("i", "Integer"),
    "DefaultDecoder": _text,
}


def find_text_deserializer(name: str) -> Decoder:
    """Returns the function that converts the bytes of a key or value to text.

    `name` selects the function: `text`, `json`, `msgpack`, the name of one of Kafka's deserializer classes, or
    `module:name`, which names a function `(topic, data) -> value` of the user. Raises ConfigError for any other name.
    """
    if name in JAVA_DESERIALIZERS:
        return JAVA_DESERIALIZERS[name]
    found = find_deserializer("value.deserializer", name)
    return _text if found is None else lambda data: str(found("", data))


def find_decoder(name: str) -> Decoder:
    """Returns the decoder that `name` stands for: a decoder class of kafka-dump-log, or a deserializer.

    A decoder class is named with or without its package, such as StringDecoder or
    org.apache.kafka.tools.api.StringDecoder. If `name` is not a decoder class, `find_text_deserializer` looks it up and
    raises ConfigError if it is no deserializer either.
    """
    short = name.rpartition(".")[2]
    return JAVA_DECODERS[short] if short in JAVA_DECODERS else find_text_deserializer(name)
