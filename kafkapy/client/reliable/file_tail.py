"""Writes the lines of growing files to a topic, each exactly once.

The lines of one round and the positions in the files are one transaction; the positions are in a compacted topic, so
that a program that starts again, on the same host, continues where the last transaction ended.
"""

from __future__ import annotations

import glob
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.closing import Closing
from kafkapy.client.errors import AuthenticationError, TransactionError
from kafkapy.client.producer import Producer
from kafkapy.client.reliable.chain_topics import ensure_topic
from kafkapy.client.reliable.followed_file import FilePosition, FollowedFile
from kafkapy.client.reliable.relay import RELAY_TIMEOUT_MS, admin_keys, is_refusal, producer_keys
from kafkapy.client.reliable.takeover import NamedTransaction
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.errors import ApiError, ConfigError, Error

log = logging.getLogger("kafkapy.client")

POSITIONS_TOPIC = "__kafkapy_tail"
_ROUND_BYTES = 1 << 20
_LOOK_S = 0.2
_FIND_FILES_S = 2.0
_BREAK_S = 0.3
# The longest time to wait for an answer before the first line of a transaction is read, and so for `run` to return
# after `stop` while no broker can be reached.
_PREPARE_TIMEOUT_MS = 10_000
_FATAL_FOR_TAIL = frozenset(
    (Error.TOPIC_AUTHORIZATION_FAILED, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Error.UNSUPPORTED_VERSION)
)


