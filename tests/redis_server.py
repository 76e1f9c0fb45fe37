"""A Redis server for tests: Debian's package, on a port of its own, without files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.server_process import ServerProcess


class RedisServer(ServerProcess):
    """A server on loopback; `url` is the value for `--redis-url`."""

    ready_line = re.compile("Ready to accept connections")

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, port=None)
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
