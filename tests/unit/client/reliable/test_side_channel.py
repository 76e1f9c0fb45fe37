"""The bounded queue to a broker, and the logging handler on it."""

from __future__ import annotations

import json
import logging
import time
from threading import Event, Thread

import pytest

from kafkapy.client.logging import KafkaHandler
from kafkapy.client.reliable.records import Output
from kafkapy.client.reliable.side_channel import SideChannel
from kafkapy.errors import ApiError, ConfigError, Error

PATIENCE_S = 30.0


class SlowProducer:
    """A producer that blocks until it is released; topics named `bad` are refused."""

    def __init__(self) -> None:
        self.is_released = Event()
        self.has_begun = Event()
        self.sent = []

    def send(self, topic, value=None, key=None, *, headers=None, on_delivery=None):
        self.has_begun.set()
        assert self.is_released.wait(PATIENCE_S)
        if topic == "bad":
            raise ApiError(Error.INVALID_TOPIC_EXCEPTION)
        self.sent.append((topic, value, key, headers))
        on_delivery(None, ApiError(Error.TOPIC_AUTHORIZATION_FAILED) if topic == "refused" else None)

    def flush(self, timeout=None):
        return True

    def close(self, timeout=None):
        """Does nothing."""


def test_a_full_queue_drops_and_never_blocks():
    producer, dropped = SlowProducer(), []
    channel = SideChannel(lambda: producer, most_records=3, on_drop=dropped.append)
    assert channel.put(Output("t", b"0"))
    assert producer.has_begun.wait(PATIENCE_S)
    assert [channel.put(Output("t", b"%d" % each)) for each in range(1, 5)] == [True, True, False, False]
    assert not channel.flush(0.01)
    producer.is_released.set()
    assert channel.flush(PATIENCE_S)
    assert (channel.sent, channel.dropped, [each.value for each in dropped]) == (3, 2, [b"3", b"4"])
    channel.close()
    assert not channel.put(Output("t", b"late"))


def test_bytes_are_bounded_too_and_failures_are_counted():
    producer, dropped = SlowProducer(), []
    producer.is_released.set()
    channel = SideChannel(lambda: producer, most_bytes=1000, on_drop=dropped.append)
    assert not channel.put(Output("t", b"x" * 1000))
    channel.put(Output("bad", b"1"))
    channel.put(Output("refused", b"2"))
    assert channel.flush(PATIENCE_S)
    channel.close()
    assert (channel.sent, channel.dropped, len(dropped)) == (0, 3, 3)


def test_a_channel_that_cannot_connect_drops():
    def fail():
        raise ConfigError("no brokers")

    channel = SideChannel(fail)
    channel.put(Output("t", b"1"))
    assert channel.flush(PATIENCE_S)
    channel.close()
    assert channel.dropped == 1


@pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), TypeError("no number")])
def test_an_unexpected_error_does_not_end_the_thread(failure):
    producer, failures = SlowProducer(), [failure]
    producer.is_released.set()

    def make():
        if failures:
            raise failures.pop()
        return producer

    channel = SideChannel(make)
    channel.put(Output("t", b"1"))
    channel.put(Output("t", b"2"))
    assert channel.flush(PATIENCE_S)
    channel.close()
    assert (channel.sent, channel.dropped) == (1, 1)


def test_records_that_are_left_at_the_end_are_dropped_by_name():
    producer, dropped = SlowProducer(), []
    channel = SideChannel(lambda: producer, on_drop=dropped.append)
    for each in range(3):
        channel.put(Output("t", b"%d" % each))
    assert producer.has_begun.wait(PATIENCE_S)
    closer = Thread(target=channel.close, args=(0.0,))
    closer.start()
    while channel._end_s is None:
        time.sleep(0.001)
    producer.is_released.set()
    closer.join(PATIENCE_S)
    assert (channel.dropped, [each.value for each in dropped]) == (2, [b"1", b"2"])
    assert channel.flush(0)


class Kept(logging.Handler):
    """A handler that keeps messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def record(name: str = "app", message: object = "hello", **fields) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "msg": message, "levelname": "ERROR", **fields})


def test_the_handler_counts_drops_and_uses_its_fallback():
    producer, fallback = SlowProducer(), Kept()
    handler = KafkaHandler("logs", make_producer=lambda: producer, most_records=1, fallback=fallback)
    handler.handle(record())
    handler.handle(record(message="dropped"))
    handler.handle(record("kafkapy.client", "of the client itself"))
    handler.handle(record("kafkapy.clients", "of a program"))
    assert (handler.dropped, fallback.messages) == (2, ["dropped", "of a program"])
    producer.is_released.set()
    handler.close()
    assert handler.sent == 1


def test_the_formats_of_log_records():
    producer = SlowProducer()
    producer.is_released.set()
    handler = KafkaHandler("logs", make_producer=lambda: producer, key="order")
    handler.handle(record(order=object, unusual={1}))
    handler.close()
    pattern = KafkaHandler("logs", make_producer=lambda: producer, record_format="pattern", trace_id=lambda: None)
    pattern.setFormatter(logging.Formatter("%(levelname)s - %(message)s"))
    pattern.handle(record())
    pattern.close()
    (_, body, key, headers), (_, text, no_key, _) = producer.sent
    fields = json.loads(body)
    assert (fields["message"], fields["unusual"], headers) == ("hello", "{1}", (("level", b"ERROR"),))
    assert key == str(object).encode() and (text, no_key) == (b"ERROR - hello", None)
    with pytest.raises(ConfigError, match="xml is not a format"):
        KafkaHandler("logs", record_format="xml")
