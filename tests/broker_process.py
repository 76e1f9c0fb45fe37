"""A kafkapy broker started by `python -m kafkapy broker start --config ...` in its own process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[1]


class BrokerProcess(ServerProcess):
    """A broker in a process of its own, with its configuration file, its data (`data`) and its log under `directory`.

    `config` is an existing configuration file to use instead. `properties` override those of the file; `arguments`
    follow those of the command.
    """

    ready_line = re.compile(r"^kafkapy\b.*\bready\b", re.MULTILINE)

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        config: Path | None = None,
        port: int | None = None,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, port)
        self.arguments = arguments
        self._environment = dict(environment or {})
        self.config = config
        if config is None:
            self.config = directory / "server.properties"
            settings = {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": f"PLAINTEXT://localhost:{self.port}",
                "log.dirs": str(self.data),
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "group.initial.rebalance.delay.ms": "0",
                **(properties or {}),
            }
            self.config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        elif properties:
            self.arguments += tuple(f"--override={key}={value}" for key, value in properties.items())

    @property
    def data(self) -> Path:
        """The log directory, unless the properties name another."""
        return self.directory / "data"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "kafkapy", "broker", "start", "--config", str(self.config), *self.arguments]

    def environment(self) -> dict[str, str] | None:
        return {**os.environ, **self._environment} if self._environment else None

    def _working_directory(self) -> Path:
        return ROOT
