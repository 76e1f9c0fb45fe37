"""The registry of rule executors and actions of confluent-kafka."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import ClassVar

from kafkapy.compat.confluent_kafka.schema_registry._rules import RuleAction, RuleExecutor

__all__ = ["RuleAction", "RuleExecutor", "RuleOverride", "RuleRegistry"]


@dataclass(frozen=True, slots=True)
class RuleOverride:
    """Values that replace `on_success`, `on_failure` and `disabled` of all rules of a type.

    A value of None leaves the rules' own value in effect.
    """

    type: str
    on_success: str | None
    on_failure: str | None
    disabled: bool | None


class RuleRegistry:
    """Rule executors, actions and overrides by the types of rules or the names of actions. Any thread may use it.

    `get_global_instance` returns the registry that serializers without a registry of their own use.
    """

    _global: ClassVar[RuleRegistry]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executors: dict[str, RuleExecutor] = {}
        self._actions: dict[str, RuleAction] = {}
        self._overrides: dict[str, RuleOverride] = {}

    def register_executor(self, rule_executor: RuleExecutor) -> None:
        """Adds an executor, or replaces the executor that has the same type."""
        with self._lock:
            self._executors[rule_executor.type()] = rule_executor

    def get_executor(self, name: str) -> RuleExecutor | None:
        """Returns the executor of the rules whose type is `name`, or None if there is none."""
        return self._executors.get(name)

    def get_executors(self) -> list[RuleExecutor]:
        """Returns all executors."""
        with self._lock:
            return list(self._executors.values())

    def register_action(self, rule_action: RuleAction) -> None:
        """Adds an action, or replaces the action that has the same type."""
        with self._lock:
            self._actions[rule_action.type()] = rule_action

    def get_action(self, name: str) -> RuleAction | None:
        """Returns the action whose type is `name`, or None if there is none."""
        return self._actions.get(name)

    def get_actions(self) -> list[RuleAction]:
        """Returns all actions."""
        with self._lock:
            return list(self._actions.values())

    def register_override(self, rule_override: RuleOverride) -> None:
        """Adds an override, or replaces the override that has the same type."""
        with self._lock:
            self._overrides[rule_override.type] = rule_override

    def get_override(self, name: str) -> RuleOverride | None:
        """Returns the override for the rules whose type is `name`, or None if there is none."""
        return self._overrides.get(name)

    def get_overrides(self) -> list[RuleOverride]:
        """Returns all overrides."""
        with self._lock:
            return list(self._overrides.values())

    def clear(self) -> None:
        """Removes all executors, actions and overrides."""
        with self._lock:
            self._executors.clear()
            self._actions.clear()
            self._overrides.clear()

    @staticmethod
    def get_global_instance() -> RuleRegistry:
        """Returns the registry that serializers and deserializers use if their constructor was given no registry."""
        return RuleRegistry._global

    @staticmethod
    def register_rule_executor(rule_executor: RuleExecutor) -> None:
        """Adds an executor to the global registry."""
        RuleRegistry._global.register_executor(rule_executor)

    @staticmethod
    def register_rule_action(rule_action: RuleAction) -> None:
        """Adds an action to the global registry."""
        RuleRegistry._global.register_action(rule_action)

    @staticmethod
    def register_rule_override(rule_override: RuleOverride) -> None:
        """Adds an override to the global registry."""
        RuleRegistry._global.register_override(rule_override)


RuleRegistry._global = RuleRegistry()
