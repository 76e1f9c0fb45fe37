"""The tool `storage` and Apache Kafka's: the same files for every kind of node, and the same refusals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkapy.types import uuid_from_string
from tests.role_refusals import ACCEPTED, BOTH, BROKER, CONTROLLER, REFUSED, SERVERS, VOTERS
from tests.tools.side_by_side import words_of
from tests.tools.tool_host import Done, ToolHost, run_ours

CLUSTER = "DOmtQuZXQo-RFPyau_d8Xg"
IDS = ("JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA")
THREE = ",".join(f"{number}@host-{number}:9{number}93:{each}" for number, each in enumerate(IDS, 1))
SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
# The place of this field in the first record of a snapshot.
LAST_CONTAINED_LOG_TIMESTAMP = slice(73, 81)
Run = Callable[..., Done]


class Format(NamedTuple):
    """A configuration to format, and the flags of `format`."""

    properties: dict[str, str]
    flags: str = ""


STATIC = {**BOTH, SERVERS: "", VOTERS: "1@localhost:9093,2@localhost:9193,3@localhost:9293"}
FORMATS = {
    "both, standalone": Format(BOTH, "--standalone"),
    "controller, standalone": Format(CONTROLLER, "-s"),
    "both, the first of three voters": Format(BOTH, f"--initial-controllers {THREE}"),
    "controller, the last of three voters": Format(CONTROLLER, f"-I {THREE}"),
    "both, none of the voters": Format({**BOTH, "node.id": "9"}, f"-I {THREE}"),
    "both, joins later": Format(BOTH, "--no-initial-controllers"),
    "controller, joins later": Format(CONTROLLER, "-N"),
    "broker": Format(BROKER),
    "broker with --no-initial-controllers": Format(BROKER, "-N"),
    "broker with --initial-controllers": Format({**BROKER, "node.id": "9"}, f"-I {THREE}"),
    "static voters, both": Format(STATIC),
    "static voters, controller": Format(ACCEPTED["static voters with a controller"]),
    "static voters, broker": Format(ACCEPTED["static voters with a broker"]),
    "static voters with --no-initial-controllers": Format(STATIC, "-N"),
    "release 3.9": Format(BOTH, "-s --release-version 3.9"),
    "no share and streams groups": Format(BOTH, "-s --feature share.version=0 --feature streams.version=0"),
    "controller advertised": Format(ACCEPTED["controller advertised"], "-s"),
    "every interface": Format(ACCEPTED["every interface"], "-s"),
    "two controller listeners": Format(ACCEPTED["two controller listeners"], f"-I {THREE}"),
    "kraft.version named": Format(BOTH, "-s -f kraft.version=1"),
}
REFUSED_FLAGS = {
    "standalone on a broker": Format(BROKER, "-s"),
    "standalone with static voters": Format(STATIC, "-s"),
    "voters named twice": Format(STATIC, f"-I {THREE}"),
    "no voters named": Format(BOTH),
    "no voters named on a controller": Format(CONTROLLER),
    "two ways to name voters": Format(BOTH, f"-s -I {THREE}"),
    "standalone and none": Format(BOTH, "-s -N"),
    "kraft.version 0 of a dynamic quorum": Format(BOTH, "-s -f kraft.version=0"),
    "kraft.version 0 of a broker": Format(BROKER, "-f kraft.version=0"),
    "kraft.version 1 of a static quorum": Format(STATIC, "-f kraft.version=1"),
    "group.version 9": Format(BOTH, "-s -f group.version=9"),
    "metadata.version not stable": Format(BOTH, "-s -f metadata.version=31"),
    "kraft.version 2": Format(BOTH, "-s -f kraft.version=2"),
    "a feature that the release lacks": Format(BOTH, "-s -r 3.9 -f eligible.leader.replicas.version=1"),
    "an unknown release": Format(BOTH, "-s -r 9.9"),
    "metadata.version twice": Format(BOTH, "-s -r 3.9 -f metadata.version=21"),
    "metadata.version too new": Format(BOTH, "-s -f metadata.version=99"),
}


def configure(directory: Path, properties: dict[str, str]) -> Path:
    """Writes the file of a node with two log directories, `a` and `b`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "server.properties"
    settings = {**properties, "log.dirs": f"{directory}/a,{directory}/b"}
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def format_by(run: Run, config: Path, flags: str, cluster: str = CLUSTER) -> Done:
    return run("storage", "format", "-c", str(config), "-t", cluster, *flags.split())


def content(directory: Path) -> dict[str, bytes]:
    """Returns every file below a directory. Ids and times, which no two runs share, are replaced by zeros."""
    files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    files.pop("server.properties")
    ids = [
        re.search(rb"directory\.id=(.*)", found) for name, found in files.items() if name.endswith("meta.properties")
    ]
    known = [uuid_from_string(found[1].decode()) for found in ids if found is not None]
    return {name: _without_ids(name, found, known) for name, found in files.items()}


def _without_ids(name: str, found: bytes, directory_ids: list[bytes]) -> bytes:
    if name.endswith("meta.properties"):
        lines = found.decode().splitlines()
        kept = [re.sub(r"directory\.id=.*", "directory.id=", line) for line in lines if not line.startswith("#")]
        return "\n".join(sorted(kept)).encode()
    for each in directory_ids:
        found = found.replace(each, bytes(16))
    content, position = bytearray(found), 0
    while position < len(content):
        content[position + 17 : position + 21] = bytes(4)  # the checksum
        content[position + 27 : position + 43] = bytes(16)  # both timestamps
        position += int.from_bytes(content[position + 8 : position + 12], "big") + 12
    content[LAST_CONTAINED_LOG_TIMESTAMP] = bytes(8)
    return bytes(content)


