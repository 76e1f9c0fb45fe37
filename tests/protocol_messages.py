"""Finds the generated class of every message, and creates random values of them that a seed reproduces."""

import random
from functools import cache
from importlib import import_module
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.protocol.generator import DEFINITIONS
from kafkapy.protocol.generator_notation import read_definitions
from tests.reference.wire import attribute_name, default_of, facts, message_versions, versions_of

WORDS = ["", "a", "topic-1", "Kafka ünïcode 漢字", "x" * 130]
BYTES = [b"", b"\x00", bytes(range(200))]
LIMITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


@cache
def modules() -> dict[str, str]:
    """Returns the name of the module of each message's class, by message name."""
    found = {}
    for definition in read_definitions(DEFINITIONS):
        module = definition.name
        if module.endswith("coordinator_records"):
            module = "coordinator_records"
        for message in definition.messages:
            found[message.name] = f"kafkapy.protocol.messages.{module}"
    return found


def message_class(name: str) -> type[Message]:
    found: type[Message] = getattr(import_module(modules()[name]), name)
    return found


def every_version() -> list[tuple[str, int]]:
    return [(name, version) for name, message in sorted(facts().items()) for version in message_versions(message)]


class MessageMaker:
    """Creates messages of one class that can be encoded in `version`."""

    def __init__(self, name: str, version: int, seed: int) -> None:
        self.name = name
        self.version = version
        self.random = random.Random(f"{name} {version} {seed}")
        self.last = message_versions(facts()[name])[-1]
        self.flexible = self.holds(facts()[name]["flexible_versions"])

    def holds(self, versions: str | None) -> bool:
        return self.version in versions_of(versions, self.last)

    def make(self) -> Message:
        root = message_class(self.name)
        return self.make_struct(root, root, facts()[self.name]["fields"])

    def make_struct(self, root: Any, struct: Any, fields: list[dict[str, Any]]) -> Message:
        values = {attribute_name(field["name"]): self.make_field(root, field) for field in fields}
        if self.flexible and self.random.random() < 0.2:
            values["unknown_tagged_fields"] = tuple((tag, self.random.choice(BYTES)) for tag in (100, 101, 70_000))
        made: Message = struct(**values)
        return made

    def make_field(self, root: Any, field: dict[str, Any]) -> Any:
        tagged = self.holds(field.get("tagged_versions"))
        if not self.holds(field["versions"]) or (tagged and self.random.random() < 0.3):
            return self.default(root, field)
        if self.holds(field.get("nullable_versions")) and self.random.random() < 0.3:
            return None
        kind = field["type"]
        if kind.startswith("[]"):
            element = {**field, "type": kind[2:]}
            return [self.make_value(root, element) for _ in range(self.random.choice([0, 1, 1, 2, 3]))]
        return self.make_value(root, field)

    def default(self, root: Any, field: dict[str, Any]) -> Any:
        if "fields" in field and not field["type"].startswith("[]") and default_of(field) is not None:
            return getattr(root, field["type"])()
        return default_of(field)

    def make_value(self, root: Any, field: dict[str, Any]) -> Any:
        kind, pick = field["type"], self.random
        if "fields" in field:
            return self.make_struct(root, getattr(root, kind), field["fields"])
        if kind == "string":
            return pick.choice(WORDS)
        if kind in ("bytes", "records"):
            return pick.choice(BYTES)
        if kind == "bool":
            return pick.random() < 0.5
        if kind == "uuid":
            return pick.randbytes(16)
        if kind == "float64":
            return pick.uniform(-1e9, 1e9)
        if kind in ("uint16", "uint32"):
            return pick.choice([0, 1, 9092, 2 ** int(kind[4:]) - 1])
        bits = LIMITS[kind]
        return pick.choice([0, 1, -1, 2**bits - 1, -(2**bits), pick.randrange(-(2**bits), 2**bits)])
