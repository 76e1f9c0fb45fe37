"""Adds a prefix to each value and counts deliveries by interceptors of a producer and a consumer.

An interceptor is an object whose methods the client calls: `on_send` before a record is serialized, which returns what
is sent, `on_acknowledgement` when the outcome is known, `on_consume` with the records of a poll, which returns those
that the application gets, and `on_commit` with committed offsets. Each method may be left out.
"""

from __future__ import annotations

from typing import Any

from example_support import make_topic, run

from kafkapy.client import Consumer, Producer


class PrefixInterceptor:
    """Puts a text in front of each value."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def on_send(self, topic: str, value: Any, key: Any) -> tuple[str, Any, Any]:
        return topic, f"{self._prefix}{value}", key


class CountingInterceptor:
    """Counts delivered and failed records."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failed = 0

    def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1


class FilterInterceptor:
    """Hides records whose value lacks a text from the application; their offsets are committed all the same."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def on_consume(self, records: Any) -> Any:
        return type(records)(record for record in records if self._text in record.value)


def main(bootstrap: str, topic: str, group: str) -> None:
    make_topic(bootstrap, topic, 1)
    counter = CountingInterceptor()
    chain = [PrefixInterceptor("kafkapy-"), counter]
    with Producer(bootstrap_servers=bootstrap, interceptor_classes=chain) as producer:
        for number in range(10):
            producer.send(topic, f"message{number}")
    print(f"delivered {counter.delivered}, failed {counter.failed}")
    settings = {"group_id": group, "auto_offset_reset": "earliest", "interceptor_classes": [FilterInterceptor(b"7")]}
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            print(record.value.decode())
            break
        consumer.commit()


if __name__ == "__main__":
    run(main, __doc__, topic="example-interceptors", group="example-interceptors")
