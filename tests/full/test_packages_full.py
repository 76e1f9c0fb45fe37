"""`packaging/build`: wheel and sdist in fresh environments, reproducible builds, and the Debian package on a Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.conftest import create_topic

ROOT = Path(__file__).parents[2]
# The packages that `pip install kafkapy` installs: those that the broker needs.
DEPENDENCIES = {"cramjam", "kafkapy", "lz4", "msgpack", "prometheus_client", "zstandard"}

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


class InstalledBroker(BrokerProcess):
    """A broker that runs in an environment of its own."""

    def __init__(self, directory: Path, program: Path) -> None:
        super().__init__(directory)
        self.program = program

    def command(self) -> list[str]:
        return [str(self.program), "broker", "start", "--config", str(self.config)]

    def _working_directory(self) -> Path:
        return self.directory


def build(clone: Path, *steps: str) -> Path:
    """Runs `packaging/build` in a clone; returns its dist/."""
    environment = {**os.environ, "KAFKAPY_PYTHON": sys.executable}
    done = subprocess.run(
        [clone / "packaging" / "build", *steps],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return clone / "dist"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = tmp_path_factory.mktemp("clone") / "kafkapy"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return clone


@pytest.fixture(scope="module")
def dist(clone: Path) -> Path:
    return build(clone, "sdist", "wheel", "executable", "deb")


def commit_of(clone: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def test_a_fresh_environment(kind: str, dist: Path, clone: Path, tmp_path: Path):
    """Installs away from the clone: without git and compiled files, the sdist needs only the compiler."""
    (package,) = dist.glob(kind)
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "pip"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-q", str(package)], check=True, cwd=tmp_path, timeout=900)
    listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    assert {line.partition("==")[0] for line in listed.split()} - {"pip", "setuptools"} == DEPENDENCIES
    program = environment / "bin" / "kafkapy"
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert f"(Commit:{commit_of(clone)[:16]}, built 20" in said
    with InstalledBroker(tmp_path / "broker", program) as broker:
        create_topic(broker.bootstrap, "made", 1)


def test_the_wheel_is_for_many_linuxes(dist: Path):
    (wheel,) = dist.glob("*.whl")
    assert re.search(r"-cp311-cp311-manylinux_2_\d+_x86_64", wheel.name), wheel.name


def test_the_same_sources_give_the_same_bytes(dist: Path, clone: Path, tmp_path: Path):
    """Builds twice in clones under the same path and compares the files byte for byte."""
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    shutil.rmtree(clone / "build" / "packaging" / "folder")
    second = {path.name: path.read_bytes() for path in build(clone).iterdir()}
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
