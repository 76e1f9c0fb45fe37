"""A sample of the command lines of side_by_side.py; all of them are in tests/full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.side_by_side import CASES, check, run_ours
from tests.tools.tool_host import ToolHost

SALT = "MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="
CREDENTIALS = (
    *("-S", f"SCRAM-SHA-256=[name=alice,password=alice-secret,salt={SALT},iterations=8192]"),
    *("--add-scram", f'SCRAM-SHA-512=[name="bob",password=x,salt={SALT}]'),
    *("-S", f"SCRAM-SHA-256=[name=carl,salt={SALT},saltedpassword=mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=]"),
)
DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
SAMPLE = [case for case in CASES if case.is_sample]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case.tool} {case.words[:40]}")
def test_as_apache_kafkas_tool(host: ToolHost, places: dict[str, str], case):
    check(host, case, places)


@pytest.mark.parametrize("side", ["apache", "kafkapy"])
def test_console_producer_writes_the_same_records(host: ToolHost, places: dict[str, str], side):
    """Both tools write the same lines, and a consumer prints the same records for both."""
    run = host.run if side == "apache" else run_ours
    server = ("--bootstrap-server", places["bootstrap"])
    reader = ("--reader-property", "parse.key=true", "--reader-property", "key.separator= ")
    done = run("console-producer", *server, "--topic", f"by-{side}", *reader, input="k1 v1\nk2 v2 more\n 中国\n")
    assert (done.code, done.out) == (0, "")
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
    read = run_ours(
        "console-consumer", *server, "--topic", f"by-{side}", "--from-beginning", "--max-messages", "3", *shown
    )
    assert read.out == "NO_HEADERS\tk1\tv1\nNO_HEADERS\tk2\tv2 more\nNO_HEADERS\t\t中国\n"


def voters_of(host: ToolHost, directory: Path) -> str:
    snapshot = directory / "a" / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    return host.run("dump-log", "--files", str(snapshot), "--cluster-metadata-decoder").out


def test_format_makes_the_same_files_and_apache_kafka_knows_them(host: ToolHost, places: dict[str, str], tmp_path):
    cluster = "DOmtQuZXQo-RFPyau_d8Xg"
    for quorum, flags in (
        ("bootstrap.servers", ("--standalone",)),
        ("voters", ("-r", "4.0-IV3", "-f", "group.version=0", *CREDENTIALS)),
        ("bootstrap.servers", ("-I", f"1@elsewhere:9999:{DIRECTORY_ID}", *CREDENTIALS[:2])),
    ):
        seen = []
        for side in ("apache", "kafkapy"):
            run = host.run if side == "apache" else run_ours
            directory = tmp_path / f"{flags[0]}-{side}"
            directory.mkdir()
            config = directory / "server.properties"
            value = "1@localhost:9093" if quorum == "voters" else "localhost:9093"
            config.write_text(
                "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
                f"listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\nlog.dirs={directory}/a,{directory}/b\n"
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
                f"controller.quorum.{quorum}={value}\n"
            )
            done = run("storage", "format", "-c", str(config), "-t", cluster, *flags)
            assert done.code == 0, done
            files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
            again = run("storage", "format", "-c", str(config), "-t", cluster, *flags, "-g")
            refused = run("storage", "format", "-c", str(config), "-t", cluster, *flags)
            lines = sorted(done.out.replace(str(directory), "").splitlines())
            assert refused.code == 1 and "is already formatted. Use --ignore-formatted" in refused.err
            other = run_ours if side == "apache" else host.run
            told = [tool("storage", "info", "-c", str(config)) for tool in (run, other)]
            assert told[0] == told[1]
            dumped = host.run(
                "dump-log", "--files", f"{directory}/a/bootstrap.checkpoint", "--cluster-metadata-decoder"
            )
            payloads = [line.split("payload: ")[1] for line in dumped.out.splitlines() if "payload: " in line]
            named = DIRECTORY_ID in (directory / "a" / "meta.properties").read_text()
            assert named == ("-I" in flags)
            assert not named or "elsewhere" in voters_of(host, directory)
            seen.append((files, lines, again.out, payloads))
        assert seen[0] == seen[1]
