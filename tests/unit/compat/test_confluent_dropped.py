"""Clients of kafkapy.compat.confluent_kafka that the program drops without closing them."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.compat.confluent_kafka import Consumer, KafkaException, Producer
from kafkapy.compat.confluent_kafka._client import _close_dropped
from kafkapy.compat.confluent_kafka.admin import AdminClient

PATIENCE_S = 30.0
NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "client.id": "dropped"}


class Program:
    """A program with a consumer whose callbacks are methods of the program, so that they refer to the consumer."""

    def __init__(self) -> None:
        self.consumer = Consumer({**NOWHERE, "group.id": "g", "error_cb": self.failed, "throttle_cb": self.failed})
        self.consumer.subscribe(["t"], on_assign=self.rebalanced, on_revoke=self.rebalanced)
        self.consumer.poll(0.1)

    def failed(self, event: Any) -> None:
        pass

    def rebalanced(self, consumer: Consumer, partitions: Any) -> None:
        pass


def use_a_consumer() -> None:
    Program()


def use_a_producer() -> None:
    producer = Producer(NOWHERE)
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=0.1)


def use_an_admin_client() -> None:
    AdminClient(NOWHERE).poll(0)


def threads_and_files() -> tuple[int, int]:
    """Returns the number of networking threads of the clients, and the number of open files of the process."""
    threads = [each for each in threading.enumerate() if each.name == "kafkapy-dropped"]
    return len(threads), len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("use", [use_a_consumer, use_a_producer, use_an_admin_client])
def test_a_dropped_client_ends_its_thread_and_closes_its_files(use: Callable[[], None]) -> None:
    use()  # opens what the process keeps
    gc.collect()
    end_s = time.monotonic() + PATIENCE_S
    while threads_and_files()[0] and time.monotonic() < end_s:
        time.sleep(0.01)
    threads, files = before = threads_and_files()
    use()
    gc.collect()
    while (now := threads_and_files())[0] != threads or now[1] > files:  # others may close files of the process
        assert time.monotonic() < end_s, f"{before} before, {now} afterwards"
        time.sleep(0.01)


def test_a_client_that_is_dropped_while_its_network_is_locked_is_closed() -> None:
    """The garbage collector may run within a step of the client's own network."""
    producer = Producer(NOWHERE)
    network = producer._client._network
    with network.lock:
        del producer
        gc.collect()
    end_s = time.monotonic() + PATIENCE_S
    while not network.is_closed():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_a_client_that_is_dropped_in_a_wait_of_its_networking_thread_is_closed() -> None:
    """The garbage collector may run in the networking thread while this holds the lock of its event."""
    producer = Producer(NOWHERE)
    network = producer._client._network

    def drop() -> None:
        with network._thread_wanted._cond:  # type: ignore[attr-defined]
            _close_dropped(network)

    thread = threading.Thread(target=drop, daemon=True)
    thread.start()
    thread.join(PATIENCE_S / 3)
    assert not thread.is_alive()
    end_s = time.monotonic() + PATIENCE_S
    while not network.is_closed() or network._thread.is_alive():
        assert time.monotonic() < end_s
        time.sleep(0.01)
