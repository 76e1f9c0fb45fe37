"""Apache ZooKeeper as the peer of tests: its jars from Maven, one server on loopback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.clients.legacy.installation import jars_of, java_command
from tests.peers import LOG4J
from tests.server_process import ServerProcess

RELEASE = "3.9.3"
POM = Path(__file__).with_name("pom.xml")


class RealZooKeeper(ServerProcess):
    """A standalone ZooKeeper that serves at `zookeeper`, host:port, with TTL nodes and all four-letter words.

    `java` are the first words of its command line: the program and the options of the virtual machine.
    """

    java = tuple(java_command())
    ready_line = re.compile(r"PrepRequestProcessor \(sid:0\) started")

    def __init__(self, directory: Path, options: Mapping[str, str] | None = None) -> None:
        """`options` are further system properties of the server."""
        super().__init__(directory, None)
        self._options = dict(options or {})
        self.zookeeper = f"127.0.0.1:{self.port}"
        settings = {
            "dataDir": directory / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "*",
        }
        (directory / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        (directory / "log4j.properties").write_text(LOG4J)

    def command(self) -> list[str]:
        jars = jars_of(POM, f"zookeeper-{RELEASE}", f"-Dzookeeper.version={RELEASE}")
        options = {
            "log4j.configuration": f"file:{self.directory / 'log4j.properties'}",
            "zookeeper.extendedTypesEnabled": "true",
            "zookeeper.forceSync": "no",
            **self._options,
        }
        words = [f"-D{key}={value}" for key, value in options.items()]
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return [*self.java, *words, "-cp", f"{jars}/*", main, str(self.directory / "zoo.cfg")]
