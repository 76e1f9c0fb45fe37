"""The common parts of confluent-kafka's serializers and deserializers."""

from __future__ import annotations

import io
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar

from kafkapy.client.schema import model
from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.errors import RegistryFailure, SchemaMismatch, WrongFrame
from kafkapy.client.schema.serde import CACHE_SIZE, SchemaSerializer
from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._model import RegisteredSchema, RuleMode, Schema
from kafkapy.compat.confluent_kafka.schema_registry._rule_execution import Operation, has_rules
from kafkapy.compat.confluent_kafka.schema_registry._rules import (
    FieldTransformer,
    RulePhase,
    clear_original_key,
    set_original_key,
)
from kafkapy.compat.confluent_kafka.schema_registry._schema_id import SchemaId
from kafkapy.compat.confluent_kafka.schema_registry._settings import DESERIALIZER, SERIALIZER, settings
from kafkapy.compat.confluent_kafka.schema_registry._subjects import (
    STRATEGY_TYPE_MAP,
    AssociatedNameStrategy,
    AsyncAssociatedNameStrategy,
    SubjectNameStrategyType,
    strategy_type,
)
from kafkapy.compat.confluent_kafka.schema_registry._validation import (
    ValidationRuleError,
    ValidationRuleExecutor,
    ValidationRulesExecution,
    refuse,
)
from kafkapy.compat.confluent_kafka.schema_registry.error import SchemaRegistryError
from kafkapy.compat.confluent_kafka.schema_registry.rule_registry import RuleRegistry
from kafkapy.compat.confluent_kafka.serialization import (
    Deserializer,
    MessageField,
    SerializationContext,
    SerializationError,
    Serializer,
)
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

_log = logging.getLogger(__name__)
MOST_MIGRATED_VERSIONS = 1000  # each of which is requested from the registry
_CONTEXT_MARK = ":"  # begins the name of a subject in another context of the registry


class Writing(NamedTuple):
    """The schema with which the values of a subject are serialized.

    `registered` contains the id and the rules of the schema. The rules are executed if `executes_rules` is True.
    `schema` is the same schema in the form of `kafkapy.client.schema`.
    """

    subject: str
    registered: RegisteredSchema
    schema: model.Schema
    executes_rules: bool


class Migration:
    """The conversion of values from one version of a schema to the next or the previous one, by rules.

    `rule_mode` is UPGRADE for the next version, DOWNGRADE for the previous one.
    """

    __slots__ = ("rule_mode", "source", "target")

    def __init__(self, rule_mode: RuleMode, source: RegisteredSchema | None, target: RegisteredSchema | None) -> None:
        self.rule_mode = rule_mode
        self.source = source
        self.target = target


class Reading(NamedTuple):
    """The data to deserialize, without the schema's id, and the schemas that are needed for it.

    `writer` is the schema with which the data were written, None without a registry. `latest` is the version to which
    the value is converted, None if it keeps the writer's schema; `migrations` are the steps of this conversion.
    `subject` is "" if it is not needed.
    """

    data: bytes
    schema_id: SchemaId
    subject: str
    writer: Schema | None
    latest: RegisteredSchema | None
    migrations: tuple[Migration, ...]


