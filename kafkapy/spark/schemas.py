"""Values that name their schema in a registry (Avro, Protobuf, JSON Schema), as JSON text.

Executors need kafkapy and the library of the format (the extra `schemas`).
"""

from __future__ import annotations

import base64
import datetime
import decimal
import functools
import json
import math
import uuid
from typing import Any

from kafkapy.client.schema import AvroDeserializer, JsonDeserializer, ProtobufDeserializer, RegistryClient
from kafkapy.client.schema.errors import RegistryFailure, SchemaMismatch, WrongFrame

FORMATS = ("avro", "protobuf", "json-schema")
_NOT_FOUND = 404


class Decoder:
    """Decodes values by the schemas that they name. Any thread may use the object."""

    def __init__(self, registry: RegistryClient, form: str) -> None:
        """Creates a decoder of values of the format `form`: avro, protobuf or json-schema."""
        kinds: dict[str, Any] = {
            "avro": AvroDeserializer, "protobuf": ProtobufDeserializer, "json-schema": JsonDeserializer,
        }  # fmt: skip
        self._deserialize = kinds[form](registry)
        self._has_nan = form == "avro"  # JSON itself has no such number, although Python's parser accepts it

    def decode(self, value: bytes | None) -> tuple[str | None, str | None]:
        """Returns (JSON text, None), or (None, the reason) if the value cannot be decoded; (None, None) for None.

        Raises RegistryFailure if the registry cannot be reached, or refuses a request other than for a missing schema.
        """
        if value is None:
            return None, None
        try:
            return _as_json(self._deserialize("", bytes(value)), has_nan=self._has_nan), None
        except (WrongFrame, SchemaMismatch) as error:
            return None, str(error)
        except RegistryFailure as error:
            if error.status != _NOT_FOUND:
                raise
            return None, f"the registry does not have the schema: {error}"


def _as_json(value: Any, *, has_nan: bool) -> str:
    """Returns a decoded value as JSON text. Raises SchemaMismatch if the value cannot be represented in JSON.

    If `has_nan` is True, numbers that JSON lacks become the texts NaN, Infinity and -Infinity, as in Protobuf's JSON.
    """
    try:
        if hasattr(value, "DESCRIPTOR"):  # a message of Protobuf
            from google.protobuf.json_format import MessageToDict

            value = MessageToDict(value, preserving_proto_field_name=True)
        elif has_nan:
            value = _with_names_of_numbers(value)
        text = json.dumps(value, ensure_ascii=False, default=_plain, allow_nan=False)
        text.encode()  # half of a surrogate pair, which JSON can escape, is no text for Spark
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaMismatch(f"the value cannot be represented in JSON: {error}") from None
    return text


def _with_names_of_numbers(value: Any) -> Any:
    """Returns a decoded Avro value in which the numbers NaN, Infinity and -Infinity are replaced with texts of these
    names."""
    if isinstance(value, dict):
        return {name: _with_names_of_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_names_of_numbers(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: Any) -> Any:
    """Returns the text for a value whose type JSON lacks: times in ISO 8601, bytes in Base64, decimals and UUIDs.

    Raises TypeError for any other type.
    """
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    raise TypeError(f"it contains a {type(value).__name__}")


@functools.cache
def decoder(url: str, form: str) -> Decoder:
    """Returns the decoder of this process for the registry at `url` and values of the format `form`, one of FORMATS.

    The decoder keeps its connections and the schemas that it has retrieved.
    """
    return Decoder(RegistryClient(url), form)


def registry_text(column: Any, url: str, form: str) -> Any:
    """Returns a column with the struct (text, error) of each value: JSON text, or why the value cannot be decoded.

    `url` is the address of the schema registry, and `form` is avro, protobuf or json-schema.
    """
    from pyspark.sql import functions

    def decode(value: bytes | None) -> tuple[str | None, str | None]:
        from kafkapy.spark.schemas import decoder

        return decoder(url, form).decode(value)

    return functions.udf(decode, "text string, error string", useArrow=False)(column)
