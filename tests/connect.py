"""Kafka Connect's distributed workers with the file connectors of Apache Kafka 4.3, driven by REST."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from tests.peers import LOG4J2, fetched_jar
from tests.server_process import ServerProcess

FILE_CONNECTORS = "org.apache.kafka:connect-file:4.3.0"


class ConnectWorker(ServerProcess):
    """A worker of the group `connect` whose source connectors write in transactions. `port` is that of its REST API."""

    ready_line = re.compile(r"Kafka Connect started")
    start_timeout_s = 300.0
    stop_timeout_s = 60.0

    def __init__(self, kafka: Path, directory: Path, bootstrap: str) -> None:
        super().__init__(directory, None)
        self._class_path = f"{kafka}/libs/*:{fetched_jar(FILE_CONNECTORS)}"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "listeners": f"http://127.0.0.1:{self.port}",
            "rest.advertised.host.name": "127.0.0.1",
            "exactly.once.source.support": "enabled",
            "session.timeout.ms": "10000",
            "heartbeat.interval.ms": "3000",
            "scheduled.rebalance.max.delay.ms": "5000",
            "offset.flush.interval.ms": "1000",
        }
        for name in ("config", "offset", "status"):
            settings |= {f"{name}.storage.topic": f"connect-{name}", f"{name}.storage.replication.factor": "1"}
        (directory / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (directory / "log4j2.yaml").write_text(LOG4J2)

    def command(self) -> list[str]:
        options = ["-Xmx384M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [f"-Dlog4j2.configurationFile={self.directory / 'log4j2.yaml'}", "-cp", self._class_path]
        worker = "org.apache.kafka.connect.cli.ConnectDistributed"
        return ["java", *options, worker, str(self.directory / "worker.properties")]

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Calls the REST API. Raises OSError if the worker refuses the call, as it does while it rebalances."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=data, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.loads(answer.read() or b"null")

    def is_running_all(self, *connectors: str) -> bool:
        """Returns whether each connector and its task are RUNNING; starts those that have failed again."""
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
