"""The execution of data contracts' rules when a value is serialized or deserialized."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kafkapy.compat.confluent_kafka.schema_registry._model import Rule, RuleKind, RuleMode, RuleSet, Schema
from kafkapy.compat.confluent_kafka.schema_registry._rules import (
    DLQ_RULE_NAME_HEADER,
    ErrorAction,
    FieldTransformer,
    NoneAction,
    RuleAction,
    RuleConditionError,
    RuleContext,
    RuleError,
    RulePhase,
    get_original_key,
)
from kafkapy.compat.confluent_kafka.schema_registry.rule_registry import RuleRegistry
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

_log = logging.getLogger(__name__)
# The mode of a rule -> the operations to which it applies.
_OPERATIONS: dict[RuleMode, frozenset[RuleMode]] = {
    RuleMode.WRITEREAD: frozenset((RuleMode.WRITE, RuleMode.READ)),
    RuleMode.UPDOWN: frozenset((RuleMode.UPGRADE, RuleMode.DOWNGRADE)),
}
_FIRST_OPERATIONS = (RuleMode.WRITE, RuleMode.UPGRADE)
_ENVIRONMENTS = ("ALL", "CLIENT")  # of the rule sets that a client executes


def has_rules(schema: Schema | None, phase: RulePhase, mode: RuleMode) -> bool:
    """Returns whether a schema has a rule of the phase `phase` that applies to the operation `mode`."""
    return any(_applies(rule, mode) for rule in _rules_of(None if schema is None else schema.rule_set, phase))


def _rules_of(rule_set: RuleSet | None, phase: RulePhase) -> list[Rule]:
    if rule_set is None:
        return []
    if phase is RulePhase.MIGRATION:
        return rule_set.migration_rules or []
    return (rule_set.encoding_rules if phase is RulePhase.ENCODING else rule_set.domain_rules) or []


def _applies(rule: Rule, mode: RuleMode) -> bool:
    return rule.mode is not None and (rule.mode == mode or mode in _OPERATIONS.get(rule.mode, ()))


class Operation:
    """The serialization, deserialization or migration (`mode`) of one value, for which rules are executed.

    `place` names the topic and the field of the record. `original` is the value before all rules. In a migration,
    `source` is the schema before it and `target` the schema after it; otherwise `source` is None and `target` is the
    schema.
    """

    __slots__ = ("_original", "_place", "_registry", "_source", "_subject", "_target", "mode")

    def __init__(
        self,
        registry: RuleRegistry,
        mode: RuleMode,
        place: SerializationContext | None,
        subject: str,
        target: Schema,
        original: Any,
        source: Schema | None = None,
    ) -> None:
        self.mode = mode
        self._registry = registry
        self._place = place
        self._subject = subject
        self._target = target
        self._source = source
        self._original = original

    def execute(
        self,
        phase: RulePhase,
        message: Any,
        inline_tags: Mapping[str, set[str]] | None = None,
        field_transformer: FieldTransformer | None = None,
    ) -> Any:
        """Executes the rules of a phase one after another, and returns the resulting message.

        The order is that of the rule set; the modes READ and DOWNGRADE reverse it. `inline_tags` are the tags of the
        fields by full name; `field_transformer(context, transform, message)` applies a transform to the fields of a
        message. Only rules for fields need them. Raises SerializationError if a rule fails and its action is ERROR, and
        RuleError if a rule names an unknown action.
        """
        governing = self._source if self.mode == RuleMode.DOWNGRADE else self._target
        rule_set = None if governing is None else governing.rule_set
        rules = _rules_of(rule_set, phase)
        if rule_set is None or not rules or message is None:
            return message
        if self.mode in (RuleMode.READ, RuleMode.DOWNGRADE):
            rules = rules[::-1]
        is_key = self._place is not None and self._place.field == MessageField.KEY
        keys = (self._original, None) if is_key else (get_original_key(), self._original)
        for index, rule in enumerate(rules):
            context = RuleContext(
                *(rule_set.enable_at, self._place, self._source, self._target, self._subject, self.mode, rule),
                *(index, rules, inline_tags, field_transformer, *keys),
            )
            if not _applies(rule, self.mode) or self._is_disabled(rule, rule_set) or self._failed_before(rule):
                continue
            message, is_last = self._execute_rule(context, message)
            if is_last:
                break
        return message

    def _execute_rule(self, context: RuleContext, message: Any) -> tuple[Any, bool]:
        """Executes one rule and returns (message, is_last).

        `is_last` is True if no further rule of the phase may be executed, because the rule has no executor, or because
        it has replaced the message by None.
        """
        rule = context.rule
        executor = None if rule.type is None else self._registry.get_executor(rule.type.upper())
        if executor is None:
            problem = RuleError(f"there is no executor for the type {rule.type} of the rule {rule.name}")
            self._act(context, message, problem)
            return message, True
        try:
            result = executor.transform(context, message)
            if rule.kind == RuleKind.CONDITION and not result:
                raise RuleConditionError(rule)
        except SerializationError:
            raise
        except Exception as error:  # an executor of the program may raise anything
            self._act(context, message, error)
            return message, False
        if rule.kind == RuleKind.TRANSFORM:
            message = result
        self._act(context, message, None)
        return message, message is None

    def _act(self, context: RuleContext, message: Any, error: Exception | None) -> None:
        """Runs the action that a rule names for its success or its failure.

        The rule has failed if `error` is given or `message` is None. The default action of a failure is ERROR, which
        raises SerializationError. Raises RuleError if no action has the name; another exception of an action is logged.
        """
        rule = context.rule
        is_failure = error is not None or message is None
        override = None if rule.type is None else self._registry.get_override(rule.type)
        name = rule.on_failure if is_failure else rule.on_success
        replaced = None if override is None else override.on_failure if is_failure else override.on_success
        name = (name if replaced is None else replaced) or ("ERROR" if is_failure else "NONE")
        if rule.mode in _OPERATIONS and "," in name:
            first, _, second = name.partition(",")
            name = first if self.mode in _FIRST_OPERATIONS else second
        action = self._action(name)
        try:
            action.run(context, message, error)
        except SerializationError:
            raise
        except Exception as problem:  # an action of the program may raise anything
            _log.warning("The action %s after the rule %s has failed: %s", name, rule.name, problem)

    def _action(self, name: str) -> RuleAction:
        if name in ("ERROR", "NONE"):
            return ErrorAction() if name == "ERROR" else NoneAction()
        action = self._registry.get_action(name)
        if action is None:
            raise RuleError(f"Could not find rule action of type {name}")
        return action

    def _is_disabled(self, rule: Rule, rule_set: RuleSet) -> bool:
        override = None if rule.type is None else self._registry.get_override(rule.type)
        if override is not None and override.disabled is not None:
            return override.disabled
        return bool(rule.disabled) or (rule_set.enable_at or "ALL") not in _ENVIRONMENTS

    def _failed_before(self, rule: Rule) -> bool:
        """Returns whether the record's headers say that this rule has sent the record to a dead letter queue before."""
        headers = None if self._place is None else self._place.headers
        if not headers or rule.name is None:
            return False
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        names = [value for key, value in pairs if key == DLQ_RULE_NAME_HEADER]
        return bool(names) and names[-1] in (rule.name, rule.name.encode())
