"""The doctor's findings about a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.admin import Node, PartitionDescription, QuorumDescription, QuorumReplica
from kafkapy.tools.diagnosis.cluster import ClusterFacts, check_cluster

BROKERS = tuple(Node(number, f"host{number}", 9092, f"r{number}") for number in (1, 2, 3))


def partition(
    leader: int = 1, isr: tuple[int, ...] = (1, 2, 3), number: int = 0, **fields: Any
) -> PartitionDescription:
    return PartitionDescription(number, leader, 0, (1, 2, 3), isr, **fields)


def voter(number: int, end: int = 100, fetched: int = 50_000) -> QuorumReplica:
    return QuorumReplica(number, bytes(16), end, fetched, fetched)


QUORUM = QuorumDescription(1, 1, 100, tuple(map(voter, (1, 2, 3))), (), {})
HEALTHY = ClusterFacts(
    BROKERS,
    frozenset(),
    {},
    {"t": (partition(),)},
    {"t": 2},
    {number: {"log.retention.ms": "5", "listeners": str(number)} for number in (1, 2, 3)},
    {1: (), 2: (), 3: ()},
    QUORUM,
    asked_ms=50_000,
    answered_ms=50_010,
    controller_ms=50_005,
)


def found(**changes: Any) -> list[str]:
    return [f"{each.level} {each.text}" for each in check_cluster(HEALTHY._replace(**changes)) if each.level != "good"]


def test_a_healthy_cluster_is_good() -> None:
    assert found() == []
    subjects = [each.subject for each in check_cluster(HEALTHY)]
    assert subjects == ["brokers", "partitions", "leaders", "replication", "quorum", "configuration", "clock"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"fenced": frozenset({3})}, "problem broker 3 is registered, but fenced"),
        ({"failures": {2: "timed out"}}, "problem broker 2 does not answer this machine: timed out"),
        ({"failed_dirs": {2: ("/data",)}}, "problem the log directory /data of broker 2 has failed"),
        (
            {"brokers": (*BROKERS[:2], BROKERS[2]._replace(rack=None))},
            "warning broker.rack is set on some brokers only",
        ),
        ({"partitions": {"t": (partition(-1, (), elr=(2,)),)}}, "problem t-0 has no leader; its replicas are on 1,2,3"),
        ({"partitions": {"t": (partition(isr=(1,)),)}}, "problem 1 partitions refuse acks=all"),
        (
            {"partitions": {"t": (partition(isr=(1, 2)),)}},
            "warning 1 partitions have replicas that are not in sync: t-0",
        ),
        ({"partitions": {"t": (partition(2),)}}, "warning 1 partitions are not led by their preferred replica"),
        (
            {"partitions": {"t": tuple(partition(number=number) for number in range(30))}},
            "warning broker 1 leads 30 of 30 partitions (leaders by broker: 1: 30, 2: 0, 3: 0)",
        ),
        ({"min_isr": {"t": 3}}, "warning 1 topics refuse acks=all as soon as one broker stops"),
        (
            {"partitions": {"t": (PartitionDescription(0, 1, 0, (1,), (1,)),)}, "min_isr": {"t": 1}},
            "warning 1 topics have partitions with one replica, which fail with its broker: t",
        ),
        ({"quorum": None}, "problem there is no active controller"),
        (
            {"quorum": QUORUM._replace(voters=(voter(1), voter(2), voter(3, 40, 10_000)))},
            "problem voter 3 is 60 records behind and last fetched 40000 ms ago",
        ),
        ({"quorum": QUORUM._replace(voters=(voter(1),))}, "warning node 1 is the only voter"),
        ({"quorum": QUORUM._replace(voters=(voter(1), voter(2)))}, "note 2 voters survive the loss of 0"),
        (
            {"configs": {1: {"log.retention.ms": "5"}, 2: {"log.retention.ms": "5"}, 3: {"log.retention.ms": "6"}}},
            "warning log.retention.ms differs between brokers: 5 on 1,2; 6 on 3",
        ),
        ({"controller_ms": 47_500}, "warning the clock of the active controller is 2.5 s behind that of this machine"),
        ({"controller_ms": 60_010}, "warning the clock of the active controller is 10.0 s ahead of that of this"),
    ],
)
def test_a_finding(changes: dict[str, Any], text: str) -> None:
    texts = found(**changes)
    assert len(texts) == 1, texts
    assert texts[0].startswith(text)


def test_the_advice_names_the_eligible_replica() -> None:
    facts = HEALTHY._replace(partitions={"t": (partition(-1, (), elr=(2,)),)})
    (advice,) = [each.advice for each in check_cluster(facts) if each.level == "problem"]
    assert advice.startswith("start broker 2, which has all records; if that is impossible")
