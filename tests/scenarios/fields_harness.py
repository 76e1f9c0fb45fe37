"""The part that the harnesses of share groups and streams groups have in common: messages become lines of fields."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.metadata.image import GROUP_RESOURCE
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value
from tests.scenarios.consumer_group_harness import ConsumerGroupHarness

# Fields that depend on the clock or on a hash.
UNSTABLE = {"metadata_hash", "assignment_timestamp", "unknown_tagged_fields"}


class FieldsHarness(ConsumerGroupHarness):
    """Shows responses and the records of `record_kinds` by those of their fields that differ from the defaults."""

    kind = ""  # the prefix of the keys in a group's own configuration
    record_kinds: Container[int] = ()

    def __init__(self, settings: Mapping[str, int]) -> None:
        super().__init__()
        self.settings.update(settings)
        self.coordinator = self._new_coordinator()

    def do_group(self, name: str, **settings: str) -> None:
        """Sets keys of the group's own configuration; `_` stands between the words of a key."""
        overrides = {f"{self.kind}.{key.replace('_', '.')}": value for key, value in settings.items()}
        configs = {**self.image.configs, (GROUP_RESOURCE, name): overrides}
        self.image = self.image._replace(configs=configs, offset=self.image.offset + 1)

    def _said(self, key_bytes: bytes, value_bytes: bytes | None) -> str:
        key: Any = decode_coordinator_key(key_bytes)
        kind = type(key).API_KEY
        if kind not in self.record_kinds:
            return super()._said(key_bytes, value_bytes)
        name = type(key).__name__.partition("Group")[2].removesuffix("Key")
        who = " ".join([key.group_id, name, getattr(key, "member_id", "")]).rstrip()
        if value_bytes is None:
            return f"{who} deleted"
        return f"{who} {self.said_fields(decode_coordinator_value(kind, value_bytes))}".rstrip()

    def said_fields(self, message: Message) -> str:
        """Returns the fields that differ from their defaults. A topic id is shown as the topic's name."""
        fresh = type(message)()
        parts = []
        for name in message.FIELDS:
            value = getattr(message, name)
            if name == "topic_id":
                parts.append(f"topic={self.names.get(value, '?')}")
            elif name not in UNSTABLE and value != getattr(fresh, name):
                parts.append(f"{name}={self._said_value(value)}")
        return " ".join(parts)

    def _said_value(self, value: Any) -> str:
        if isinstance(value, list | tuple):
            return "[" + "; ".join(self._said_value(each) for each in value) + "]"
        return f"({self.said_fields(value)})" if isinstance(value, Message) else str(value)
