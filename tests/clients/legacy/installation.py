"""Installs the clients that the tests use: each release of a library in a folder of its own in the peers' directory.

The package manager of the library's language fills a folder once. If the inputs of a folder change (such as a list of
packages), a new folder is made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.package_managers import fetch, made_once
from tests.peers import MAVEN, kafka_directory, peers_directory

PROGRAMS = Path(__file__).with_name("programs")
# The compression libraries of kafka-python, which does not declare them as dependencies.
CODEC_PACKAGES = ("python-snappy==0.7.3", "lz4==4.4.5", "xxhash==3.5.0", "zstandard==0.25.0")
# Releases of Apache Kafka that other tests install with all jars.
RELEASES_OF_BROKERS = ("4.3.0", "3.9.1")


def kafka_python(release: str) -> list[str]:
    """Installs kafka-python in a virtual environment; returns the command that runs its program there."""

    def make(directory: Path) -> None:
        fetch([_python_for_old_releases(), "-m", "venv", str(directory / "venv")])
        packages = (f"kafka-python=={release}", *CODEC_PACKAGES)
        fetch([str(directory / "venv/bin/python"), "-m", "pip", "install", "-q", *packages])

    directory = _made(f"kafka-python-{release}", make, *CODEC_PACKAGES)
    return [str(directory / "venv/bin/python"), str(PROGRAMS / "kafka_python" / "carrier.py")]


def java(release: str) -> list[str]:
    jars = java_jars("kafka-clients", release)
    classes = java_classes(f"java-carrier-{release}", PROGRAMS / "java" / "Carrier.java", jars)
    return [*java_command(), "-cp", f"{classes}:{jars}/*", "Carrier"]


def java_classes(name: str, source: Path, jars: Path) -> Path:
    """Returns the folder with the classes of a program, compiled with jars; `name` becomes a part of its name."""

    def make(directory: Path) -> None:
        command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(directory), str(source)]
        subprocess.run(command, check=True)

    return _made(name, make, source.read_text())


def java_jars(artifact: str, release: str) -> Path:
    """Returns the folder with the jars of a release and of its dependencies."""
    if release in RELEASES_OF_BROKERS:
        return kafka_directory(release) / "libs"
    pom = PROGRAMS / "java" / "pom.xml"
    return jars_of(pom, f"{artifact}-{release}", f"-Dclient.artifact={artifact}", f"-Dclient.version={release}")


def jars_of(pom: Path, name: str, *properties: str) -> Path:
    """Returns the folder with the jars that a pom depends on; `name` becomes a part of the folder's name."""

    def make(directory: Path) -> None:
        maven = [*MAVEN, "-f", str(pom), f"-DoutputDirectory={directory}"]
        fetch([*maven, "dependency:copy-dependencies", "-DincludeScope=runtime", *properties])

    return _made(name, make, pom.read_text())


def java_command() -> list[str]:
    return ["java", "-Xmx512M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]


def kafkajs(release: str) -> list[str]:
    """Installs the release of KafkaJS that package.json names; returns the command that runs its program."""
    source = PROGRAMS / "kafkajs"
    names = ("package.json", "package-lock.json")

    def make(directory: Path) -> None:
        for name in names:
            shutil.copy(source / name, directory)
        # no package needs an installation script
        fetch(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(directory)])

    directory = _made("kafkajs", make, *((source / name).read_text() for name in names))
    return ["env", f"NODE_PATH={directory}/node_modules", "node", str(source / "carrier.js")]


def franz_go(release: str) -> list[str]:
    """Builds the program with the franz-go release that go.mod names; returns its command."""
    return [str(built_go_program("franz-go", PROGRAMS / "franz_go"))]


def built_go_program(name: str, source: Path) -> Path:
    """Returns the program that Go builds from a folder; `name` becomes a part of the name of its folder."""

    def make(directory: Path) -> None:
        command = ["go", "build", "-buildvcs=false", "-o", str(directory / "program"), "."]
        fetch(command, source, {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"})

    texts = [(source / file).read_text() for file in ("go.mod", "go.sum", "main.go")]
    return _made(name, make, *texts) / "program"


def _python_for_old_releases() -> str:
    """Returns a Python before 3.12, which cannot load the copy of `six` in kafka-python before 2.1."""
    if sys.version_info < (3, 12):
        return sys.executable
    found = os.environ.get("KAFKAPY_PYTHON_3_11") or shutil.which("python3.11")
    if found is None:
        raise RuntimeError("kafka-python 1.4.7 needs Python 3.11: install it, or name it in KAFKAPY_PYTHON_3_11")
    return found


def _made(name: str, make: Callable[[Path], None], *made_from: str) -> Path:
    """Returns the folder that `make` fills once for each content of `made_from`."""
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:12]
    directory = peers_directory() / f"{name}-{digest}"
    return made_once(directory, lambda: make(directory))
