"""A PostgreSQL server for tests: Debian's package, a new cluster on loopback, queried with `psql`."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers import fetched_jar
from tests.ports import free_ports

# PostgreSQL does not run as root; the package creates this user.
SERVER_USER = "postgres"
DRIVER = "org.postgresql:postgresql:42.7.7"


def programs() -> Path:
    """Returns the folder of the newest version's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise RuntimeError("there is no PostgreSQL; ./run-tests installs it, or says what to install")
    return found[-1]


def jdbc_driver() -> Path:
    """Returns the JDBC driver's jar, which Maven fetches once."""
    return fetched_jar(DRIVER)


class PostgreSQL:
    """A server on loopback without passwords, with a database `postgres`. Its context manager removes it at the end.

    `settings` are further ones of the server.
    """

    def __init__(self, **settings: str) -> None:
        self._settings = settings
        (self.port,) = free_ports(1)
        # not below pytest's folder, which is closed to other users
        self._directory = Path(tempfile.mkdtemp(prefix="kafkapy-postgresql-"))
        self._user = SERVER_USER if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self._directory, self._user, self._user)

    @property
    def url(self) -> str:
        """Returns the URL for JDBC."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        try:
            self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
            options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._directory}"
            options += "".join(f" -c {name}={value}" for name, value in self._settings.items())
            self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "-o", options, "start")
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._directory)

    def query(self, statement: str) -> list[list[str]]:
        """Returns the rows of a statement, with each value as text."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres"]
        output = self._run("psql", *where, "-X", "-A", "-t", "-F", "\t", "-c", statement)
        return [line.split("\t") for line in output.splitlines()]

    def _run(self, program: str, *arguments: str) -> str:
        user = self._user if os.geteuid() == 0 else None
        log = self._directory / "output"
        # The server inherits the output of pg_ctl; a pipe would stay open as long as the server runs.
        with log.open("wb") as output:
            command = [str(programs() / program), *arguments]
            code = subprocess.run(
                command, cwd=self._directory, user=user, stdout=output, stderr=subprocess.STDOUT, check=False
            ).returncode
        text = log.read_text()
        if code:
            raise AssertionError(f"{program} {' '.join(arguments)} ended with {code}:\n{text}")
        return text
