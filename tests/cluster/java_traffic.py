"""The command that runs `JavaTraffic.java`, compiled against the jars of a release of Apache Kafka."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("JavaTraffic.java")
COMPILER_TIMEOUT_S = 120


def java_command(kafka: Path, classes: Path) -> list[str]:
    """Compiles the program into `classes`; returns the words that run it with further arguments."""
    classes.mkdir(parents=True, exist_ok=True)
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{kafka}/libs/*", "-d", str(classes), str(SOURCE)]
    subprocess.run(compiler, check=True, capture_output=True, timeout=COMPILER_TIMEOUT_S)
    options = [
        "-Xmx96M",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ]
    return ["java", *options, "-cp", f"{classes}:{kafka}/libs/*", "JavaTraffic"]
