"""The Debian package on a machine with systemd and without Python: start, kill, stop, upgrade, removal."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy import __version__
from tests.packaging.debian_machine import DebianMachine, make_debian, unified_hierarchy
from tests.packaging.executable import build_debian_package, build_folder

UNIT = "kafkapy.service"
TIMEOUT_S = 30

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.getuid() != 0, reason="a machine of one's own takes root's right"),
    pytest.mark.skipif(unified_hierarchy() is None, reason="systemd needs control groups that can be written to"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("package")
    return build_debian_package(build_folder(work), work)


@pytest.fixture(scope="module")
def machine(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianMachine]:
    """Yields a running Debian machine that has the package.

    $KAFKAPY_DEBIAN_ROOT may name a root directory of debootstrap, which is copied instead of made.
    """
    root = tmp_path_factory.mktemp("machine") / "root"
    if template := os.environ.get("KAFKAPY_DEBIAN_ROOT"):
        subprocess.run(["cp", "-a", template, root], check=True)
    else:
        make_debian(root)
    with DebianMachine(root) as machine:
        machine.copy(package, "/root/kafkapy.deb")
        yield machine
    shutil.rmtree(root)


def property_of(machine: DebianMachine, name: str) -> str:
    return machine.run("systemctl", "show", "--value", "--property", name, UNIT).stdout.strip()


def wait_until(condition: Callable[[], bool], machine: DebianMachine) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, journal(machine)
        time.sleep(0.1)


def journal(machine: DebianMachine) -> str:
    return machine.run("journalctl", "--no-pager", "-u", UNIT, "-n", "50", check=False).stdout


def produce(machine: DebianMachine, *values: str) -> None:
    """Produces values with the host's kcat, which runs in the machine's network."""
    command = ("kcat", "-P", "-b", "localhost:9092", "-t", "kept", "-X", "acks=all")
    machine.run(*command, network_only=True, input="".join(f"{value}\n" for value in values))


def consume(machine: DebianMachine) -> list[str]:
    command = ("kcat", "-C", "-b", "localhost:9092", "-t", "kept", "-o", "beginning", "-e", "-q")
    return machine.run(*command, network_only=True).stdout.split()


def test_a_life(machine: DebianMachine):
    """Runs the steps in order; each depends on the previous ones."""
    assert machine.run("sh", "-c", "command -v python3 python java", check=False).stdout == ""
    installed(machine)
    killed(machine)
    asked_for_an_unwritable_directory(machine)
    stopped(machine)
    installed_again(machine)
    removed(machine)


def installed(machine: DebianMachine) -> None:
    machine.run("dpkg", "-i", "/root/kafkapy.deb")
    assert machine.run("systemctl", "is-enabled", UNIT).stdout.strip() == "enabled"
    wait_until(lambda: property_of(machine, "ActiveState") == "active", machine)
    assert property_of(machine, "StatusText").startswith(
        f"kafkapy {__version__} ready: node 1 on PLAINTEXT://localhost:9092"
    )
    assert property_of(machine, "LimitNOFILE") == "1048576"
    produce(machine, "one", "two")
    assert consume(machine) == ["one", "two"]
    pid = property_of(machine, "MainPID")
    owner = machine.run("stat", "-c", "%U %a", f"/proc/{pid}", "/var/lib/kafkapy", "/etc/kafkapy/server.properties")
    assert owner.stdout.splitlines() == ["kafkapy 555", "kafkapy 750", "root 640"]
    said = machine.run("kafkapy", "--version").stdout
    assert said.startswith(f"kafkapy {__version__}")
    assert machine.run("/usr/lib/kafkapy/bin/kafka-dump-log.sh", "--version").stdout
    doctor = machine.run("kafkapy", "doctor", "--config", "/etc/kafkapy/server.properties", "--quiet", check=False)
    assert "problem" not in doctor.stdout, doctor.stdout


def killed(machine: DebianMachine) -> None:
    before = property_of(machine, "MainPID")
    machine.run("systemctl", "kill", "--signal=KILL", UNIT)
    wait_until(lambda: property_of(machine, "MainPID") not in ("0", before), machine)
    wait_until(lambda: property_of(machine, "ActiveState") == "active", machine)
    assert property_of(machine, "NRestarts") == "1"
    assert consume(machine) == ["one", "two"]


def asked_for_an_unwritable_directory(machine: DebianMachine) -> None:
    """Starts the program as the broker's user, by hand: one line of output and status 1."""
    command = "kafkapy broker start --override listeners=PLAINTEXT://localhost:9093 --override log.dirs=/srv/kafka"
    done = machine.run("setpriv", "--reuid=kafkapy", "--regid=kafkapy", "--clear-groups", *command.split(), check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "kafkapy broker start: no log directory is usable: Permission denied: /srv/kafka (log directory /srv/kafka)"
    ]


def stopped(machine: DebianMachine) -> None:
    machine.run("systemctl", "stop", UNIT)
    assert property_of(machine, "Result") == "success"
    assert (machine.root / "var/lib/kafkapy/data/.kafka_cleanshutdown").exists()
    assert "shut down completed" in journal(machine) or "shut down completed" in machine.log_path.read_text()


def installed_again(machine: DebianMachine) -> None:
    """Upgrades to the same version: changed configuration and data are kept, and the service runs afterwards."""
    with (machine.root / "etc/kafkapy/server.properties").open("a") as file:
        file.write("num.partitions=3\n")
    machine.run("systemctl", "start", UNIT)
    machine.run("dpkg", "-i", "/root/kafkapy.deb")
    wait_until(lambda: property_of(machine, "ActiveState") == "active", machine)
    assert "num.partitions=3" in (machine.root / "etc/kafkapy/server.properties").read_text()
    assert consume(machine) == ["one", "two"]


def removed(machine: DebianMachine) -> None:
    machine.run("dpkg", "--remove", "kafkapy")
    assert property_of(machine, "ActiveState") == "inactive"
    assert not (machine.root / "usr/lib/kafkapy").exists()
    assert (machine.root / "etc/kafkapy/server.properties").exists()
    said = machine.run("dpkg", "--purge", "kafkapy")
    assert "the data was kept" in said.stdout
    assert not (machine.root / "etc/kafkapy/server.properties").exists()
    assert (machine.root / "var/lib/kafkapy/data/kept-0/00000000000000000000.log").stat().st_size > 0
