"""Values that name their schema in a registry (Avro, Protobuf, JSON Schema), as JSON text.

Executors need kafkapy and the library of the format (the extra `schemas`).
"""

from __future__ import annotations

import base64
import datetime
import decimal
import functools
import json
import uuid
from typing import Any

from kafkapy.client.schema import AvroDeserializer, JsonDeserializer, ProtobufDeserializer, RegistryClient
from kafkapy.client.schema.errors import RegistryFailure, SchemaMismatch, WrongFrame

FORMATS = ("avro", "protobuf", "json-schema")
_NOT_FOUND = 404


class Decoder:
    """Decodes values by the schemas that they name. Any thread."""

    def __init__(self, registry: RegistryClient, form: str) -> None:
        """Creates a decoder of values of the format `form`: avro, protobuf or json-schema."""
        kinds: dict[str, Any] = {
            "avro": AvroDeserializer, "protobuf": ProtobufDeserializer, "json-schema": JsonDeserializer,
        }  # fmt: skip
        self._deserialize = kinds[form](registry)

    def decode(self, value: bytes | None) -> tuple[str | None, str | None]:
        """Returns (JSON text, None), or (None, the reason) if the value cannot be decoded; (None, None) for None.

        Raises RegistryFailure if the registry cannot be reached: then no value can be decoded.
        """
        if value is None:
            return None, None
        try:
            return _as_json(self._deserialize("", bytes(value))), None
        except (WrongFrame, SchemaMismatch) as error:
            return None, str(error)
        except RegistryFailure as error:
            if error.status != _NOT_FOUND:
                raise
            return None, f"the registry does not have the schema: {error}"


def _as_json(value: Any) -> str:
    if hasattr(value, "DESCRIPTOR"):  # a message of Protobuf
        from google.protobuf.json_format import MessageToDict

        value = MessageToDict(value, preserving_proto_field_name=True)
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """Returns a value that JSON lacks as text: times in ISO 8601, bytes in Base64."""
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    raise SchemaMismatch(f"{type(value).__name__} cannot be represented in JSON")


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