class BaseSerde:
    """The common base of serializers and deserializers: they name a subject, request schemas, and execute rules."""

    schema_type: ClassVar[str] = ""
    _format: ClassVar[str | None] = None  # the form of schemas that is requested from the registry

    def _set_up(
        self,
        client: SchemaRegistryClient | None,
        values: dict[str, Any],
        rule_conf: Mapping[str, Any] | None,
        rule_registry: RuleRegistry | None,
    ) -> None:
        """Stores the client, the configuration `values` that `settings` has checked, and the rules' registry.

        Configures the rules with the client's configuration and `rule_conf`. Without `rule_registry`, the global one is
        used. Raises ValueError for an invalid value.
        """
        self._client = client
        self._owns_client = False
        self._values = values
        self._use_latest: bool = values["use.latest.version"]
        self._metadata: dict[str, str] | None = values["use.latest.with.metadata"]
        self._rule_registry = RuleRegistry.get_global_instance() if rule_registry is None else rule_registry
        self._known: BoundedCache[Any, Any] = BoundedCache(CACHE_SIZE)
        self.configure_subject_name_strategy(
            values["subject.name.strategy.type"], values["subject.name.strategy.conf"], values["subject.name.strategy"]
        )
        client_conf = {} if client is None else client.config()
        for each in [*self._rule_registry.get_executors(), *self._rule_registry.get_actions()]:
            each.configure(client_conf, rule_conf or {})

    def configure_subject_name_strategy(
        self,
        subject_name_strategy_type: SubjectNameStrategyType | str | None = None,
        subject_name_strategy_conf: Mapping[str, Any] | None = None,
        subject_name_strategy: Callable[..., Any] | None = None,
    ) -> None:
        """Sets the strategy that names subjects: the given function, or else the strategy with the given name.

        The default name is ASSOCIATED; `subject_name_strategy_conf` is the configuration that the strategy receives.
        Raises ValueError for an unknown name and for a function that is not callable.
        """
        self._strategy_conf = subject_name_strategy_conf
        self._strategy: Callable[..., Any]
        if subject_name_strategy is not None:
            if not callable(subject_name_strategy):
                raise ValueError("subject.name.strategy must be callable")
            is_async = isinstance(subject_name_strategy, AsyncAssociatedNameStrategy)
            self._strategy = subject_name_strategy.blocking if is_async else subject_name_strategy  # type: ignore[attr-defined]
            return
        chosen = strategy_type("subject.name.strategy.type", subject_name_strategy_type or "ASSOCIATED")
        if chosen is SubjectNameStrategyType.NONE:
            raise ValueError("subject.name.strategy.type cannot be NONE")
        self._strategy = STRATEGY_TYPE_MAP.get(chosen) or AssociatedNameStrategy()

    def configure_validation_rules(self, conf: dict[str, Any]) -> None:
        """Removes the keys of validation rules from `conf` and applies their values.

        The keys are `validation.rules.execution`, `validation.rules.fail.fast` and `validation.rules.executor`. Raises
        ValueError for an invalid value.
        """
        chosen = conf.pop("validation.rules.execution", ValidationRulesExecution.DISABLED)
        try:
            self._validation = ValidationRulesExecution(chosen)
        except ValueError:
            names = ", ".join(ValidationRulesExecution.__members__)
            raise ValueError(f"validation.rules.execution must be one of {names}, not {chosen!r}") from None
        self._fail_fast: bool = conf.pop("validation.rules.fail.fast", False)
        if not isinstance(self._fail_fast, bool):
            raise ValueError("validation.rules.fail.fast must be a boolean value")
        executor = conf.pop("validation.rules.executor", None)
        if self._validation is not ValidationRulesExecution.DISABLED and not isinstance(
            executor, ValidationRuleExecutor
        ):
            raise ValueError("validation.rules.executor must be a ValidationRuleExecutor: kafkapy has none for CEL")
        self._validator: ValidationRuleExecutor | None = executor

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Sets `resolver` as the function that returns the id of the Kafka cluster.

        The subject name strategy ASSOCIATED calls `resolver` when it looks up a subject. With any other strategy, this
        method does nothing.
        """
        if isinstance(self._strategy, AssociatedNameStrategy):
            self._strategy.set_cluster_id_resolver(resolver)

    def own_schema_registry_client(self) -> None:
        """Makes `close` close the registry's client too."""
        self._owns_client = True

    def close(self) -> None:
        """Closes the executors and actions of rules, and the schema registry's client if the serde owns it.

        Executors and actions in the global registry of rules are not closed. The serde owns the client after a call of
        `own_schema_registry_client`.
        """
        try:
            if self._rule_registry is not RuleRegistry.get_global_instance():
                for each in [*self._rule_registry.get_actions(), *self._rule_registry.get_executors()]:
                    try:
                        each.close()
                    except Exception as error:  # a rule of the program may raise anything
                        _log.warning("%s could not be closed: %s", type(each).__name__, error)
        finally:
            if self._owns_client and self._client is not None:
                self._owns_client = False
                self._client.close()

    def _subject(self, ctx: SerializationContext | None, record_name: str | None) -> str | None:
        if isinstance(self._strategy, AssociatedNameStrategy):
            return self._strategy(ctx, record_name, self._client, self._strategy_conf)
        found: str | None = self._strategy(ctx, record_name)
        return found

    def _latest(self, subject: str) -> RegisteredSchema | None:
        """Returns the latest version of a subject, or its latest version with the metadata `use.latest.with.metadata`.

        Returns None if there is no registry, or if neither `use.latest.version` nor `use.latest.with.metadata` is set.
        """
        if self._client is None:
            return None
        if self._metadata is not None:
            return self._client.get_latest_with_metadata(subject, self._metadata, deleted=True, fmt=self._format)
        return self._client.get_latest_version(subject, self._format) if self._use_latest else None

    @abstractmethod
    def _fields_of(self, schema: Schema) -> tuple[Mapping[str, set[str]] | None, FieldTransformer]:
        """Returns (tags, transformer) for the fields of a schema.

        The tags are a dictionary by the full names of the fields, or None if the transformer finds the tags itself. The
        transformer is called with (context, function for a field, value), applies the function to the fields of the
        value, and returns the value.
        """

    def _transformed(self, operation: Operation, schema: Schema, value: Any) -> Any:
        """Executes the domain rules of `schema`, if it has any, for `value`, and returns the resulting value."""
        if not has_rules(schema, RulePhase.DOMAIN, operation.mode):
            return value
        tags, transformer = self._known.get_or_make(("fields", schema), lambda: self._fields_of(schema))
        return operation.execute(RulePhase.DOMAIN, value, tags, transformer)


