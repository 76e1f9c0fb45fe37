"""Kafka Connect's workers, standalone and distributed, with the file connectors of Apache Kafka 4.3, driven by REST."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.peers import LOG4J2, fetched_jar
from tests.server_process import ServerProcess

FILE_CONNECTORS = "org.apache.kafka:connect-file:4.3.0"


class _Worker(ServerProcess):
    """A worker of Connect, driven by its REST API on `port`."""

    ready_line = re.compile(r"Kafka Connect started")
    start_timeout_s = 300.0
    stop_timeout_s = 60.0

    def __init__(self, directory: Path, kafka: Path, main: str, settings: Mapping[str, str], *files: Path) -> None:
        super().__init__(directory, None)
        self._class_path = f"{kafka}/libs/*:{fetched_jar(FILE_CONNECTORS)}"
        self._main = main
        own = {"listeners": f"http://127.0.0.1:{self.port}", "offset.flush.interval.ms": "1000"}
        self._files = [_write(directory / "worker.properties", {**own, **settings}), *files]
        (directory / "log4j2.yaml").write_text(LOG4J2)

    def command(self) -> list[str]:
        options = ["-Xmx384M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [f"-Dlog4j2.configurationFile={self.directory / 'log4j2.yaml'}", "-cp", self._class_path]
        return ["java", *options, f"org.apache.kafka.connect.cli.{self._main}", *map(str, self._files)]

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Calls the REST API. Raises OSError if the worker refuses the call, as it does while it rebalances."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.loads(answer.read() or b"null")

    def request_again(self, method: str, path: str, body: object = None) -> Any:
        """Calls the REST API until the worker does not refuse the call because of a rebalance or a short outage."""
        deadline = time.monotonic() + self.start_timeout_s
        while True:
            try:
                return self.request(method, path, body)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{method} {path} is refused: {error}\n{self.log()[-4000:]}") from error
            time.sleep(0.1)

    def is_running_all(self, *connectors: str) -> bool:
        """Returns whether each connector and its task are RUNNING; restarts those that have failed."""
        try:
            for name in connectors:
                found = self.request("GET", f"/connectors/{name}/status")
                states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])]
                if "FAILED" in states:
                    print(f"{name} has failed", flush=True)
                    self.request("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
                if states != ["RUNNING", "RUNNING"]:
                    return False
        except OSError:
            return False
        return True


class ConnectWorker(_Worker):
    """A worker of the group `connect` whose source connectors write in transactions."""

    def __init__(self, kafka: Path, directory: Path, bootstrap: str, plugins: Path | None = None) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "rest.advertised.host.name": "127.0.0.1",
            "exactly.once.source.support": "enabled",
            "session.timeout.ms": "10000",
            "heartbeat.interval.ms": "3000",
            "scheduled.rebalance.max.delay.ms": "5000",
        }
        for name in ("config", "offset", "status"):
            settings |= {f"{name}.storage.topic": f"connect-{name}", f"{name}.storage.replication.factor": "1"}
        super().__init__(directory, kafka, "ConnectDistributed", settings)
        if plugins is not None:  # the jars of further connectors
            self._class_path += f":{plugins}/*"


class StandaloneWorker(_Worker):
    """A worker without a group, with the JSON converter and its schemas.

    It starts with the connectors in `connectors`, which has the configuration of each by its name.
    """

    def __init__(
        self, kafka: Path, directory: Path, bootstrap: str, connectors: Mapping[str, Mapping[str, str]]
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "offset.storage.file.filename": str(directory / "offsets"),
        }
        files = [
            _write(directory / f"{name}.properties", {"name": name, **config}) for name, config in connectors.items()
        ]
        super().__init__(directory, kafka, "ConnectStandalone", settings, *files)


def _write(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path
