"""Apache Kafka's own message classes read messages that kafkapy writes, see the same values, and write the same
bytes."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.message import Message
from kafkapy.types import uuid_to_string
from tests.protocol_messages import MessageMaker
from tests.reference.wire import attribute_name, facts, is_default, message_versions, versions_of

RELEASE = "4.3.0"
ORACLE = Path(__file__).with_name("MessageOracle.java")
PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-metadata": "org.apache.kafka.common.metadata",
    "kafka-raft": "org.apache.kafka.raft.generated",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-share-coordinator": "org.apache.kafka.coordinator.share.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
}
SAMPLES = 6


class JsonMaker:
    """Converts a message to the JSON of Kafka's converters; None if the message has unknown tags, which that JSON
    cannot express."""

    def __init__(self, name: str, version: int) -> None:
        self.version = version
        self.last = message_versions(facts()[name])[-1]
        self.speakable = True

    def holds(self, versions: str | None) -> bool:
        return self.version in versions_of(versions, self.last)

    def struct(self, message: Message, fields: list[dict[str, Any]]) -> dict[str, Any]:
        self.speakable = self.speakable and not message.unknown_tagged_fields
        said = {}
        for field in fields:
            value = getattr(message, attribute_name(field["name"]))
            unset_tag = self.holds(field.get("tagged_versions")) and is_default(field, value)
            if self.holds(field["versions"]) and not unset_tag:
                said[field["name"][0].lower() + field["name"][1:]] = self.value(value, field)
        return said

    def value(self, value: Any, field: dict[str, Any]) -> Any:
        kind = field["type"]
        if value is None:
            return None
        if kind.startswith("[]"):
            return [self.value(element, {**field, "type": kind[2:]}) for element in value]
        if "fields" in field:
            return self.struct(value, field["fields"])
        if kind in ("bytes", "records"):
            return base64.b64encode(value).decode()
        return uuid_to_string(value) if kind == "uuid" else value


def rows() -> list[str]:
    found = []
    for name, fact in sorted(facts().items()):
        suffix = "Data" if fact["kind"] in ("request", "response", "header") else ""
        for version in sorted(versions_of(fact["served_by"].get(RELEASE), message_versions(fact)[-1])):
            for seed in range(SAMPLES):
                message = MessageMaker(name, version, seed).make()
                maker = JsonMaker(name, version)
                row = {"class": f"{PACKAGES[fact['module']]}.{name}{suffix}", "version": version}
                row |= {"hex": message.encode(version).hex(), "json": maker.struct(message, fact["fields"])}
                if not maker.speakable:
                    del row["json"]
                found.append(json.dumps(row))
    return found


@pytest.mark.peer
def test_kafka_agrees(kafka_43: Path, tmp_path: Path) -> None:
    written = rows()
    assert len(written) > 4000
    messages = tmp_path / "messages.jsonl"
    messages.write_text("\n".join(written) + "\n")
    command = ["java", "-Xmx512m", "-cp", f"{kafka_43}/libs/*", str(ORACLE), str(messages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"checked {len(written)}\n"