class BaseSerializer(BaseSerde, Serializer):
    """The base of the serializers. A derived class sets `_core` and defines what depends on the schema's language.

    The languages are Avro, JSON Schema and Protobuf. `_core` serializes values without rules.
    """

    _core: SchemaSerializer
    _defaults: ClassVar[dict[str, Any]] = {}

    def _read_settings(self, conf: Mapping[str, Any] | None) -> dict[str, Any]:
        values = settings(conf, {**SERIALIZER, **self._defaults})
        self.configure_validation_rules(dict(values))
        return values

    def _core_options(self) -> dict[str, Any]:
        values = self._values
        return {"auto_register": values["auto.register.schemas"], "normalize": values["normalize.schemas"]}

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Serializes `obj` and returns the bytes: the schema's id, and the data. Returns None for None.

        Raises SerializationError if `obj` does not fit the schema or a rule fails, SchemaRegistryError if the registry
        refuses a request, and OSError if the registry cannot be reached.
        """
        try:
            return None if obj is None else self.write(obj, ctx, self.writing(ctx))
        finally:
            remember_key(ctx, obj)

    def known_writing(self, ctx: SerializationContext | None) -> Writing | None:
        """Returns the result of `writing` if it is cached; None if `writing` may have to send requests."""
        found: Writing | None = self._known.get(_place(ctx))
        return found

    def writing(self, ctx: SerializationContext | None) -> Writing:
        """Returns the schema with which to serialize values; looks it up or registers it first if it is not cached.

        May block.
        """
        found = self.known_writing(ctx)
        if found is not None:
            return found
        with translated():
            subject = self._subject(ctx, self._core.record_name() or None)
        if not subject:
            raise SerializationError("the strategy has named no subject for the schema")
        latest = self._latest(subject)
        if latest is not None:
            key = (subject, latest.schema_id, latest.version)
            found = self._known.get(key)
            return found or self._remembered(key, Writing(subject, latest, latest.schema.as_model(), True))
        return self._remembered(_place(ctx), self._fixed(subject))

    def _remembered(self, key: Any, writing: Writing) -> Writing:
        self._known.put(key, writing)
        return writing

    def _fixed(self, subject: str) -> Writing:
        """Returns the schema to serialize with: the one with the id `use.schema.id`, or else the constructor's schema.

        The constructor's schema is registered if `auto.register.schemas` is set; otherwise it is only looked up in the
        registry.
        """
        assert self._client is not None
        schema_id = self._values["use.schema.id"]
        if schema_id is not None:
            schema = self._client.get_schema(schema_id, subject, self._format)
            registered = self._client.lookup_schema(subject, schema, deleted=True)
            return Writing(subject, registered, schema.as_model(), True)
        with translated():
            own = self._core.own_schema()
        given, normalizes = Schema.from_model(own), self._values["normalize.schemas"]
        if self._values["auto.register.schemas"]:
            registered = self._client.register_schema_full_response(subject, given, normalizes)
        else:
            registered = self._client.lookup_schema(subject, given, normalizes)
        return Writing(subject, registered, own, False)

    def write(self, obj: Any, ctx: SerializationContext | None, writing: Writing) -> bytes:
        """Serializes `obj` with the schema `writing`, and returns the schema's id and the data. Sends no requests.

        Executes the validation rules and the rules of the schema, if they are enabled.
        """
        registered, phase = writing.registered, self._validation
        value = self._to_value(obj, ctx)
        operation = Operation(self._rule_registry, RuleMode.WRITE, ctx, writing.subject, registered.schema, value)
        if phase is ValidationRulesExecution.BEFORE_DOMAIN_RULES:
            refuse(self._violations(writing.schema, value))
        if writing.executes_rules:
            value = self._transformed(operation, registered.schema, value)
        if phase is ValidationRulesExecution.AFTER_DOMAIN_RULES:
            refuse(self._violations(writing.schema, value))
        with translated():
            data = self._core.serialize(value, writing.schema)
        if writing.executes_rules:
            data = operation.execute(RulePhase.ENCODING, data)
        schema_id = SchemaId(self.schema_type, registered.schema_id, registered.guid, self._message_indexes())
        framed: bytes = self._values["schema.id.serializer"](data, ctx, schema_id)
        return framed

    def _to_value(self, obj: Any, ctx: SerializationContext | None) -> Any:
        """Converts an application's object to the value that is serialized.

        The base class returns the object itself.
        """
        return obj

    def _message_indexes(self) -> list[int] | None:
        return None

    @abstractmethod
    def _violations(self, schema: model.Schema, value: Any) -> list[ValidationRuleError]:
        """Returns the violations of a schema's validation rules by a value."""


