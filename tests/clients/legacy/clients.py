"""Creates the clients of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.clients.client import Client
from tests.clients.confluent_client import ConfluentClient
from tests.clients.kcat_client import KcatClient
from tests.clients.legacy import installation
from tests.clients.legacy.catalog import BY_NAME, TriedClient
from tests.clients.legacy.program_client import ProgramClient
from tests.clients.legacy.shell_client import NewShells, OldShells

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "kafka-python": installation.kafka_python,
    "java": installation.java,
    "kafkajs": installation.kafkajs,
    "franz-go": installation.franz_go,
}
# librdkafka logs a warning for each old setting; with more than one request in flight a retry changes the order.
MORE_SETTINGS = {"log_level": "3", "max.in.flight": "1"}


class TriedClients:
    """The clients by name, each created at its first use. Not thread-safe.

    `close` ends the clients' processes; the next use of a client starts its process again. `directory` is for logs.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made: dict[str, Client] = {}

    def __getitem__(self, name: str) -> Client:
        if name not in self._made:
            self._made[name] = self._make(BY_NAME[name])
        return self._made[name]

    def close(self) -> None:
        for client in self._made.values():
            if isinstance(client, ProgramClient):
                client.close()

    def _make(self, tried: TriedClient) -> Client:
        if tried.driver in COMMANDS:
            command = [*COMMANDS[tried.driver](tried.release), *tried.settings]
            return ProgramClient(tried.name, command, self._directory / f"{tried.name}.log")
        if tried.driver == "confluent-kafka":
            settings = dict(setting.split("=", 1) for setting in tried.settings)
            return ConfluentClient(tried.name, {**settings, **MORE_SETTINGS})
        if tried.driver == "kcat":
            more = [f"{name}={value}" for name, value in MORE_SETTINGS.items()]
            return KcatClient(tried.name, [*tried.settings, *more])
        return {"old-shells": OldShells, "new-shells": NewShells}[tried.driver](tried.name, self._directory)
