"""A Debian in namespaces of its own with systemd as its first process, on which a test installs a package.

Its root directory comes from debootstrap. It has its own processes, mounts, network (loopback only) and branch of the
unified control groups; the ports and users of the host are not affected. The test must run as root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

MIRROR = "http://deb.debian.org/debian"
RELEASE = "bookworm"
PACKAGES = "systemd,init-system-helpers,logrotate"
START_TIMEOUT_S = 60
POLL_S = 0.1
ENVIRONMENT = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "container=other")
# Mounts of the first process: devices, its view of the kernel, its control groups.
BOOT = """
set -e
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --bind "$0/proc/sys" "$0/proc/sys"
mount -o remount,bind,ro "$0/proc/sys"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
for each in dev run tmp; do mount -t tmpfs -o mode=755 tmpfs "$0/$each"; done
chmod 1777 "$0/tmp"
for each in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
  mknod -m 666 $(echo "$0/dev/$each" | sed 's/ / c /')
done
mkdir "$0/dev/shm" "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
ip link set lo up
cd "$0"
pivot_root . .
umount --lazy .
exec chroot . "$@"
"""
NAMESPACES = ("--cgroup", "--mount", "--pid", "--ipc", "--uts", "--net")


def unified_hierarchy() -> Path | None:
    """Returns the path of the host's unified control groups; None if they cannot be written to."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup2" and "rw" in options.split(",") and os.access(point, os.W_OK):
            return Path(point)
    return None


def make_debian(root: Path) -> None:
    """Creates a small Debian with systemd; downloads 60 MB."""
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(root), MIRROR]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=900)


class DebianMachine:
    """A Debian that runs in namespaces of its own, and its branch of the control groups.

    `run` works between `start` and `stop`.
    """

    def __init__(self, root: Path) -> None:
        hierarchy = unified_hierarchy()
        assert hierarchy is not None, "no unified control groups that can be written to"
        self.root = root
        self._group = hierarchy / f"kafkapy-{os.getpid()}"
        self._process: subprocess.Popen[bytes] | None = None
        self.log_path = root.with_suffix(".log")

    def __enter__(self) -> Self:
        self._group.mkdir()
        (self.root / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        enter_group = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(self._group)]
        unshare = ["unshare", *NAMESPACES, "--fork", "--kill-child", "sh", "-c", BOOT, str(self.root)]
        systemd = [*ENVIRONMENT, "/lib/systemd/systemd", "--system", "--log-target=console", "--log-level=info"]
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [*enter_group, *unshare, *systemd], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.run("systemctl", "is-system-running", check=False).stdout.strip() not in ("running", "degraded"):
            assert time.monotonic() < deadline and self._process.poll() is None, self.log_path.read_text()[-8000:]
            time.sleep(POLL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)  # which ends every process there too, by --kill-child
        self._process.wait()
        for path in sorted(self._group.rglob("*"), reverse=True):
            if path.is_dir():
                _remove_group(path)
        _remove_group(self._group)

    @property
    def first_pid(self) -> int:
        """Returns the id that the machine's first process has on the host."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])

    def command(self, *words: str, network_only: bool = False) -> list[str]:
        """Returns the command line that runs a program inside the machine.

        With `network_only` the program and its files are those of the host, in the machine's network.
        """
        enter = ["nsenter", f"--target={self.first_pid}", "--net"]
        if network_only:
            return [*enter, *words]
        return [*enter, "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--root", "--wd", *ENVIRONMENT, *words]

    def run(
        self, *words: str, check: bool = True, network_only: bool = False, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program inside the machine; raises AssertionError with its output if it fails."""
        try:
            command = self.command(*words, network_only=network_only)
        except (AssertionError, FileNotFoundError):
            return subprocess.CompletedProcess(words, 1, "", "there is no first process yet")
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120, check=False)
        if check:
            assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def copy(self, source: Path, target: str) -> None:
        """Copies a file of the host into /root or another directory that is not a mount point."""
        shutil.copy(source, self.root / target.lstrip("/"))


def _remove_group(path: Path) -> None:
    """Removes the branch of control groups as soon as the last process has left it."""
    for _ in range(100):
        try:
            path.rmdir()
            return
        except OSError:
            time.sleep(POLL_S)


def lines_of(done: subprocess.CompletedProcess[str]) -> Sequence[str]:
    return done.stdout.splitlines()