class BaseDeserializer(BaseSerde, Deserializer):
    """The base of the deserializers. A derived class defines what depends on the schema's language.

    The languages are Avro, JSON Schema and Protobuf.
    """

    _defaults: ClassVar[dict[str, Any]] = {}

    def _read_settings(self, conf: Mapping[str, Any] | None) -> dict[str, Any]:
        return settings(conf, {**DESERIALIZER, **self._defaults})

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Deserializes `value`, which is the schema's id and the data; returns the object, or None for None.

        Raises SerializationError if the data do not fit the schema or a rule fails, SchemaRegistryError if the registry
        refuses a request, and OSError if the registry cannot be reached.
        """
        try:
            return None if value is None else self.read(ctx, self.reading(value, ctx), value)
        finally:
            remember_key(ctx, value)

    def reading(self, data: bytes, ctx: SerializationContext | None) -> Reading:
        """Removes the schema's id from `data`, and returns the rest with the schemas to read it with.

        May send requests.
        """
        schema_id = SchemaId(self.schema_type)
        payload = self._values["schema.id.deserializer"](data, ctx, schema_id)
        if isinstance(payload, io.BytesIO):
            payload = payload.read()
        if self._client is None:
            return Reading(payload, schema_id, "", None, None, ())
        is_associated = isinstance(self._strategy, AssociatedNameStrategy)
        subject = None if ctx is None or is_associated else self._subject(ctx, None)
        writer = self._writer(schema_id, subject)
        uses_latest = self._use_latest or self._metadata is not None
        if not uses_latest and (writer.rule_set is None or not _has_rules_for_reading(writer)):
            return Reading(payload, schema_id, "", writer, None, ())
        subject = subject or (None if ctx is None else self._subject(ctx, self._record_name(writer, schema_id) or None))
        if not subject:
            return Reading(payload, schema_id, "", writer, None, ())
        latest = self._latest(subject)
        migrations = () if latest is None else self._migrations(subject, writer, latest)
        return Reading(payload, schema_id, subject, writer, latest, migrations)

    def _writer(self, schema_id: SchemaId, subject: str | None) -> Schema:
        assert self._client is not None
        if schema_id.id is None:
            return self._client.get_schema_by_guid(str(schema_id.guid), self._format)
        place = subject if subject is not None and subject.startswith(_CONTEXT_MARK) else None
        key = (schema_id.id, place)
        found: Schema | None = self._known.get(key)
        if found is None:
            found = self._known.put(key, self._client.get_schema(schema_id.id, place, self._format))
        return found

    def _migrations(self, subject: str, writer: Schema, latest: RegisteredSchema) -> tuple[Migration, ...]:
        """Returns the conversions from the version with the schema `writer` to the version `latest`, in their order.

        Versions without migration rules need no conversion. Raises SerializationError if there are too many versions
        between `writer` and `latest`.
        """
        assert self._client is not None
        key = ("migrations", subject, writer, latest.version)
        found: tuple[Migration, ...] | None = self._known.get(key)
        if found is None:
            source = self._client.lookup_schema(subject, writer, deleted=True)
            first, last = sorted((source.version or 0, latest.version or 0))
            if last - first > MOST_MIGRATED_VERSIONS:
                raise SerializationError(f"{last - first} versions are more than {MOST_MIGRATED_VERSIONS} to migrate")
            ends = {source.version: source, latest.version: latest}
            versions = [
                ends.get(number) or self._client.get_version(subject, number, deleted=True, fmt=self._format)
                for number in range(first, last + 1)
            ]
            is_upgrade = source.version == first
            mode = RuleMode.UPGRADE if is_upgrade else RuleMode.DOWNGRADE
            steps = [
                Migration(mode, *((before, after) if is_upgrade else (after, before)))
                for before, after in pairwise(versions)
                if has_rules(after.schema, RulePhase.MIGRATION, mode)
            ]
            found = self._known.put(key, tuple(steps if is_upgrade else steps[::-1]))
        return found

    def read(self, ctx: SerializationContext | None, reading: Reading, original: bytes) -> Any:
        """Deserializes `reading.data` and returns the resulting object. Sends no requests.

        `original` has all bytes of the key or value, including the schema's id.
        """
        data, writer = reading.data, reading.writer
        if writer is not None and reading.subject:
            operation = Operation(self._rule_registry, RuleMode.READ, ctx, reading.subject, writer, original)
            data = operation.execute(RulePhase.ENCODING, data)
        reader = self._reader(reading)
        with translated():
            value = self._decoded(data, reading, lambda each: self._migrated(each, ctx, reading))
        if reader is not None and reading.subject:
            operation = Operation(self._rule_registry, RuleMode.READ, ctx, reading.subject, reader, original)
            value = self._transformed(operation, reader, value)
        with translated():
            self._check(value, reader)
        return self._from_value(value, ctx)

    def _reader(self, reading: Reading) -> Schema | None:
        """Returns the schema of the deserialized values: `reading.latest`, or the schema of the data if that is None.

        The deserializers for Avro and JSON use the schema that was given to the constructor, if any, instead of the
        schema of the data. Returns None if no schema is known, because the deserializer has no registry.
        """
        return reading.writer if reading.latest is None else reading.latest.schema

    def _migrated(self, value: Any, ctx: SerializationContext | None, reading: Reading) -> Any:
        """Returns `value` after all migrations in `reading`; `value` has the schema of the data."""
        for step in reading.migrations:
            assert step.source is not None and step.target is not None
            operation = Operation(
                *(self._rule_registry, step.rule_mode, ctx, reading.subject, step.target.schema, value),
                step.source.schema,
            )
            value = operation.execute(RulePhase.MIGRATION, value)
        return value

    def _record_name(self, writer: Schema, schema_id: SchemaId) -> str:
        """Returns the full name of the type that the schema `writer` describes, or "" if the type has no name.

        The base class returns "".
        """
        return ""

    @abstractmethod
    def _decoded(self, data: bytes, reading: Reading, migrate: Callable[[Any], Any]) -> Any:
        """Decodes `data`, which have no schema id in front of them, and returns the value.

        If `reading` has migrations, the value is decoded by the schema of the data and passed to `migrate`, whose
        result is returned.
        """

    def _check(self, value: Any, reader: Schema | None) -> None:
        """Raises SchemaMismatch if a value does not fit the reader's schema. The base class checks nothing."""

    def _from_value(self, value: Any, ctx: SerializationContext | None) -> Any:
        """Converts a deserialized value to an application's object. The base class returns the value itself."""
        return value


