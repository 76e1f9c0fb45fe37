"""Builds the C programs of the benchmark, once, into `bench/results/build`."""

from __future__ import annotations

import subprocess
from pathlib import Path

BENCH = Path(__file__).parent
RESULTS = BENCH / "results"
BUILD = RESULTS / "build"
OPENSSL = ["-lssl", "-lcrypto"]
CRC32C = BENCH.parent / "kafkapy" / "_core" / "bytes" / "crc32c_hardware.c"


def compile_program(name: str, sources: list[Path], libraries: list[str]) -> Path:
    target = BUILD / name
    headers = [header for source in sources for header in source.parent.glob("*.h")]
    newest = max(source.stat().st_mtime for source in (*sources, *headers))
    if not target.exists() or newest > target.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", target, *sources, *libraries], check=True)
    return target


def bundled_librdkafka() -> Path:
    """Returns the path of the librdkafka that confluent-kafka contains, which is newer than that of most distributions.

    The header to compile with comes from the package librdkafka-dev.
    """
    import confluent_kafka

    libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    return next(libraries.glob("librdkafka*.so*"))


def requests_program() -> Path:
    return compile_program("requests", [BENCH / "load" / "requests.c"], OPENSSL)


def handshakes_program() -> Path:
    return compile_program("handshakes", [BENCH / "load" / "handshakes.c"], [*OPENSSL, "-lpthread"])


def refuse_program() -> Path:
    return compile_program("refuse", [BENCH / "load" / "refuse.c"], [*OPENSSL, "-lpthread"])


def tail_program() -> Path:
    return compile_program("tail", [BENCH / "load" / "tail.c"], [])


def throughput_program() -> Path:
    library = bundled_librdkafka()
    flags = [str(library), f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined"]
    return compile_program("throughput", [BENCH / "load" / "throughput.c"], flags)


def ceiling_program() -> Path:
    return compile_program("ceiling", [BENCH / "ceiling" / "ceiling.c", CRC32C], OPENSSL)
