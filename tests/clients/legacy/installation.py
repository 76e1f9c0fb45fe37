"""Brings the clients that the tests try: each library and release in a folder of its own below the peers' directory,
made once by its registry's own client and kept. A change of what a folder is made from makes a new folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.peers import kafka_directory, peers_directory

PROGRAMS = Path(__file__).with_name("programs")
# What kafka-python compresses with; it names none of them as its dependency.
CODEC_PACKAGES = ("python-snappy==0.7.3", "lz4==4.4.5", "xxhash==3.5.0", "zstandard==0.25.0")
INSTALL_SECONDS = 900


def kafka_python(release: str) -> list[str]:
    """The command that runs its program: the interpreter of an environment of its own."""

    def make(directory: Path) -> None:
        _run([_python_for_old_releases(), "-m", "venv", str(directory / "venv")])
        packages = (f"kafka-python=={release}", *CODEC_PACKAGES)
        _run([str(directory / "venv/bin/python"), "-m", "pip", "install", "-q", *packages])

    directory = _made(f"kafka-python-{release}", make, *CODEC_PACKAGES)
    return [str(directory / "venv/bin/python"), str(PROGRAMS / "kafka_python" / "carrier.py")]


def java(release: str) -> list[str]:
    jars, source = java_jars("kafka-clients", release), PROGRAMS / "java" / "Carrier.java"

    def make(directory: Path) -> None:
        _run(["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(directory), str(source)])

    classes = _made(f"java-carrier-{release}", make, source.read_text())
    return [*java_command(), "-cp", f"{classes}:{jars}/*", "Carrier"]


def java_jars(artifact: str, release: str) -> Path:
    """The folder with the jars of a release and of what it depends on."""
    if release == "4.3.0":
        return kafka_directory(release) / "libs"
    pom = PROGRAMS / "java" / "pom.xml"

    def make(directory: Path) -> None:
        wanted = [f"-Dclient.artifact={artifact}", f"-Dclient.version={release}", f"-DoutputDirectory={directory}"]
        maven = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom)]
        _run([*maven, "dependency:copy-dependencies", "-DincludeScope=runtime", *wanted])

    return _made(f"{artifact}-{release}", make, pom.read_text())


def java_command() -> list[str]:
    return ["java", "-Xmx512M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]


def kafkajs(release: str) -> list[str]:
    """Installs KafkaJS in the release that package.json names."""
    source = PROGRAMS / "kafkajs"
    names = ("package.json", "package-lock.json")

    def make(directory: Path) -> None:
        for name in names:
            shutil.copy(source / name, directory)
        # none of the packages needs to run anything when it is installed
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(directory)])

    directory = _made("kafkajs", make, *((source / name).read_text() for name in names))
    return ["env", f"NODE_PATH={directory}/node_modules", "node", str(source / "carrier.js")]


def franz_go(release: str) -> list[str]:
    """Installs franz-go in the release that go.mod names."""
    source = PROGRAMS / "franz_go"

    def make(directory: Path) -> None:
        go = ["env", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "go"]
        _run([*go, "build", "-buildvcs=false", "-o", str(directory / "carrier"), "."], source)

    texts = [(source / name).read_text() for name in ("go.mod", "go.sum", "main.go")]
    return [str(_made("franz-go", make, *texts) / "carrier")]


def _python_for_old_releases() -> str:
    """Installs kafka-python; before 2.1 it carries a copy of six that Python 3.12 does not load any more."""
    if sys.version_info < (3, 12):
        return sys.executable
    found = os.environ.get("KAFKAPY_PYTHON_3_11") or shutil.which("python3.11")
    if found is None:
        raise RuntimeError("kafka-python 1.4.7 needs Python 3.11: install it, or name it in KAFKAPY_PYTHON_3_11")
    return found


def _made(name: str, make: Callable[[Path], None], *made_from: str) -> Path:
    """The folder that `make` has filled; a process that finds another one at it waits."""
    digest = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:12]
    directory = peers_directory() / f"{name}-{digest}"
    complete = directory / ".complete"
    if complete.exists():
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            make(directory)
            complete.touch()
    return directory


def _run(command: list[str], directory: Path | None = None) -> None:
    program = next(word for word in command if word != "env" and "=" not in word)
    if shutil.which(program) is None:
        raise RuntimeError(f"the tests of old clients need {program}; ./run-tests installs it, or says how")
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
