"""OffsetCommit 0 and OffsetFetch 0 on a broker with an authorizer, and the requests that brokers forward."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.security.acl import Operation
from kafkapy.server.handlers.offsets_in_zookeeper import commit_to_zookeeper, fetch_from_zookeeper
from kafkapy.server.zookeeper_offsets import ZooKeeperOffsets
from tests.harness.metadata import bootstrapped, with_brokers, with_topic

FORWARDED = "broker-2-zookeeper-offsets"


class ScriptedAuthorizer:
    """Allows the operations in `allowed`."""

    def __init__(self, *allowed: Operation) -> None:
        self.allowed = allowed

    def authorize(self, requester: Any, actions: Any) -> list[bool]:
        return [action.operation in self.allowed for action in actions]


class ScriptedRequests:
    """Sends no request, but records it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, broker_id: int, body: Any, key: Any, on_answer: Any, *, highest: int) -> None:
        self.sent.append((broker_id, body, highest))
        on_answer(None, Error.NETWORK_EXCEPTION)


class Broker:
    """A broker that does not serve the tree; broker 3 does."""

    def __init__(self, *allowed: Operation, client_id: str = "consumer", leader: int | None = 3) -> None:
        self.requests = ScriptedRequests()
        self.answers: list[Any] = []
        image = with_topic(with_brokers(bootstrapped(elr=False), 1), "t", 1)
        services = SimpleNamespace(
            authorizer=ScriptedAuthorizer(*allowed),
            metadata=SimpleNamespace(image=image),
            config=SimpleNamespace(offset_metadata_max_bytes=10),
            zookeeper_offsets=ZooKeeperOffsets(lambda: None, lambda: leader, lambda: self.requests),
            gate_rights=None,
        )
        connection = SimpleNamespace(peer_host="127.0.0.1", listener=SimpleNamespace(name="PLAINTEXT"))
        self.context: Any = SimpleNamespace(
            services=services, client_id=client_id, connection=connection, principal="User:a", api_key=8,
            respond=self.answers.append,
        )  # fmt: skip

    def commit(self) -> Error:
        kind = OffsetCommitRequest
        partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topic = kind.OffsetCommitRequestTopic(name="t", partitions=[partition])
        commit_to_zookeeper(self.context, kind(group_id="g", topics=[topic]))
        return Error.of(self.answers.pop().topics[0].partitions[0].error_code)

    def fetch(self) -> Error:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        fetch_from_zookeeper(self.context, OffsetFetchRequest(group_id="g", topics=[topic]))
        return Error.of(self.answers.pop().topics[0].partitions[0].error_code)


def test_a_request_is_forwarded_in_version_0_once_the_client_is_known_to_be_allowed() -> None:
    broker = Broker(Operation.READ, Operation.DESCRIBE)
    assert broker.commit() == broker.fetch() == Error.COORDINATOR_NOT_AVAILABLE  # no broker answers
    assert [(broker_id, highest) for broker_id, _, highest in broker.requests.sent] == [(3, 0), (3, 0)]
    (_, commit, _), (_, fetch, _) = broker.requests.sent
    assert commit.topics[0].partitions[0].committed_offset == 5
    assert fetch.topics[0].partition_indexes == [0]


def test_a_client_without_permission_is_refused() -> None:
    broker = Broker()
    for call in (broker.commit, broker.fetch):
        with pytest.raises(ApiError) as raised:
            call()
        assert raised.value.error is Error.GROUP_AUTHORIZATION_FAILED
    assert not broker.requests.sent


def test_without_a_leader_there_is_nothing_to_forward_to() -> None:
    broker = Broker(Operation.READ, Operation.DESCRIBE, leader=None)
    assert broker.commit() == broker.fetch() == Error.COORDINATOR_NOT_AVAILABLE
    assert not broker.requests.sent


def test_a_forwarded_request_needs_only_the_permission_of_brokers_and_goes_no_further() -> None:
    broker = Broker(Operation.CLUSTER_ACTION, client_id=FORWARDED)
    assert broker.commit() == broker.fetch() == Error.COORDINATOR_NOT_AVAILABLE
    assert not broker.requests.sent


def test_the_client_id_of_a_broker_alone_permits_nothing() -> None:
    with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
        Broker(client_id=FORWARDED).commit()
