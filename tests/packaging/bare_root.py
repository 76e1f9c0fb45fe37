"""A root directory with a shell and the programs that unpack an archive, copied from this machine, without Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.broker_process import BrokerProcess

PROGRAMS = ("sh", "tar", "gzip", "tail", "mktemp", "mkdir", "chmod", "mv", "rm", "env")
LIBRARY = re.compile(r"(/\S+) \(0x")
# All parts of the C library, and zlib: the executable expects them, and every Linux has them.
SYSTEM_LIBRARIES = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libz.so.1",
)
# Mounts belong to the process's namespace and disappear with it.
ENTER = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'


def make_bare_root(root: Path) -> None:
    """Creates the programs with their libraries, /tmp, and names for the loopback addresses."""
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, name
        linked = subprocess.run(["ldd", found], check=True, capture_output=True, text=True).stdout
        _copy(Path(found), root / "bin" / name)
        for library in LIBRARY.findall(linked):
            _copy(Path(library), root / library.lstrip("/"))
            if Path(library).name == SYSTEM_LIBRARIES[0]:
                for each in SYSTEM_LIBRARIES:
                    _copy(Path(library).with_name(each), root / library.lstrip("/").replace(SYSTEM_LIBRARIES[0], each))
    for folder in ("dev", "proc", "tmp", "etc", "root", "var/cache"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)


def inside(root: Path, *command: str, **environment: str) -> list[str]:
    """Returns the command line that runs a command with `root` as its root directory; needs root."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    clean = ["env", "-i", "PATH=/bin", "HOME=/root", *settings]
    return ["unshare", "--mount", "sh", "-c", ENTER, str(root), "/bin/env", *clean[1:], *command]


class BareBroker(BrokerProcess):
    """The executable as a broker in a bare root, with its configuration and data."""

    def __init__(self, root: Path, program: str, properties: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.program = program
        super().__init__(root / "broker", {"log.dirs": "/broker/data", **(properties or {})})

    def command(self) -> list[str]:
        return inside(self.root, self.program, "broker", "start", "--config", "/broker/server.properties")
