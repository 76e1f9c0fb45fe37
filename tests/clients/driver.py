"""Producers and consumers behind one set of commands, so that one suite drives our client and Java's.

A driver holds any number of producers and consumers by name. Partitions are named `topic-0`; keys, values and headers
are bytes. A command that a client refuses raises DriverError with the name of Kafka's error.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafkapy.client import Consumer, Producer, SubscriptionPattern, TopicPartition
from kafkapy.errors import ApiError

SOURCE = Path(__file__).with_name("Driver.java")
ANSWER_SECONDS = 90.0
STACKS_SECONDS = 2.0


class DriverError(Exception):
    """An error that a client has raised; `error` is the name of Kafka's error."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error


class Sent(NamedTuple):
    """A record to be sent; None leaves the choice to the client."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Received(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class OurDriver:
    """Our client. `call(what, name, **arguments)` executes the command `what` on the producer or consumer `name`."""

    name = "kafkapy"

    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}
        self._consumers: dict[str, Consumer] = {}
        self._heard: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (*self._producers.values(), *self._consumers.values()):
            each.close()

    def call(self, what: str, name: str, **arguments: Any) -> Any:
        """Executes the command `what` on the client `name`, and returns its result. Raises DriverError."""
        try:
            return getattr(self, f"_{what}")(name, **arguments)
        except ApiError as error:
            raise DriverError(error.error.name, str(error)) from error

    # Producers

    def _producer_open(self, name: str, config: Mapping[str, str]) -> None:
        self._producers[name] = Producer(config)

    def _producer_send(self, name: str, records: Sequence[Sent]) -> list[tuple[int, int]]:
        producer = self._producers[name]
        futures = [
            producer.send(
                each.topic,
                each.value,
                each.key,
                partition=each.partition,
                timestamp=each.timestamp,
                headers=each.headers,
            )
            for each in records
        ]
        producer.flush(ANSWER_SECONDS)
        written = [future.result(0) for future in futures]
        return [(each.partition, each.offset) for each in written]

    def _producer_init(self, name: str) -> None:
        self._producers[name].init_transactions()

    def _producer_begin(self, name: str) -> None:
        self._producers[name].begin_transaction()

    def _producer_commit(self, name: str) -> None:
        self._producers[name].commit_transaction()

    def _producer_abort(self, name: str) -> None:
        self._producers[name].abort_transaction()

    def _producer_offsets(self, name: str, consumer: str, offsets: Mapping[str, int]) -> None:
        group = self._consumers[consumer].group_metadata()
        self._producers[name].send_offsets_to_transaction(_offsets(offsets), group)

    def _producer_close(self, name: str) -> None:
        self._producers.pop(name).close()

    # Consumers

    def _consumer_open(self, name: str, config: Mapping[str, str]) -> None:
        self._consumers[name] = Consumer(config)
        self._heard[name] = []

    def _consumer_subscribe(self, name: str, topics: Sequence[str]) -> None:
        self._consumers[name].subscribe(topics, _Listener(self._heard[name]))

    def _consumer_subscribe_pattern(self, name: str, pattern: str) -> None:
        self._consumers[name].subscribe(re.compile(f"^(?:{pattern})$"), _Listener(self._heard[name]))

    def _consumer_subscribe_server_pattern(self, name: str, pattern: str) -> None:
        self._consumers[name].subscribe(SubscriptionPattern(pattern), _Listener(self._heard[name]))

    def _consumer_assign(self, name: str, partitions: Sequence[str]) -> None:
        self._consumers[name].assign(map(_partition, partitions))

    def _consumer_poll(self, name: str, ms: int) -> list[Received]:
        return [
            Received(each.topic, each.partition, each.offset, each.timestamp, each.key, each.value, each.headers)
            for each in self._consumers[name].poll(ms / 1000)
        ]

    def _consumer_heard(self, name: str) -> list[str]:
        return self._heard[name]

    def _consumer_assignment(self, name: str) -> list[str]:
        return sorted(map(str, self._consumers[name].assignment()))

    def _consumer_commit(self, name: str, offsets: Mapping[str, int] | None) -> None:
        self._consumers[name].commit(None if offsets is None else _offsets(offsets))

    def _consumer_committed(self, name: str, partitions: Sequence[str]) -> dict[str, Any]:
        committed = self._consumers[name].committed(map(_partition, partitions))
        return {str(where): each and [each.offset, each.metadata] for where, each in committed.items()}

    def _consumer_position(self, name: str, partitions: Sequence[str]) -> int:
        return self._consumers[name].position(_partition(partitions[0]))

    def _consumer_seek(self, name: str, partitions: Sequence[str], offset: int) -> None:
        self._consumers[name].seek(_partition(partitions[0]), offset)

    def _consumer_seek_to_beginning(self, name: str, partitions: Sequence[str]) -> None:
        self._consumers[name].seek_to_beginning(map(_partition, partitions))

    def _consumer_seek_to_end(self, name: str, partitions: Sequence[str]) -> None:
        self._consumers[name].seek_to_end(map(_partition, partitions))

    def _consumer_pause(self, name: str, partitions: Sequence[str]) -> None:
        self._consumers[name].pause(map(_partition, partitions))

    def _consumer_resume(self, name: str, partitions: Sequence[str]) -> None:
        self._consumers[name].resume(map(_partition, partitions))

    def _consumer_ends(self, name: str, partitions: Sequence[str]) -> dict[str, int]:
        found = self._consumers[name].end_offsets(map(_partition, partitions))
        return {str(where): offset for where, offset in found.items()}

    def _consumer_beginnings(self, name: str, partitions: Sequence[str]) -> dict[str, int]:
        found = self._consumers[name].beginning_offsets(map(_partition, partitions))
        return {str(where): offset for where, offset in found.items()}

    def _consumer_times(self, name: str, partitions: Sequence[str], timestamp: int) -> dict[str, Any]:
        found = self._consumers[name].offsets_for_times({_partition(each): timestamp for each in partitions})
        return {str(where): each and [each.offset, each.timestamp] for where, each in found.items()}

    def _consumer_unsubscribe(self, name: str) -> None:
        self._consumers[name].unsubscribe()

    def _consumer_close(self, name: str) -> None:
        self._consumers.pop(name).close()


class _Listener:
    """A rebalance listener that records assigned (+), revoked (-) and lost (!) partitions."""

    def __init__(self, heard: list[str]) -> None:
        self._heard = heard

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._heard += [f"- {each}" for each in sorted(partitions)]

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._heard += [f"+ {each}" for each in sorted(partitions)]

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._heard += [f"! {each}" for each in sorted(partitions)]


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _offsets(offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
    return {_partition(where): offset for where, offset in offsets.items()}


class JavaDriver:
    """Java's client, in a process that executes one command after the other. `classes` is an empty directory."""

    name = "java"

    def __init__(self, kafka: Path, classes: Path) -> None:
        class_path = f"{classes}:{kafka}/libs/*"
        command = ["javac", "-nowarn", "-proc:none", "-cp", class_path, "-d", str(classes), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=ANSWER_SECONDS)
        options = ["-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        self._command = ["java", *options, "-cp", class_path, "Driver"]
        self._log = (classes / "driver.log").open("w")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._log.close()

    def call(self, what: str, name: str, **arguments: Any) -> Any:
        """Executes a command and returns its result. Raises DriverError.

        A process that does not answer in time is ended and replaced, so that only the test that called it fails. The
        failure contains the stacks of its threads.
        """
        if "records" in arguments:
            arguments["records"] = [_sent_in_hex(each) for each in arguments["records"]]
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        # SIGQUIT makes Java print the stacks to the standard output, and the kill ends the wait for a line.
        guards = [
            threading.Timer(ANSWER_SECONDS, self._process.send_signal, [signal.SIGQUIT]),
            threading.Timer(ANSWER_SECONDS + STACKS_SECONDS, self._process.kill),
        ]
        for guard in guards:
            guard.start()
        others: list[str] = []
        try:
            stdin.write(json.dumps({"do": what, "name": name, **arguments}) + "\n")
            stdin.flush()
            for line in stdout:
                if line.startswith("= "):
                    break
                others.append(line)
            else:
                self._end()
                self._process = self._start()
                raise AssertionError(f"{what} of {name} has no answer:\n{''.join(others)}")
        finally:
            for guard in guards:
                guard.cancel()
        answer = json.loads(line[2:])
        if "error" in answer:
            raise DriverError(answer["error"], answer["message"])
        result = answer["result"]
        if what == "consumer_poll":
            return [_received(each) for each in result]
        return [tuple(each) for each in result] if what == "producer_send" else result


def _sent_in_hex(record: Sent) -> dict[str, Any]:
    return {
        **record._asdict(),
        "key": _hex(record.key),
        "value": _hex(record.value),
        "headers": [[name, _hex(value)] for name, value in record.headers],
    }


def _received(fields: Mapping[str, Any]) -> Received:
    headers = tuple((name, _bytes(value)) for name, value in fields["headers"])
    key, value = _bytes(fields["key"]), _bytes(fields["value"])
    return Received(fields["topic"], fields["partition"], fields["offset"], fields["timestamp"], key, value, headers)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


Driver = OurDriver | JavaDriver
Call = Callable[..., Any]
