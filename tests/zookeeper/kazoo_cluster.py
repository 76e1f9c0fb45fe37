"""A plug-in of pytest with which kazoo's own test suite runs on the listener of a broker.

It takes the place of the module with which the suite starts ZooKeeper.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from tests.zookeeper.listening_broker import ListeningBroker

os.environ.setdefault("ZOOKEEPER_VERSION", "3.9.3")


class ServedCluster(list):
    """The cluster of the suite, with one server: its list has what the suite uses of a server."""

    def __init__(self, **settings: object) -> None:
        directory = tempfile.TemporaryDirectory(prefix="kafkapy-kazoo-")
        self._directory = directory  # is removed with the cluster
        properties = {"zookeeper_listener_max_connections_per_address": "0"}
        if settings.get("jaas_config"):
            jaas = Path(directory.name) / "jaas.conf"
            jaas.write_text(str(settings["jaas_config"]))
            properties |= {
                "kafkapy_jaas_config_file": str(jaas),
                "zookeeper_listener_security_protocol": "SASL_PLAINTEXT",
                "zookeeper_listener_sasl_required": "false",
            }
        self.broker = ListeningBroker(Path(directory.name), **properties)
        super().__init__([self])

    @property
    def address(self) -> str:
        return self.broker.zookeeper

    @property
    def secure_address(self) -> str:
        return self.broker.zookeeper

    @property
    def running(self) -> bool:
        return self.broker.is_running

    @property
    def client_port(self) -> int:
        return int(self.broker.zookeeper.rpartition(":")[2])

    def start(self) -> None:
        self.broker.start()

    run = start

    def stop(self) -> None:
        self.broker.stop()

    def terminate(self) -> None:
        if self.broker.is_running:
            self.broker.stop()


common = ModuleType("kazoo.testing.common")
common.ZookeeperCluster = ServedCluster  # type: ignore[attr-defined]
sys.modules["kazoo.testing.common"] = common
