"""The interfaces of data contracts' rules: executors, actions, and the context in which a rule is executed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from enum import Enum
from typing import Any

from kafkapy.compat.confluent_kafka.schema_registry._model import Rule, RuleKind, RuleMode, Schema
from kafkapy.compat.confluent_kafka.schema_registry.wildcard_matcher import wildcard_match
from kafkapy.compat.confluent_kafka.serialization import SerializationContext, SerializationError

# The headers of a record in a dead letter queue, which name the rule that has failed.
DLQ_HEADER_PREFIX = "__rule."
DLQ_RULE_NAME_HEADER = f"{DLQ_HEADER_PREFIX}name"
DLQ_RULE_MODE_HEADER = f"{DLQ_HEADER_PREFIX}mode"
DLQ_RULE_SUBJECT_HEADER = f"{DLQ_HEADER_PREFIX}subject"
DLQ_RULE_TOPIC_HEADER = f"{DLQ_HEADER_PREFIX}topic"
DLQ_RULE_EXCEPTION_HEADER = f"{DLQ_HEADER_PREFIX}exception"

_key_of_record: ContextVar[Any] = ContextVar("kafkapy_key_of_record", default=None)


def set_original_key(key: Any) -> None:
    """Stores the key of the record whose value is serialized or deserialized next by this thread or asyncio task."""
    _key_of_record.set(key)


def get_original_key() -> Any:
    """Returns the key of the record whose value is serialized or deserialized now, or None if it is not known."""
    return _key_of_record.get()


def clear_original_key() -> None:
    """Removes the stored key of the record."""
    _key_of_record.set(None)


class RulePhase(str, Enum):  # noqa: UP042 - the base that confluent-kafka has
    """The phases in which the rules of a rule set are executed: migration, domain and encoding."""

    MIGRATION = "MIGRATION"
    DOMAIN = "DOMAIN"
    ENCODING = "ENCODING"


class FieldType(str, Enum):  # noqa: UP042 - the base that confluent-kafka has
    """The types of fields in Avro, JSON Schema and Protobuf."""

    RECORD = "RECORD"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    MAP = "MAP"
    COMBINED = "COMBINED"
    FIXED = "FIXED"
    STRING = "STRING"
    BYTES = "BYTES"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    NULL = "NULL"


_NOT_PRIMITIVE = frozenset(
    (FieldType.RECORD, FieldType.ENUM, FieldType.ARRAY, FieldType.MAP, FieldType.COMBINED, FieldType.FIXED)
)


class FieldContext:
    """The field to which a rule is applied: the message that contains it, its names, type and tags.

    `field_descriptor` is the descriptor of a Protobuf field, or None.
    """

    __slots__ = ("containing_message", "field_descriptor", "field_type", "full_name", "name", "tags")

    def __init__(
        self,
        containing_message: Any,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str],
        field_descriptor: Any = None,
    ) -> None:
        self.containing_message = containing_message
        self.full_name = full_name
        self.name = name
        self.field_type = field_type
        self.tags = tags
        self.field_descriptor = field_descriptor

    def is_primitive(self) -> bool:
        """Returns whether the field has a primitive type."""
        return self.field_type not in _NOT_PRIMITIVE

    def type_name(self) -> str:
        """Returns the name of the field's type."""
        return self.field_type.name


class RuleContext:
    """The arguments of a rule's execution: the rule, the schemas, and the topic and field of the value.

    In a migration, `source` is the schema before it and `target` the schema after it; otherwise `target` is the schema.
    `index` is the position of the rule in `rules`. `inline_tags` maps the full names of fields to their tags.
    """

    __slots__ = (
        *("_fields", "enabled_env", "field_transformer", "index", "inline_tags", "original_key", "original_value"),
        *("rule", "rule_mode", "rules", "ser_ctx", "source", "subject", "target"),
    )

    def __init__(
        self,
        enabled_env: str | None,
        ser_ctx: SerializationContext | None,
        source: Schema | None,
        target: Schema | None,
        subject: str,
        rule_mode: RuleMode,
        rule: Rule,
        index: int,
        rules: list[Rule],
        inline_tags: Mapping[str, set[str]] | None,
        field_transformer: FieldTransformer | None,
        original_key: Any = None,
        original_value: Any = None,
    ) -> None:
        self.enabled_env = enabled_env
        self.ser_ctx = ser_ctx
        self.source = source
        self.target = target
        self.subject = subject
        self.rule_mode = rule_mode
        self.rule = rule
        self.index = index
        self.rules = rules
        self.inline_tags = inline_tags
        self.field_transformer = field_transformer
        self.original_key = original_key
        self.original_value = original_value
        self._fields: list[FieldContext] = []

    def get_parameter(self, name: str) -> str | None:
        """Returns a parameter of the rule, or else the property of the schema's metadata with this name.

        Returns None if neither exists.
        """
        own = None if self.rule.params is None else self.rule.params.params.get(name)
        if own is not None:
            return own
        metadata = None if self.target is None else self.target.metadata
        return None if metadata is None or metadata.properties is None else metadata.properties.properties.get(name)

    def current_field(self) -> FieldContext | None:
        """Returns the innermost field that was entered by `enter_field` and not left; None if there is none."""
        return self._fields[-1] if self._fields else None

    def enter_field(
        self,
        containing_message: Any,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str] | None,
        field_descriptor: Any = None,
    ) -> FieldContext:
        """Makes a field the current one until `exit_field` is called, and returns the field's FieldContext.

        `tags` are the tags that the schema has at the field. If `tags` is None, the tags that `inline_tags` has for
        `full_name` are used instead. The FieldContext contains these tags and the tags that the schema's metadata has
        for the field.
        """
        own = tags if tags is not None else (self.inline_tags or {}).get(full_name, set())
        all_tags = own | self.get_tags(full_name)
        found = FieldContext(containing_message, full_name, name, field_type, all_tags, field_descriptor)
        self._fields.append(found)
        return found

    def exit_field(self) -> None:
        """Leaves the current field; the field entered before becomes the current one again."""
        if self._fields:
            self._fields.pop()

    def get_tags(self, full_name: str) -> set[str]:
        """Returns the tags that the schema's metadata has for a field.

        The keys of the tags in the metadata are patterns with wildcards; `full_name` is matched with each pattern.
        """
        metadata = None if self.target is None else self.target.metadata
        if metadata is None or metadata.tags is None:
            return set()
        listed = metadata.tags.tags.items()
        return {tag for pattern, tags in listed if wildcard_match(full_name, pattern) for tag in tags}

    def applies_to(self, field: FieldContext) -> bool:
        """Returns whether the rule applies to a field: the rule has no tags, or the field has at least one of them."""
        return not self.rule.tags or not field.tags.isdisjoint(self.rule.tags)