class FileTail(Closing):
    """Follows files until `stop` is called. `run` is called by one thread, `stop` by any.

    patterns: names of files, which may have wildcards; new files are found every two seconds.
    name: the name of this program on its host, by default the topic; of two programs with the same name, the one that
        was started first ends with NameTaken.
    begins_at_end: True reads a file without a stored position from its present end on, False from its beginning. A file
        that appears later is read from its beginning in both cases.
    forgets_after_s: a file that a wildcard has found and that no longer exists is closed after so many seconds; if its
        name is used again, the new file is followed.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        topic: str,
        properties: Mapping[str, Any],
        *,
        name: str | None = None,
        key: bytes | None = None,
        begins_at_end: bool = False,
        positions_topic: str = POSITIONS_TOPIC,
        forgets_after_s: float = 600.0,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not patterns:
            raise ConfigError("At least one file is required")
        self._patterns = [str(Path(each).absolute()) for each in patterns]
        self._topic = topic
        self._properties = {"default.api.timeout.ms": _PREPARE_TIMEOUT_MS, **properties}
        self._host = socket.gethostname()
        self._name = f"{self._host}:{name or topic}"
        self._transaction = NamedTransaction(f"the name {name or topic} (--name) on the host {self._host}")
        self._key = key
        self._begins_at_end = begins_at_end
        self._positions_topic = positions_topic
        self._forgets_after_s = forgets_after_s
        self._sleep = sleep
        self._is_stopping = False
        self._producer: Producer | None = None
        self._positions: dict[str, FilePosition] = {}
        self._files: dict[str, FollowedFile] = {}
        self._gone_since_s: dict[str, float] = {}
        self._renamed: set[str] = set()  # followed files that were read under other names; not in `__kafkapy_tail` yet
        self._find_at_s = 0.0
        self.counts: Counter[str] = Counter()

    def stop(self) -> None:
        """Makes `run` return after the transaction in progress. Without reachable brokers this takes at most ten
        seconds.

        A `default.api.timeout.ms` or `max.block.ms` in the properties replaces the ten seconds.
        """
        self._is_stopping = True

    def close(self) -> None:
        """Closes files and connections."""
        self._drop_producer()
        for each in self._files.values():
            each.close()

    @property
    def followed(self) -> frozenset[str]:
        """The absolute paths of the files that are followed now."""
        return frozenset(self._files)

    def run(self) -> None:
        """Writes lines until `stop` is called; waits for brokers that cannot be reached.

        `counts` has the numbers of lines written and of aborted transactions, and the numbers that `FollowedFile`
        counts, such as that of rotated files. Raises NameTaken if another program on the host has taken over the name,
        and errors that are not retriable, such as AuthenticationError.
        """
        while not self._is_stopping:
            try:
                if self.run_once() == 0:
                    self._sleep(_LOOK_S)
            except AuthenticationError:
                raise
            except (ApiError, TransactionError) as error:
                self._transaction.check(error, self._producer)
                if is_refusal(error) or (isinstance(error, ApiError) and error.error in _FATAL_FOR_TAIL):
                    raise
                self.counts["aborted"] += 1
                log.warning("The files are read again from the last transaction on: %s", error)
                self._drop_producer()
                self._sleep(_BREAK_S)

    def run_once(self) -> int:
        """Writes the new lines of all files in one transaction; returns the number of these lines."""
        producer = self._producer or self._begin()
        if self._is_stopping:
            return 0
        if time.monotonic() >= self._find_at_s:
            self._find_at_s = time.monotonic() + _FIND_FILES_S
            self._forget_files()
            self._find_files()
        found = 0
        changed: list[tuple[str, FollowedFile]] = []
        for path, file in self._files.items():
            try:
                lines = file.read(_ROUND_BYTES)
            except OSError as error:
                self.counts["unreadable"] += 1
                log.warning("%s cannot be read: %s", path, error)
                continue
            if lines and not found:
                self._transaction.begin(producer)
            found += len(lines)
            for line in lines:
                producer.send(self._topic, line.content, self._key, headers=(("kafkapy.file", os.fsencode(path)),))
            if lines:
                changed.append((path, file))
        if found:
            renamed = self._renamed - {path for path, _ in changed}
            self._commit(producer, [*changed, *((path, self._files[path]) for path in renamed & self._files.keys())])
            self._renamed.clear()
            self.counts["lines"] += found
        return found

    # Internal

    def _commit(self, producer: Producer, changed: Sequence[tuple[str, FollowedFile]]) -> None:
        import msgpack

        for path, file in changed:
            position = file.position()
            if position is not None:
                producer.send(self._positions_topic, msgpack.packb(list(position)), self._key_of(path))
                self._positions[path] = position
        producer.commit_transaction()

    def _key_of(self, path: str) -> bytes:
        return os.fsencode(f"{self._name}:{path}")

    def _begin(self) -> Producer:
        import msgpack

        with Admin(admin_keys(self._properties)) as admin:
            ensure_topic(admin, self._positions_topic, 1, {"cleanup.policy": "compact"})
        producer = Producer(
            {
                "transaction.timeout.ms": RELAY_TIMEOUT_MS,
                "compression.type": "lz4",
                "max.block.ms": 10_000,
                **producer_keys(self._properties),
                "transactional.id": f"kafkapy-tail-{self._name}",
                "enable.idempotence": True,
                "acks": "all",
            }
        )
        try:
            producer.init_transactions()
            prefix = self._key_of("")
            self._positions = {}
            for each in scan(self._properties, dict.fromkeys(all_partitions(self._properties, self._positions_topic))):
                if each.key is not None and each.key.startswith(prefix) and each.value is not None:
                    self._positions[os.fsdecode(each.key[len(prefix) :])] = FilePosition(*msgpack.unpackb(each.value))
        except BaseException:
            producer.close(0)
            raise
        for path, file in self._files.items():
            file.seek(self._positions.get(path))
        self._producer = producer
        return producer

    def _forget_files(self) -> None:
        """Closes the files that a wildcard has found and whose names have not existed for `forgets_after_s` seconds.

        They would otherwise stay open for ever.
        """
        now_s = time.monotonic()
        for path in self._files.keys() - set(self._patterns):
            if not self._files[path].is_gone:
                self._gone_since_s.pop(path, None)
            elif now_s - self._gone_since_s.setdefault(path, now_s) >= self._forgets_after_s:
                self._files.pop(path).close()
                del self._gone_since_s[path]

    def _find_files(self) -> None:
        for pattern in self._patterns:
            has_wildcards = glob.has_magic(pattern)
            for path in glob.glob(pattern) if has_wildcards else [pattern]:
                if path not in self._files:
                    self._files[path] = self._followed_from_now(path)
        self._begins_at_end = False  # a file that is found later is a new one

    def _followed_from_now(self, path: str) -> FollowedFile:
        """Returns a file that was found, at the position at which it is read on.

        A pattern may also match the name that a rotation gives to a file, such as app.1.log. The file is then not read
        again: the lines that are still missing have been read, or are read, under its former name.
        """
        position, begins_at_end = self._positions.get(path), self._begins_at_end
        if position is None and self._is_read_already(path):
            self._renamed.add(path)
            begins_at_end = True
        file = FollowedFile(Path(path), self.counts, begins_at_end=begins_at_end)
        file.seek(position)
        return file

    def _is_read_already(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return False
        return any(each.has_opened(status) for each in self._files.values())

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)