def ours_or_theirs(host: ToolHost, side: str) -> Run:
    return host.run if side == "apache" else run_ours


@pytest.mark.parametrize("name", FORMATS)
def test_format_writes_the_same_files(host: ToolHost, tmp_path: Path, name: str):
    properties, flags = FORMATS[name]
    seen = []
    for side in ("apache", "kafkapy"):
        directory = tmp_path / side
        config = configure(directory, properties)
        done = format_by(ours_or_theirs(host, side), config, flags)
        assert done.code == 0, (side, done)
        lines = sorted(done.out.replace(str(directory), "").splitlines())
        modes = sorted(oct(path.stat().st_mode & 0o777) for path in directory.rglob("0*.checkpoint"))
        seen.append((content(directory), lines, modes))
    assert seen[0] == seen[1]
    has_voters = "-s" in flags.split() or "-I" in flags or "--standalone" in flags or "--initial" in flags
    assert (f"a/{SNAPSHOT}" in seen[0][0]) == has_voters


@pytest.mark.parametrize("name", REFUSED_FLAGS)
def test_format_refuses_the_same_flags(host: ToolHost, tmp_path: Path, name: str):
    properties, flags = REFUSED_FLAGS[name]
    config = configure(tmp_path, properties)
    theirs, ours = (format_by(run, config, flags) for run in (host.run, run_ours))
    assert theirs.code == ours.code == 1
    assert words_of(ours.err) == words_of(theirs.err)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", REFUSED)
def test_a_configuration_is_refused_in_kafkas_words(host: ToolHost, tmp_path: Path, name: str):
    """The unit tests compare our text with the expected one; here Apache Kafka says it."""
    properties, text = REFUSED[name]
    config = configure(tmp_path, properties)
    flags = "" if properties["process.roles"] == "broker" else "-N"
    theirs = format_by(host.run, config, flags)
    assert theirs.code == 1
    assert words_of(theirs.err).removeprefix("requirement failed: ") == text


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_configuration_is_accepted_by_both(host: ToolHost, tmp_path: Path, name: str):
    properties = ACCEPTED[name]
    flags = "-s" if "controller" in properties["process.roles"] and not properties.get(VOTERS) else ""
    for side in ("apache", "kafkapy"):
        config = configure(tmp_path / side, properties)
        assert format_by(ours_or_theirs(host, side), config, flags).code == 0


def formatted(directory: Path, **changes: str) -> Path:
    """Formats a combined node and changes lines of one directory's meta.properties; returns its configuration."""
    config = configure(directory, BOTH)
    assert format_by(run_ours, config, "-s").code == 0
    path = directory / "b" / "meta.properties"
    text = path.read_text()
    for key, value in changes.items():
        text = re.sub(rf"(?m)^{key.replace('_', '.')}=.*$", f"{key.replace('_', '.')}={value}", text)
    path.write_text(text)
    return config


@pytest.mark.parametrize(
    ("changes", "flags", "cluster"),
    [
        ({}, "-s", CLUSTER),
        ({}, "-s -g", CLUSTER),
        ({}, "-s -g", "AAAAAAAAAAAAAAAAAAAAAQ"),
        ({"node_id": "7"}, "-s -g", CLUSTER),
        ({"cluster_id": "another"}, "-s -g", CLUSTER),
        ({"directory_id": "AAAAAAAAAAAAAAAAAAAAAA"}, "-s -g", CLUSTER),
        ({"node_id": "one"}, "-s -g", CLUSTER),
        ({"node_id": "one"}, "-s", CLUSTER),
    ],
)
def test_formatted_directories_are_refused_or_left_alike(host: ToolHost, tmp_path: Path, changes, flags, cluster):
    config = formatted(tmp_path, **changes)
    before = content(tmp_path)
    theirs, ours = (format_by(run, config, flags, cluster) for run in (host.run, run_ours))
    # Apache Kafka names any of the formatted directories.
    said = [re.sub(rf"{tmp_path}/[ab] is already", "is already", words_of(done.err)) for done in (theirs, ours)]
    assert said[1] == said[0]
    assert (ours.code, ours.out) == (theirs.code, theirs.out)
    assert content(tmp_path) == before


def test_only_the_new_directory_is_formatted(host: ToolHost, tmp_path: Path):
    """A disk that was replaced is formatted with --ignore-formatted; the others stay."""
    seen = []
    for side, lost in itertools.product(("apache", "kafkapy"), ("a", "b")):
        directory = tmp_path / f"{side}-{lost}"
        config = formatted(directory)
        kept = "b" if lost == "a" else "a"
        before = (directory / kept / "meta.properties").read_text()
        for path in sorted((directory / lost).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        done = format_by(ours_or_theirs(host, side), config, "-N -g")
        assert (directory / kept / "meta.properties").read_text() == before
        seen.append((lost, done.code, done.out.replace(str(directory), ""), sorted(content(directory))))
    assert seen[:2] == seen[2:]
