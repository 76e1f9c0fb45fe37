"""Kafka Streams 4.3 with `group.protocol=streams` against kafkapy."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.ecosystem.kafka_streams import OPTIONS, WORD_COUNT, streams_jars
from tests.ecosystem.streams_run import PROPERTIES, bootstrap, create_topics, newest_values
from tests.operations.watched_broker import WatchedBroker
from tests.server_process import ServerProcess


@pytest.mark.peer
@pytest.mark.timeout(300)
def test_the_word_count_of_the_release_runs_unmodified(tmp_path: Path) -> None:
    broker = WatchedBroker(tmp_path, PROPERTIES)

    def check() -> None:
        page = broker.page()
        assert page.value("kafkapy_groups", protocol="streams", state="Stable") == 1
        assert page.value("kafka_consumergroup_members", consumergroup="streams-wordcount") == 1

    count_words(broker, tmp_path, check)


def count_words(server: ServerProcess, tmp_path: Path, check: Callable[[], None]) -> None:
    """Runs the release's word count on a server and checks the counts; calls `check` while the program runs."""
    with server as broker:
        create_topics(broker, "streams-plaintext-input", "streams-wordcount-output")
        with Producer({"bootstrap.servers": bootstrap(broker)}) as producer:
            for number in range(100):
                producer.send("streams-plaintext-input", value=f"all word{number % 4}".encode())
        settings = tmp_path / "streams.properties"
        lines = (f"bootstrap.servers={bootstrap(broker)}", "group.protocol=streams", f"state.dir={tmp_path}/state")
        settings.write_text("\n".join(lines))
        with (tmp_path / "streams.log").open("w") as log:
            command = ["java", *OPTIONS, "-cp", f"{streams_jars()}/*", WORD_COUNT, str(settings)]
            application = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            expected = {b"all": 100, **{f"word{number}".encode(): 25 for number in range(4)}}
            wanted = {word: count.to_bytes(8, "big") for word, count in expected.items()}
            newest_values(broker, "streams-wordcount-output", lambda values: values == wanted)
            check()
        finally:
            application.kill()
            application.wait()
