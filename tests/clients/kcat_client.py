"""The tool kcat, which is librdkafka on the command line.

kcat sets no timestamps, and it gives all records of a run the same headers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord, by_partition

TIMEOUT_SECONDS = 90


class KcatClient(GroupClient):
    """A client whose `settings` are librdkafka's properties, each as NAME=VALUE."""

    def __init__(self, name: str = "kcat", settings: Sequence[str] = ()) -> None:
        self.name = name
        self._settings = [word for setting in settings for word in ("-X", setting)]

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        for partition, ones in by_partition(records).items():
            lines = "".join(f"{_text(record.key)}\t{_text(record.value)}\n" for record in ones)
            headers = [word for name, value in ones[0].headers for word in ("-H", f"{name}={_text(value)}")]
            self._kcat(
                *("-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", codec, "-K", "\t", *headers),
                *("-X", "acks=all"),
                lines=lines,
            )

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        output = self._kcat("-C", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-q", "-J")
        return [_received(line) for line in output.splitlines()]

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        output = self._kcat(
            *("-b", bootstrap, "-q", "-J", "-c", str(count), "-X", "auto.offset.reset=earliest"), "-G", group, topic
        )
        return [_received(line) for line in output.splitlines()]

    def _kcat(self, *arguments: str, lines: str = "") -> str:
        # kcat takes the words after -G GROUP as topics, so the settings come first
        command = ["kcat", *self._settings, *arguments]
        done = subprocess.run(
            command, input=lines, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()


def _received(line: str) -> SentRecord:
    fields = json.loads(line)
    flat = fields.get("headers", [])
    headers = tuple((name, value.encode()) for name, value in zip(flat[::2], flat[1::2], strict=True))
    return SentRecord(
        fields["partition"],
        fields.get("ts", -1),
        fields["key"].encode(),
        fields["payload"].encode(),
        headers,
        fields["offset"],
    )
