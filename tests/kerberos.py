"""A Kerberos realm on loopback: MIT's KDC with a database of its own, keytabs and tickets."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.ports import free_port

REALM = "KAFKAPY.TEST"
WAIT_S = 20
# Where Debian installs the programs of administrators.
PROGRAMS = "/usr/sbin:/sbin"


class KerberosRealm:
    """A realm that exists while its `with` block runs. Its files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self._profile = directory / "kdc.conf"
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n ticket_lifetime = 600\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n"
        )
        self._profile.write_text(
            f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n  key_stash_file = {directory}/stash\n"
            f"  kdc_listen = 127.0.0.1:{self.port}\n  kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"  acl_file = {directory}/acl\n }}\n"
            f"[logging]\n kdc = FILE:{directory}/kdc.log\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def environment(self, cache: Path | None = None) -> dict[str, str]:
        """Returns the environment variables that make programs use the realm, and the tickets in `cache`."""
        found = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self._profile),
            "KRB5RCACHENAME": f"dfl:{self.directory}",
            "KRB5RCACHEDIR": str(self.directory),
        }
        return found if cache is None else {**found, "KRB5CCNAME": f"FILE:{cache}"}

    def __enter__(self) -> Self:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-secret")
        program = self._find("krb5kdc")
        self._process = subprocess.Popen(
            [program, "-n", "-r", REALM, "-P", str(self.directory / "kdc.pid")],
            env={**os.environ, **self.environment()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(WAIT_S)

    def add_service(self, name: str) -> Path:
        """Adds a principal with random keys, such as kafka/localhost, if the realm has none; returns its keytab."""
        keytab = self.directory / f"{name.replace('/', '-')}.keytab"
        if keytab.exists():
            return keytab
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", name)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(keytab), name)
        return keytab

    def log_in(self, name: str) -> Path:
        """Adds a user, and returns the file with a ticket of the user."""
        keytab = self.add_service(name)
        cache = self.directory / f"{name.replace('/', '-')}.cache"
        deadline = time.monotonic() + WAIT_S
        while True:  # the KDC may not listen yet
            done = self._run("kinit", "-k", "-t", str(keytab), name, check=False, cache=cache)
            if done.returncode == 0:
                return cache
            assert time.monotonic() < deadline, done.stderr.decode()
            time.sleep(0.1)

    def _run(
        self, program: str, *arguments: str, check: bool = True, cache: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, **self.environment(cache)}
        return subprocess.run([self._find(program), *arguments], env=environment, capture_output=True, check=check)

    @staticmethod
    def _find(program: str) -> str:
        found = shutil.which(program) or shutil.which(program, path=PROGRAMS)
        assert found is not None, f"{program} is missing: install krb5-kdc, krb5-admin-server and krb5-user"
        return found