def _has_rules_for_reading(schema: Schema) -> bool:
    return any(has_rules(schema, phase, RuleMode.READ) for phase in (RulePhase.DOMAIN, RulePhase.ENCODING))


def _place(ctx: SerializationContext | None) -> tuple[str, MessageField] | None:
    return None if ctx is None else (ctx.topic, ctx.field)


def remember_key(ctx: SerializationContext | None, value: Any) -> None:
    """Stores `value` as the key of the record if `ctx` says that it is a key, for the rules of the record's value.

    Otherwise removes the stored key, because the record is complete.
    """
    if ctx is not None and ctx.field == MessageField.KEY:
        set_original_key(value)
    else:
        clear_original_key()


@contextmanager
def translated() -> Iterator[None]:
    """Returns a context manager that converts the exceptions of `kafkapy.client.schema` to those of confluent-kafka."""
    try:
        yield
    except (SchemaMismatch, WrongFrame) as error:
        raise SerializationError(str(error)) from error
    except ConfigError as error:
        raise ValueError(str(error)) from error
    except RegistryFailure as error:
        if error.status < 0:
            raise OSError(str(error)) from error
        raise SchemaRegistryError(error.status, error.code, str(error)) from error


def given_schema(schema: str | Schema | None, kind: str) -> Schema | None:
    """Returns a schema given as text as a Schema of the type `kind`; returns a Schema or None unchanged.

    Raises TypeError for another type.
    """
    if schema is not None and not isinstance(schema, str | Schema):
        raise TypeError(f"the schema must be a str or a Schema, not a {type(schema).__name__}")
    return Schema(schema, kind) if isinstance(schema, str) else schema


def check_rules(schema: Schema | None, values: Mapping[str, Any]) -> None:
    """Raises ValueError if a schema that was given to the constructor has rules for writing.

    Rules are executed only for a schema from the registry, so that these rules would not be executed. Does nothing if
    `values`, the settings of the serializer, select a schema of the registry by `use.latest.version`,
    `use.latest.with.metadata` or `use.schema.id`.
    """
    if values["use.latest.version"] or values["use.latest.with.metadata"] is not None or values["use.schema.id"]:
        return
    for phase in (RulePhase.DOMAIN, RulePhase.ENCODING):
        if has_rules(schema, phase, RuleMode.WRITE):
            raise ValueError(
                "the rules of a given schema cannot be executed: register it, and use use.latest.version without "
                "auto.register.schemas"
            )
