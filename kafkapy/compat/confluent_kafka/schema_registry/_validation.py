"""The validation rules that a schema has at its records and fields, as the property `confluent:rules`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafkapy.compat.confluent_kafka.schema_registry._rules import RuleError
from kafkapy.compat.confluent_kafka.serialization import SerializationError

VALIDATION_RULES_PROP = "confluent:rules"


class ValidationRulesExecution(str, Enum):  # noqa: UP042 - the base that confluent-kafka has
    """The time at which a schema's validation rules are executed: never, before its domain rules, or after them.

    Domain rules are the rules of the schema's rule set (`RuleSet.domain_rules`) that check or transform values.
    """

    DISABLED = "DISABLED"
    BEFORE_DOMAIN_RULES = "BEFORE_DOMAIN_RULES"
    AFTER_DOMAIN_RULES = "AFTER_DOMAIN_RULES"


@dataclass(unsafe_hash=True, slots=True)
class ValidationRule:
    """A condition for the values of a record or of a field."""

    name: str | None = None
    doc: str | None = None
    expr: str | None = None
    sql: str | None = None


@dataclass(slots=True)
class ValidationRuleError:
    """A violation of a validation rule by a value, or a rule that could not be executed (`cause`).

    `field_path` is the path of the value in the message.
    """

    rule: ValidationRule
    field_path: str | None = None
    message: str | None = None
    cause: Exception | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValidationRuleError) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.rule, self.field_path, self.message

    def __str__(self) -> str:
        detail = self.message or self.rule.doc or self.rule.sql or self.rule.expr
        reason = "" if self.cause is None else f" (caused by: {self.cause})"
        return f"{self.field_path or '<root>'}: {self.rule.name or 'unnamed'}: {detail}{reason}"


class ValidationRuleExecutor(ABC):
    """Executes validation rules."""

    @abstractmethod
    def execute(self, rule: ValidationRule, schema: Any, message: Any) -> Any:
        """Returns True if the value `message` fulfils a rule, otherwise False.

        May instead return a text: "" if the value fulfils the rule, otherwise the reason why it does not. Raises
        RuleError for a rule that cannot be executed.
        """


def parse_validation_rules(prop_value: Any) -> list[ValidationRule]:
    """Returns the rules in `prop_value`, the property `confluent:rules` of a schema.

    Skips elements that are not objects.
    """
    listed = prop_value if isinstance(prop_value, list) else []
    names = ("name", "doc", "expr", "sql")
    return [ValidationRule(*map(each.get, names)) for each in listed if isinstance(each, Mapping)]


def evaluate_validation_rule(
    executor: ValidationRuleExecutor,
    rule: ValidationRule,
    schema: Any,
    value: Any,
    path: str,
    out: list[ValidationRuleError],
) -> None:
    """Executes a rule for a value, and appends a ValidationRuleError to `out` if the value violates the rule.

    Also appends one, with its `cause`, if the executor raises RuleError because it cannot execute the rule. `schema` is
    the value's schema, and `path` the value's path in the message. Raises SerializationError if the executor's result
    is neither a bool nor a text.
    """
    out.extend(_errors(executor, rule, schema, value, path))


def rule_errors(
    executor: ValidationRuleExecutor, owner: Any, schema: Any, value: Any, path: str
) -> Iterator[ValidationRuleError]:
    """Executes the validation rules in `owner` for a value, and yields the violations.

    `owner` is a schema or a field of a schema. `schema` is the value's schema, and `path` the value's path in the
    message.
    """
    for rule in parse_validation_rules(owner.get(VALIDATION_RULES_PROP) if isinstance(owner, Mapping) else None):
        yield from _errors(executor, rule, schema, value, path)


def _errors(
    executor: ValidationRuleExecutor, rule: ValidationRule, schema: Any, value: Any, path: str
) -> Iterator[ValidationRuleError]:
    try:
        result = executor.execute(rule, schema, value)
    except RuleError as error:
        yield ValidationRuleError(rule, path, None, error)
        return
    if not isinstance(result, bool | str):
        raise SerializationError(f"the validation rule {rule.name} has returned a {type(result).__name__}")
    if result is False or (isinstance(result, str) and result):
        yield ValidationRuleError(rule, path, result or None)


def collected(errors: Iterator[ValidationRuleError], fail_fast: bool) -> list[ValidationRuleError]:
    """Returns all errors as a list; if `fail_fast`, at most the first one, and stops the iteration there."""
    if not fail_fast:
        return list(errors)
    first = next(errors, None)
    return [] if first is None else [first]


def refuse(violations: list[ValidationRuleError]) -> None:
    """Raises SerializationError, whose text lists the violations, unless the list is empty."""
    if violations:
        head = f"Validation rule failed ({len(violations)} violation{'s' * (len(violations) > 1)}):"
        raise SerializationError("\n".join([head, *(f"  - {each}" for each in violations)]))
