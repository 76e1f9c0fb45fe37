"""Raw requests of share groups (KIP-932) to kafkapy and to Apache Kafka, whose responses must be equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.share_client import ShareClient

PROPERTIES = {
    "auto.create.topics.enable": "false",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


def values(count: int) -> list[bytes]:
    return [b"value-%d" % number for number in range(count)]


def accepted_once(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.offsets("before the first fetch")
    client.first_fetch("first")
    client.acknowledge("accepted", "m1", (0, 4, [ACCEPT]))
    client.offsets("half")
    client.acknowledge("again", "m1", (0, 4, [ACCEPT]))
    client.acknowledge("partly again", "m1", (3, 7, [ACCEPT]))
    client.acknowledge("past the acquired records", "m1", (5, 20, [ACCEPT]))
    client.acknowledge("by another member without a session", "m2", (5, 9, [ACCEPT]))
    client.fetch("another member", "m2", wait_ms=0)
    client.acknowledge("of another member", "m2", (5, 9, [ACCEPT]))
    client.acknowledge("the rest", "m1", (5, 9, [ACCEPT]))
    client.offsets("all")
    client.fetch("nothing is left", "m1", wait_ms=0)


def every_type(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.first_fetch("first")
    types = [ACCEPT, RELEASE, REJECT, GAP, RELEASE, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT]
    client.acknowledge("a type for each record", "m1", (0, 9, types))
    client.offsets("the first release holds the start")
    client.fetch("the released records", "m1")
    client.fetch("accepted with the next fetch", "m1", (1, 1, [ACCEPT]), (4, 4, [ACCEPT]), (7, 8, [ACCEPT]), wait_ms=0)
    client.offsets("all")


def malformed_acknowledgements(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.first_fetch("first")
    for title, acks in {
        "backwards": [(3, 1, [ACCEPT])],
        "overlapping": [(0, 5, [ACCEPT]), (3, 6, [ACCEPT])],
        "no types": [(0, 5, [])],
        "too few types": [(0, 5, [ACCEPT, ACCEPT])],
        "unknown type": [(0, 5, [9])],
        "negative type": [(0, 5, [-1])],
        "renewed without saying so": [(0, 5, [RENEW])],
        "one of two is bad": [(0, 5, [ACCEPT]), (8, 30, [ACCEPT])],
    }.items():
        client.acknowledge(title, "m1", *acks)
    client.offsets("nothing has changed")
    client.acknowledge("all are still acquired", "m1", (0, 9, [ACCEPT]))


def sessions(client: ShareClient) -> None:
    client.produce(*values(4))
    client.join()
    client.fetch("no session", epoch=3)
    client.acknowledge("no session", "m1", (0, 0, [ACCEPT]), epoch=1)
    client.fetch("closes what is not open", epoch=-1)
    client.first_fetch("first")
    epoch = client.epochs["m1"]
    client.fetch("an old epoch", epoch=epoch - 1)
    client.fetch("a future epoch", epoch=epoch + 4)
    client.acknowledge("epoch 0", "m1", (0, 0, [ACCEPT]), epoch=0)
    client.fetch("acknowledges with epoch 0", "m1", (0, 0, [ACCEPT]), epoch=0)
    client.acknowledge("the next epoch", "m1", (0, 0, [ACCEPT]))
    client.acknowledge("closes with an acknowledgement", "m1", (1, 1, [ACCEPT]), epoch=-1)
    client.first_fetch("the others were released", "m2")


def delivery_limit(client: ShareClient) -> None:
    client.configure(share_delivery_count_limit="2")
    client.produce(*values(3))
    client.join()
    client.first_fetch("first")
    client.acknowledge("released", "m1", (0, 2, [RELEASE]))
    client.fetch("second")
    client.acknowledge("released for the last time", "m1", (0, 2, [RELEASE]))
    client.fetch("given up", wait_ms=0)
    client.produce(b"next")
    client.fetch("the next record")


def exact_numbers(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.first_fetch("three", max_records=3, exact=True)
    client.fetch("three others", max_records=3, exact=True)
    client.acknowledge("released", "m1", (1, 4, [RELEASE]))
    client.fetch("released and new ones", max_records=6, exact=True)
    client.fetch("whole batches", "m1", (0, 9, [ACCEPT]), max_records=3)
    client.produce(*values(4))
    client.fetch("a whole batch", max_records=1)


def renewal(client: ShareClient) -> None:
    client.produce(*values(4))
    client.join()
    client.first_fetch("first")
    client.acknowledge("renewed", "m1", (0, 1, [RENEW]), is_renewal=True)
    client.fetch("renewed by a fetch", "m1", (2, 3, [RENEW]), is_renewal=True)
    client.acknowledge("still acquired", "m1", (0, 3, [ACCEPT]))
    client.acknowledge("not acquired any more", "m1", (0, 1, [RENEW]), is_renewal=True)


def deleted_groups(client: ShareClient) -> None:
    client.produce(*values(2))
    client.join()
    client.first_fetch("first")
    client.acknowledge("accepted", "m1", (0, 0, [ACCEPT]))
    client.offsets("one is accepted")
    client.delete_group("has a member")
    client.heartbeat("m1", -1)
    client.delete_group("is empty")
    client.delete_group("is gone")
    client.offsets("gone")


def acknowledgements_of_others(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.first_fetch("first")
    client.fetch("opens a session", "m2", epoch=0, wait_ms=0)
    client.acknowledge("not its own", "m2", (2, 5, [ACCEPT]))
    client.acknowledge("not its own, by record", "m2", (2, 3, [ACCEPT, RELEASE]))
    client.acknowledge("released", "m1", (0, 9, [RELEASE]))
    client.fetch("again", "m2")


def uncommitted_transactions(client: ShareClient) -> None:
    client.produce_in_transaction(*values(3))
    client.produce_in_transaction(*values(3), is_aborted=True)
    client.produce(b"last")
    client.join()
    client.first_fetch("all, with the markers")
    client.acknowledge("the markers are gaps", "m1", (0, 8, [ACCEPT] * 3 + [GAP] + [ACCEPT] * 3 + [GAP] + [ACCEPT]))
    client.offsets("all")


def committed_transactions(client: ShareClient) -> None:
    client.configure(share_isolation_level="read_committed")
    client.produce_in_transaction(*values(3))
    client.produce_in_transaction(*values(3), is_aborted=True)
    client.produce(b"last")
    client.join()
    client.first_fetch("without the aborted records")
    client.acknowledge("accepted", "m1", (0, 3, [ACCEPT] * 3 + [GAP]), (7, 8, [GAP, ACCEPT]))
    client.offsets("all")
    client.produce_in_transaction(*values(2), is_aborted=True)
    client.fetch("only a marker", wait_ms=0)
    with client.open_transaction(*values(2)):
        client.fetch("an open transaction", wait_ms=0)
    client.fetch("a committed transaction", "m1", (11, 11, [GAP]))
    client.acknowledge("the rest", "m1", (12, 14, [ACCEPT, ACCEPT, GAP]))
    client.offsets("all of the rest")


def isolation_that_changes(client: ShareClient) -> None:
    client.join()
    with client.open_transaction(*values(2)):
        client.first_fetch("uncommitted")
        client.configure(share_isolation_level="read_committed")
        client.fetch("nothing is stable", wait_ms=0)
        client.acknowledge("still acquired", "m1", (0, 1, [ACCEPT]))
        client.offsets("accepted")
    client.produce_in_transaction(b"last")
    client.fetch("the markers and the last")
    client.acknowledge("all", "m1", (2, 4, [GAP, ACCEPT, GAP]))
    client.offsets("all")


def deleted_records(client: ShareClient) -> None:
    client.produce(*values(5))
    client.produce(*values(5))
    client.join()
    client.first_fetch("first", max_records=5)
    client.delete_records(3)
    client.acknowledge("half is deleted", "m1", (0, 4, [RELEASE]))
    client.offsets("released")
    client.fetch("below the start of the log", wait_ms=0)
    client.fetch("what is left")
    client.delete_records(8)
    client.acknowledge("deleted records", "m1", (3, 6, [ACCEPT]))
    client.acknowledge("the others", "m1", (7, 9, [ACCEPT]))
    client.offsets("all")


def altered_offsets(client: ShareClient) -> None:
    client.produce(*values(10))
    client.join()
    client.first_fetch("first")
    client.acknowledge("accepted", "m1", (0, 4, [ACCEPT]))
    client.alter_offset("has a member", 0)
    client.heartbeat("m1", -1)
    client.alter_offset("behind an open session", 2)
    client.offsets("altered")
    client.acknowledge("in the old state", "m1", (5, 9, [ACCEPT]))
    client.offsets("nothing has changed")
    client.first_fetch("from the new start")


@pytest.mark.parametrize(
    "conversation",
    [accepted_once, every_type, malformed_acknowledgements, sessions, delivery_limit, exact_numbers, renewal,
     deleted_groups, acknowledgements_of_others, uncommitted_transactions, committed_transactions,
     isolation_that_changes, deleted_records, altered_offsets],
    ids=lambda conversation: conversation.__name__,
)  # fmt: skip
def test_the_same_answers_as_apache_kafka(conversation: Callable[[ShareClient], None], ports: tuple[int, int]) -> None:
    said = []
    for port in ports:
        client = ShareClient(port, conversation.__name__.replace("_", "-"))
        try:
            conversation(client)
        finally:
            client.close()
        said.append(client.said)
    assert said[0] == said[1]
