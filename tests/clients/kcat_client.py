"""kcat: librdkafka on the command line. It sets no timestamps, and the same headers for all records of a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from tests.clients.client import Client
from tests.clients.records import SentRecord, by_partition

TIMEOUT_SECONDS = 90


class KcatClient(Client):
    name = "kcat"

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        for partition, ones in by_partition(records).items():
            lines = "".join(f"{_text(record.key)}\t{_text(record.value)}\n" for record in ones)
            headers = [word for name, value in ones[0].headers for word in ("-H", f"{name}={_text(value)}")]
            _kcat(
                *("-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", codec, "-K", "\t", *headers),
                *("-X", "acks=all"),
                lines=lines,
            )

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        output = _kcat("-C", "-b", bootstrap, "-t", topic, "-o", "beginning", "-e", "-q", "-J")
        return [_received(line) for line in output.splitlines()]

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        output = _kcat(
            *("-b", bootstrap, "-q", "-J", "-c", str(count), "-X", "auto.offset.reset=earliest"), "-G", group, topic
        )
        return [_received(line) for line in output.splitlines()]


def _kcat(*arguments: str, lines: str = "") -> str:
    done = subprocess.run(
        ["kcat", *arguments], input=lines, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
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
        fields["ts"],
        fields["key"].encode(),
        fields["payload"].encode(),
        headers,
        fields["offset"],
    )
