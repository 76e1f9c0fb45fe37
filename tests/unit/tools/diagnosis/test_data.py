"""The doctor's checks of log directories: owner, lock, kind of the last stop, topics without recent writes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.tools.diagnosis.data import check_data, check_idle_topics, take_inventory
from tests.diagnosis_machine import NOW_S, complaints, machine, only

DAY_S = 86_400
HOLD = (
    "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); print(1, flush=True); input()"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns a data directory of node 1 with two topics and an internal one; `old` was last written to 40 days ago."""
    data = tmp_path / "data"
    for name, days in (("old-0", 50), ("old-1", 40), ("new.topic-0", 3), ("__consumer_offsets-0", 90)):
        (data / name).mkdir(parents=True)
        segment = data / name / "00000000000000000000.log"
        segment.write_bytes(b"x")
        os.utime(segment, (NOW_S - days * DAY_S,) * 2)
        (data / name / "00000000000000000001.log").touch()  # the segment was rolled and is empty
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    (data / ".lock").touch()
    return data


def found_in(data: Path, node_id: str = "1") -> list[tuple[str, str]]:
    config = BrokerConfig({"node.id": node_id, "log.dirs": str(data)})
    return complaints(check_data(config, take_inventory([str(data)])))


def test_topics_without_recent_writes_are_idle(data: Path, tmp_path: Path):
    inventory, system, config = take_inventory([str(data)]), machine(tmp_path), BrokerConfig({"node.id": "1"})
    assert inventory.partitions == 4
    found = only(check_idle_topics(config, system, inventory, 30))
    assert found.text == "1 of 2 were not written to for 30 days: old"
    assert complaints(check_idle_topics(config, system, inventory, 41)) == []
    assert complaints(check_idle_topics(config, system, take_inventory([str(tmp_path)]), 0)) == []


def make_empty_topic(data: Path, topic: str, days: int) -> None:
    """Makes the files of a topic that was created `days` ago and never written to."""
    partition = data / f"{topic}-0"
    partition.mkdir(parents=True)
    for name, content in (("00000000000000000000.log", ""), ("partition.metadata", "version: 0\n")):
        (partition / name).write_text(content)
        os.utime(partition / name, (NOW_S - days * DAY_S,) * 2)


def test_an_empty_topic_is_idle_only_if_it_is_old(tmp_path: Path):
    make_empty_topic(tmp_path / "data", "created-today", 0)
    make_empty_topic(tmp_path / "data", "forgotten", 31)
    config = BrokerConfig({"node.id": "1"})
    found = only(check_idle_topics(config, machine(tmp_path), take_inventory([str(tmp_path / "data")]), 30))
    assert found.text == "1 of 2 were not written to for 30 days: forgotten"


def test_a_new_partition_makes_a_topic_of_old_records_not_idle(data: Path, tmp_path: Path):
    make_empty_topic(data, "other", 1)
    (data / "other-0").rename(data / "old-2")
    config = BrokerConfig({"node.id": "1"})
    assert complaints(check_idle_topics(config, machine(tmp_path), take_inventory([str(data)]), 30)) == []


@pytest.mark.parametrize(
    ("listener", "address"),
    [("PLAINTEXT://:9095", "localhost:9095"), ("PLAINTEXT://[::1]:9096", "[::1]:9096")],
    ids=["every interface", "IPv6"],
)
def test_the_advised_deletion_names_the_brokers_address(listener: str, address: str, data: Path, tmp_path: Path):
    config = BrokerConfig({"node.id": "1", "listeners": listener})
    found = only(check_idle_topics(config, machine(tmp_path), take_inventory([str(data)]), 30))
    command = f"kafkapy topics --bootstrap-server {address} --delete --topic NAME"
    assert found.advice == f"if nobody reads them either: {command}"


def test_a_stop_that_was_not_clean_is_noted(data: Path):
    assert found_in(data) == [("note", "the last stop was not clean: the next start checks 4 partitions")]
    (data / ".kafka_cleanshutdown").touch()
    assert found_in(data) == []


def test_the_directory_of_another_node_is_a_problem(data: Path):
    (data / ".kafka_cleanshutdown").touch()
    assert found_in(data, "2") == [("problem", f"{data} belongs to node 1, but node.id is 2")]


def test_a_broker_that_runs_is_seen_and_not_disturbed(data: Path):
    command = [sys.executable, "-c", HOLD, str(data / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline()
        assert take_inventory([str(data)]).is_running
        holder.communicate(b"\n")
    assert not take_inventory([str(data)]).is_running
    with (data / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_missing_directory_has_no_findings(tmp_path: Path):
    assert found_in(tmp_path / "missing") == []
