"""The parts of kafka-reassign-partitions that need no cluster: files, throttles, and the racks of a proposal."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkapy.client.admin import Admin, Reassignment, Replica
from kafkapy.client.cluster import Node
from kafkapy.tools.option import ToolError
from kafkapy.tools.reassign_partitions import candidates
from kafkapy.tools.reassignment_file import plan_text, read_plan
from kafkapy.tools.reassignment_progress import Directories, directory_lines
from kafkapy.tools.reassignment_throttles import moves_of, throttled_replicas
from kafkapy.types import TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_plan_is_read_as_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    text = plan_text({SECOND: [2], FIRST: [1, 3]}, {Replica("t", 0, 3): "/data"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,3],"log_dirs":["any","/data"]},'
        '{"topic":"t","partition":1,"replicas":[2],"log_dirs":["any"]}]}'
    )
    path.write_text(text)
    plan = read_plan(str(path))
    assert plan.replicas == {FIRST: (1, 3), SECOND: (2,)}
    assert plan.directories == {Replica("t", 0, 3): "/data"}


@pytest.mark.parametrize("value", [1.5, True, 2**31, None])
def test_a_number_of_another_type_is_refused(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"partitions": [{"topic": "t", "partition": value, "replicas": [1]}]}))
    with pytest.raises(ToolError, match="Error: Expected `Integer` value, received"):
        read_plan(str(path))


def test_throttles_apply_to_the_replicas_of_all_moving_partitions() -> None:
    ongoing = {SECOND: Reassignment((2, 3, 1), (3,), (1,))}
    moves = moves_of(ongoing, {FIRST: [1, 4]}, {FIRST: (1, 2)})
    assert throttled_replicas(moves) == {"t": ("0:1,0:2,1:1,1:2", "0:4,1:3")}


def test_a_replaced_reassignment_moves_from_the_former_replicas() -> None:
    ongoing = {FIRST: Reassignment((2, 3, 1), (3,), (1,))}
    moves = moves_of(ongoing, {FIRST: [4, 3]}, {FIRST: (2, 3, 1)})
    assert throttled_replicas(moves) == {"t": ("0:1,0:2", "0:3,0:4")}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Directories("/b", None), "Reassignment of replica t-0-1 completed successfully."),
        (Directories("/a", "/b"), "Reassignment of replica t-0-1 is still in progress."),
        (Directories("/a", "/c"), "Partition t-0 on broker 1 is being moved to log dir /c instead of /b."),
        (Directories("/a", None), "Partition t-0 on broker 1 is not being moved from log dir /a to /b."),
        (
            Directories(None, None),
            "Partition t-0 is not found in any live log dir on broker 1. There is likely an offline log directory on "
            "the broker.",
        ),
    ],
)
def test_the_state_of_a_move_between_directories(found: Directories, words: str) -> None:
    replica = Replica("t", 0, 1)
    assert directory_lines({replica: "/b"}, {replica: found}) == [words]


def cluster_with_racks(*racks: str | None) -> Admin:
    nodes = tuple(Node(number, "host", 9092, rack) for number, rack in enumerate(racks, 1))
    return cast(Admin, SimpleNamespace(describe_cluster=lambda: SimpleNamespace(brokers=nodes)))


def test_a_proposal_needs_racks_of_all_brokers_or_none() -> None:
    with pytest.raises(ToolError, match="--disable-rack-aware"):
        candidates(cluster_with_racks("a", None), [1, 2], is_rack_aware=True)
    assert [each.rack for each in candidates(cluster_with_racks("a", None), [1, 2], is_rack_aware=False)] == [None] * 2
    assert [each.rack for each in candidates(cluster_with_racks("a", None), [1], is_rack_aware=True)] == ["a"]