# Returns the new value of a field.
FieldTransform = Callable[[RuleContext, FieldContext, Any], Any]
# Applies a FieldTransform to the fields of a message, and returns the message.
FieldTransformer = Callable[[RuleContext, FieldTransform, Any], Any]


class RuleBase(ABC):
    """The common base of rule executors and rule actions."""

    def configure(self, client_conf: Mapping[str, Any], rule_conf: Mapping[str, Any]) -> None:  # noqa: B027 - optional
        """Receives the configuration of the registry's client, and that of the rules."""

    @abstractmethod
    def type(self) -> str:
        """Returns the name by which a rule selects the executor or the action."""

    def close(self) -> None:  # noqa: B027 - optional
        """Releases the resources of the executor or the action. Does nothing unless a derived class defines it."""


class RuleExecutor(RuleBase):
    """Executes the rules of one type."""

    @abstractmethod
    def transform(self, ctx: RuleContext, message: Any) -> Any:
        """Executes the rule `ctx.rule` for a message.

        Returns the new message if the rule is a transform. Returns whether the message fulfils the rule if it is a
        condition.
        """


class FieldRuleExecutor(RuleExecutor):
    """Executes the rules of one type for each field that has a tag of the rule."""

    @abstractmethod
    def new_transform(self, ctx: RuleContext) -> FieldTransform:
        """Returns the function `(context, field, value) -> new value` that the rule applies to each field."""

    def transform(self, ctx: RuleContext, message: Any) -> Any:
        """Applies the rule `ctx.rule` to the fields of a message, and returns the message.

        If `ctx.rules` has several transforms with the same mode, type and tags, only one of them is applied: the first
        one for writing and upgrades, the last one for reading and downgrades. For every other one, this method returns
        `message` unchanged. Raises RuleError if `ctx` has no function that applies a transform to fields.
        """
        if ctx.rule_mode in (RuleMode.WRITE, RuleMode.UPGRADE):
            others = ctx.rules[: ctx.index]
        elif ctx.rule_mode in (RuleMode.READ, RuleMode.DOWNGRADE):
            others = ctx.rules[ctx.index + 1 :]
        else:
            others = []
        if any(self.are_transforms_with_same_tag(ctx.rule, each) for each in others):
            return message
        if ctx.field_transformer is None:
            raise RuleError(f"the rule {ctx.rule.name} is for fields, which this phase does not have")
        return ctx.field_transformer(ctx, self.new_transform(ctx), message)

    @staticmethod
    def are_transforms_with_same_tag(rule1: Rule, rule2: Rule) -> bool:
        """Returns whether two rules are transforms with the same mode, type and tags, and have at least one tag."""
        first, second = ((each.kind, each.mode, each.type, each.tags) for each in (rule1, rule2))
        return bool(rule1.tags) and rule1.kind == RuleKind.TRANSFORM and first == second


class RuleAction(RuleBase):
    """An action that follows the execution of a rule."""

    @abstractmethod
    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:
        """Performs the action after a rule; `message` is the rule's result, `ex` its error (None after a success)."""


class ErrorAction(RuleAction):
    """The action with the name ERROR, which makes the serialization or deserialization fail."""

    def type(self) -> str:
        return "ERROR"

    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:
        """Raises SerializationError with the cause `ex`.

        The text of the error is the text of `ex` or, if `ex` is None, names the rule.
        """
        raise SerializationError(str(ex) if ex is not None else f"the rule {ctx.rule.name} has failed") from ex


class NoneAction(RuleAction):
    """The action with the name NONE, which does nothing."""

    def type(self) -> str:
        return "NONE"

    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:
        """Does nothing."""


class RuleError(Exception):
    """A rule could not be executed."""


class RuleConditionError(RuleError):
    """A message does not fulfil a condition."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(self.error_message(rule))

    @staticmethod
    def error_message(rule: Rule) -> str:
        """Returns the text for a rule that has failed: its `doc`, or else its expression, or else its name."""
        return rule.doc or (f"Rule expr failed: {rule.expr}" if rule.expr else f"Rule failed: {rule.name}")
