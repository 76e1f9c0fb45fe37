"""Distributed Connect 4.3 with an exactly-once source: a killed broker, a killed worker, the REST and offsets APIs."""

from __future__ import annotations

import urllib.error
from pathlib import Path

import pytest

from tests.connect import ConnectWorker
from tests.ecosystem.programs import TopicReader, wait_until
from tests.full.conftest import NewServer
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]

LINES = 5000
# The names of a published example, which creates the source by POST.
SOURCE_NAME, SINK_NAME = "local-file-distribute-source", "local-file-distribute-sink"
SOURCE = {
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "topic": "lines",
    "batch.size": "100000",  # with a small one, the connector keeps lines that it has read until the file grows
    "exactly.once.support": "requested",
    "transaction.boundary": "poll",
}
SINK = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": "lines"}


class Lines:
    """The source's file, to which `append` adds the next lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        path.touch()

    def append(self, count: int) -> None:
        with self.path.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(self.count, self.count + count))
        self.count += count

    @property
    def all(self) -> list[bytes]:
        return self.path.read_bytes().splitlines()


def test_an_exactly_once_source_writes_each_line_once_through_kills(
    tmp_path: Path, kafka_43: Path, new_server: NewServer
) -> None:
    lines, sink = Lines(tmp_path / "source.txt"), tmp_path / "sink.txt"
    sink.touch()
    with (
        new_server() as broker,
        ConnectWorker(kafka_43, tmp_path / "worker-1", broker.bootstrap) as first,
        ConnectWorker(kafka_43, tmp_path / "worker-2", broker.bootstrap) as second,
    ):
        workers = {f"127.0.0.1:{worker.port}": worker for worker in (first, second)}
        created = {"name": SOURCE_NAME, "config": {**SOURCE, "file": str(lines.path)}}
        first.request_again("POST", "/connectors", created)
        second.request_again("PUT", f"/connectors/{SINK_NAME}/config", {**SINK, "file": str(sink)})
        wait_until(lambda: first.is_running_all(SOURCE_NAME, SINK_NAME), first.log)
        with TopicReader(broker.bootstrap, "lines") as topic:
            for _ in range(3):
                lines.append(500)
                broker.kill()
                lines.append(500)
                broker.start()
                lines.append(500)
                topic.wait_for(lines.count)
            owner = first.request_again("GET", f"/connectors/{SOURCE_NAME}/status")["tasks"][0]["worker_id"]
            workers[owner].kill()
            lines.append(LINES - lines.count)
            topic.wait_for(LINES)
            workers[owner].start()
            assert topic.values == lines.all
        survivor = workers[owner]
        wait_until(lambda: survivor.is_running_all(SOURCE_NAME, SINK_NAME), survivor.log)
        # The sink is an at-least-once program.
        wait_until(lambda: {*sink.read_bytes().splitlines()} == {*lines.all}, survivor.log)
        check_offsets_api(survivor, broker, lines)
        check_other_calls(survivor)


def check_offsets_api(worker: ConnectWorker, broker: ServerProcess, lines: Lines) -> None:
    """Stops the source, sets its offset to the file's beginning, and resumes it: it writes the whole file again."""
    worker.request_again("PUT", f"/connectors/{SOURCE_NAME}/stop")
    wait_until(lambda: state_of(worker, SOURCE_NAME) == "STOPPED", worker.log)
    (offset,) = worker.request_again("GET", f"/connectors/{SOURCE_NAME}/offsets")["offsets"]
    assert offset == {"partition": {"filename": str(lines.path)}, "offset": {"position": lines.path.stat().st_size}}
    start = {"offsets": [{**offset, "offset": {"position": 0}}]}
    worker.request_again("PATCH", f"/connectors/{SOURCE_NAME}/offsets", start)
    worker.request_again("PUT", f"/connectors/{SOURCE_NAME}/resume")
    with TopicReader(broker.bootstrap, "lines") as topic:
        topic.wait_for(2 * LINES)
        assert topic.values == 2 * lines.all
    worker.request_again("PUT", f"/connectors/{SINK_NAME}/stop")
    wait_until(lambda: state_of(worker, SINK_NAME) == "STOPPED", worker.log)
    worker.request_again("DELETE", f"/connectors/{SINK_NAME}/offsets")
    assert worker.request_again("GET", f"/connectors/{SINK_NAME}/offsets") == {"offsets": []}
    worker.request_again("PUT", f"/connectors/{SINK_NAME}/resume")
    wait_until(lambda: worker.is_running_all(SOURCE_NAME, SINK_NAME), worker.log)


def check_other_calls(worker: ConnectWorker) -> None:
    assert worker.request("GET", "/")["version"] == "4.3.0"
    assert worker.request("GET", "/health")["status"] == "healthy"
    assert sorted(worker.request("GET", "/connectors")) == [SINK_NAME, SOURCE_NAME]
    assert set(worker.request("GET", "/connectors?expand=status")) == {SINK_NAME, SOURCE_NAME}
    assert worker.request("GET", f"/connectors/{SOURCE_NAME}/topics") == {SOURCE_NAME: {"topics": ["lines"]}}
    assert len(worker.request("GET", f"/connectors/{SOURCE_NAME}/tasks")) == 1
    plugins = {plugin["class"].rpartition(".")[2] for plugin in worker.request("GET", "/connector-plugins")}
    assert plugins >= {"FileStreamSinkConnector", "FileStreamSourceConnector"}
    checked = worker.request("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, "name": "new"})
    assert checked["error_count"] == 0
    worker.request_again("PATCH", f"/connectors/{SOURCE_NAME}/config", {"batch.size": "50000"})
    assert worker.request_again("GET", f"/connectors/{SOURCE_NAME}/config")["batch.size"] == "50000"
    worker.request_again("PUT", f"/connectors/{SOURCE_NAME}/pause")
    wait_until(lambda: state_of(worker, SOURCE_NAME) == "PAUSED", worker.log)
    worker.request_again("PUT", f"/connectors/{SOURCE_NAME}/resume")
    wait_until(lambda: state_of(worker, SOURCE_NAME) == "RUNNING", worker.log)
    for name in (SOURCE_NAME, SINK_NAME):
        worker.request_again("DELETE", f"/connectors/{name}")
    wait_until(lambda: worker.request_again("GET", "/connectors") == [], worker.log)
    with pytest.raises(urllib.error.HTTPError) as refused:
        worker.request("GET", "/connectors/absent")
    assert refused.value.code == 404


def state_of(worker: ConnectWorker, connector: str) -> str:
    return str(worker.request_again("GET", f"/connectors/{connector}/status")["connector"]["state"])
