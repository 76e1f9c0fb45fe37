"""Share consumers of librdkafka, driven line by line; ShareDriver.java describes the commands and the answers."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, ShareConsumer

_consumers: dict[str, ShareConsumer] = {}


def run(command: str, name: str, *words: str) -> Any:
    """Runs one command and returns its answer."""
    if command == "open":
        _consumers[name] = ShareConsumer(dict(word.split("=", 1) for word in words))
        return None
    consumer = _consumers[name]
    match command:
        case "subscribe":
            consumer.subscribe(list(words))
        case "poll":
            found = [each for each in consumer.poll(int(words[0]) / 1000) if each.error() is None]
            return [[each.partition(), each.offset(), each.delivery_count(), each.value().decode()] for each in found]
        case "ack":
            topic, partition, offset, kind = words
            consumer.acknowledge_offset(topic, int(partition), int(offset), AcknowledgeType[kind])
        case "commit":
            return {each.partition: name_of(error) for each, error in consumer.commit_sync().items()}
        case "close":
            _consumers.pop(name).close()
        case _:
            raise ValueError(command)
    return None


def name_of(error: KafkaException | None) -> str:
    """Returns the name of an error as Kafka spells it, and an empty text without an error."""
    if error is None:
        return ""
    details: KafkaError = error.args[0]
    return str(details.name())


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(run(*line.rstrip("\n").split("\t"))), flush=True)


if __name__ == "__main__":
    main()
