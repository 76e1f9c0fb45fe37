"""The serializer and the deserializer of Protobuf messages, which use the library protobuf and the schemas of a
registry.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from kafkapy.client.schema.errors import LibraryMissing, SchemaMismatch, WrongFrame
from kafkapy.client.schema.model import PROTOBUF, Schema, SchemaReference
from kafkapy.client.schema.registry_client import RegistryClient
from kafkapy.client.schema.serde import SchemaDeserializer, SchemaSerializer
from kafkapy.client.schema.wire_format import Frame, encode_indexes

# Files that every Protobuf library has, and to which no reference is needed.
_KNOWN_FILES = ("google/protobuf/", "google/type/", "confluent/")
SERIALIZED = "serialized"


def _check_library() -> None:
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        raise LibraryMissing("protobuf") from None


def descriptor_text(file: Any) -> str:
    """Returns the schema of the file descriptor `file` as text: its FileDescriptorProto in base64."""
    return base64.b64encode(file.serialized_pb).decode()


def message_indexes(descriptor: Any) -> tuple[int, ...]:
    """Returns the path to a message within its file: the index of each enclosing message, then that of the message.

    The first index is the position of the outermost message in the file, each further one the position within the
    message before.
    """
    path: list[int] = []
    while descriptor.containing_type is not None:
        names = [each.name for each in descriptor.containing_type.nested_types]
        path.insert(0, names.index(descriptor.name))
        descriptor = descriptor.containing_type
    names = list(descriptor.file.message_types_by_name)
    return (names.index(descriptor.name), *path)


class ProtobufSerializer(SchemaSerializer):
    """Serializes messages of one generated class.

    The schema is the .proto file that defines the class. The files that it imports are registered too: under subjects
    with their names, or with the names that `reference_subject(descriptor)` returns. `skips_known` leaves out the files
    that every Protobuf library has. `options` are the keyword arguments of SchemaSerializer, such as `auto_register`.
    """

    schema_type = PROTOBUF

    def __init__(
        self,
        registry: RegistryClient,
        message_class: Any,
        *,
        reference_subject: Callable[[Any], str] | None = None,
        skips_known: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(registry, **options)
        _check_library()
        self._reference_subject = reference_subject or (lambda file: str(file.name))
        self._skips_known = skips_known
        self._message_class = message_class
        self._descriptor = message_class.DESCRIPTOR
        self._encoded_indexes = encode_indexes(message_indexes(self._descriptor))
        self._own_schema: Schema | None = None

    def own_schema(self) -> Schema:
        if self._own_schema is None:
            file = self._descriptor.file
            self._own_schema = Schema(descriptor_text(file), PROTOBUF, self._references(file))
        return self._own_schema

    def _references(self, file: Any) -> tuple[SchemaReference, ...]:
        found = []
        for each in file.dependencies:
            if self._skips_known and each.name.startswith(_KNOWN_FILES):
                continue
            subject = self._reference_subject(each)
            schema = Schema(descriptor_text(each), PROTOBUF, self._references(each))
            if self._auto_register:
                self._registry.register(subject, schema, normalize=self._normalize)
            version = self._registry.look_up(subject, schema, normalize=self._normalize).version
            found.append(SchemaReference(each.name, subject, version))
        return tuple(found)

    def record_name(self) -> str:
        return str(self._descriptor.full_name)

    def indexes(self) -> bytes:
        return self._encoded_indexes

    def serialize(self, value: Any, schema: Schema) -> bytes:
        if not isinstance(value, self._message_class):
            raise SchemaMismatch(f"a {type(value).__name__} is not a message of {self._descriptor.full_name}")
        try:
            data: bytes = value.SerializeToString()
        except Exception as error:  # EncodeError, which the library derives from Exception
            raise SchemaMismatch(f"the message cannot be serialized: {error}") from error
        return data


class ProtobufDeserializer(SchemaDeserializer):
    """Deserializes Protobuf messages.

    With `message_class` the data are parsed as messages of this class, without asking the registry. Without it the
    class is made from the descriptor of the schema, which the registry returns. If the registry has the schema as a
    text, and cannot convert it to a descriptor, a call raises SchemaMismatch.
    """

    has_indexes = True
    format = SERIALIZED

    def __init__(self, registry: RegistryClient, message_class: Any = None, *, is_key: bool = False) -> None:
        super().__init__(registry, is_key=is_key)
        _check_library()
        self._message_class = message_class

    def schema_of(self, frame: Frame) -> Schema:
        return Schema("", PROTOBUF) if self._message_class is not None else super().schema_of(frame)

    def parse(self, schema: Schema) -> Any:
        if self._message_class is not None:
            return self._message_class
        return file_descriptor(self._registry, schema)

    def deserialize(self, data: bytes, frame: Frame, parsed: Any) -> Any:
        from google.protobuf.message import DecodeError

        kind = parsed if self._message_class is not None else message_class_at(parsed, frame.indexes)
        try:
            return kind.FromString(memoryview(data)[frame.start :].tobytes())
        except DecodeError as error:
            raise SchemaMismatch(f"the data are not a message of their schema: {error}") from error


def file_descriptor(registry: RegistryClient, schema: Schema) -> Any:
    """Returns the descriptor of a schema's file, in a pool with the files of the schemas that it refers to.

    Raises SchemaMismatch if the registry does not have one of the schemas as a descriptor.
    """
    from google.protobuf import descriptor_pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    try:
        for name, each in registry.referred(schema, format=SERIALIZED).items():
            proto = FileDescriptorProto.FromString(base64.b64decode(each.text, validate=True))
            proto.name = name
            _add(pool, proto)
        proto = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
        proto.name = proto.name or "schema.proto"
        _add(pool, proto)
        return pool.FindFileByName(proto.name)
    except (binascii.Error, ValueError, DecodeError) as error:
        raise SchemaMismatch(
            "the registry does not have the Protobuf schema as a descriptor; give the class of the messages "
            f"to the deserializer ({error})"
        ) from error
    except (TypeError, KeyError) as error:
        raise SchemaMismatch(f"the Protobuf schema is invalid: {error}") from error


def _add(pool: Any, proto: Any) -> None:
    """Adds the file `proto`, a FileDescriptorProto, to a descriptor pool.

    Files that it imports and that the pool lacks are added before, if protobuf has them in its default pool.
    """
    from google.protobuf import descriptor_pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for name in proto.dependency:
        try:
            pool.FindFileByName(name)
        except KeyError:
            known = FileDescriptorProto.FromString(_known_file(descriptor_pool.Default(), name).serialized_pb)
            _add(pool, known)
    pool.AddSerializedFile(proto.SerializeToString())


def _known_file(pool: Any, name: str) -> Any:
    from importlib import import_module

    try:
        return pool.FindFileByName(name)
    except KeyError:
        if name.startswith("google/protobuf/"):
            import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        return pool.FindFileByName(name)


def message_class_at(file: Any, indexes: tuple[int, ...]) -> Any:
    """Returns the class of the message at the path `indexes` in a file.

    The path has the index of each enclosing message, followed by the message's own index. Raises WrongFrame if the file
    has no such message.
    """
    from google.protobuf.message_factory import GetMessageClass

    try:
        messages = list(file.message_types_by_name.values())
        descriptor = messages[indexes[0]]
        for each in indexes[1:]:
            descriptor = descriptor.nested_types[each]
    except IndexError:
        raise WrongFrame(f"the schema has no message with the indexes {list(indexes)}") from None
    return GetMessageClass(descriptor)
