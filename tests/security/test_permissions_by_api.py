"""The permissions that each API needs: kafkapy and Apache Kafka answer alike, with the error codes of the table.

`permission_cases` has the table. Every case is sent by a user of its own, whose ACLs are the permissions of the case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.api_client import ask
from tests.peers import kafka_directory
from tests.reactor_harness import frame, receive_frame
from tests.reference.wire import Codec
from tests.security.permission_cases import (
    ABSENT,
    BROKER,
    CASES,
    CLOSED,
    CONSUMER_GROUP,
    CONTROLLER,
    GROUP,
    OTHER,
    STREAMS_GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Case,
    Context,
    Expected,
    formatted,
)
from tests.security.secured_brokers import (
    SecuredBroker,
    SecuredKafka,
    SecuredKafkapy,
    allow,
    ask_as_admin,
    connect,
)
from tests.server_process import ServerProcess
from tests.wire import every_version
from tests.wire.every_version import comparable, decode_answer, fill, header, request_body

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
USERS = [f"user{number}" for number in range(len(CASES))]
REGEX_USER, STRANGER = "regex", "stranger"
NOT_COMPARED = {
    (ApiKey.PRODUCE, "garbage"),  # Apache Kafka reads the records before it checks permissions
    (ApiKey.API_VERSIONS, "all"),  # the features of the two brokers differ
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "all"),  # Apache Kafka 4.3.0 fails, and never answers
}
WAIT_S = 60


class PreparedBroker:
    """A broker with topics, groups, a transaction and the ACLs of all cases."""

    def __init__(self, server: SecuredBroker) -> None:
        self.server = server
        allow(server, {user: formatted(list(case.permissions), user) for user, case in zip(USERS, CASES, strict=True)})
        deleted = [f"gone-{user}" for user, case in zip(USERS, CASES, strict=True) if case.key == ApiKey.DELETE_TOPICS]
        self.ids = self._create_topics([TOPIC, OTHER, *deleted])
        for group in (GROUP, "to-delete"):
            self._repeat(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key=group))
            self._repeat(ApiKey.OFFSET_COMMIT, 8, _commit(group))
        self._repeat(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=1))
        self._begin_transaction()
        self._join()
        self._join_streams()

    def answer(self, user: str, case: Case) -> Any:
        """Returns the answer as comparable values, or CLOSED."""
        codec = Codec(f"{API_TABLE[case.key].name}Request", case.version)
        values = formatted(case.values(Context(user, self.ids)), user)
        body = codec.encode(fill(codec, codec.message["fields"], values))
        return self._send(user, case.key, case.version, body, case.listener)

    def answer_in_version(self, case: every_version.Case, version: int) -> Any:
        """Returns the answer to a user without permissions as comparable values, or CLOSED."""
        ids = {every_version.TOPIC: self.ids[TOPIC], "nobody": every_version.UNKNOWN_ID}
        return self._send(STRANGER, case.key, version, request_body(case, version, ids))

    def _send(self, user: str, key: ApiKey, version: int, body: bytes, listener: str = BROKER) -> Any:
        port = self.server.controller_port if listener == CONTROLLER else self.server.port
        with connect(self.server, user, port) as client:
            client.sendall(frame(header(key, version) + body))
            try:
                payload = bytes(receive_frame(client))
            except ConnectionError:
                return CLOSED
        return comparable(decode_answer(key, version, payload))

    def _create_topics(self, names: list[str]) -> dict[str, bytes]:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=30000)
        created = ask_as_admin(self.server, ApiKey.CREATE_TOPICS, 7, request)
        assert {each.error_code for each in created.topics} == {0}, created
        return {each.name: bytes(each.topic_id) for each in created.topics}

    def _begin_transaction(self) -> None:
        begun = self._repeat(
            ApiKey.INIT_PRODUCER_ID, 4,
            InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=900_000),
        )  # fmt: skip
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TOPIC, OTHER)
        ]
        self._repeat(
            ApiKey.ADD_PARTITIONS_TO_TXN, 3,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TRANSACTIONAL_ID, v3_and_below_producer_id=begun.producer_id,
                v3_and_below_producer_epoch=begun.producer_epoch, v3_and_below_topics=topics,
            ),
        )  # fmt: skip

    def _join(self) -> None:
        """Makes a member of the consumer group that has a partition assigned."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP, member_id="member", member_epoch=0, rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[],
        )  # fmt: skip
        self._repeat(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def _join_streams(self) -> None:
        """Makes a member of the streams group, whose source topics do not all exist."""
        subtopology = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=[TOPIC, ABSENT])
        request = StreamsGroupHeartbeatRequest(
            group_id=STREAMS_GROUP, member_id="member", member_epoch=0, rebalance_timeout_ms=60_000, process_id="p",
            topology=StreamsGroupHeartbeatRequest.Topology(epoch=0, subtopologies=[subtopology]),
            active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        self._repeat(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)

    def _repeat(self, key: ApiKey, version: int, request: Any) -> Any:
        """Sends the request until the response has no error, because the leader or coordinator may not be ready yet."""
        deadline = time.monotonic() + WAIT_S
        while True:
            response = ask_as_admin(self.server, key, version, request)
            if codes_of_message(response) <= {0}:
                return response
            assert time.monotonic() < deadline, response
            time.sleep(0.05)


def _commit(group: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata="m"
    )
    topics = [
        OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in (TOPIC, OTHER)
    ]
    return OffsetCommitRequest(group_id=group, topics=topics)


@cache
def versions_of_both(*servers: ServerProcess) -> dict[int, list[int]]:
    """Returns the versions of each API that all servers announce; Produce before version 3 is announced only."""
    found: dict[int, list[int]] = {}
    for server in servers:
        response = ask_as_admin(server, ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        for each in response.api_keys:
            lowest = max(each.min_version, 3) if each.api_key == ApiKey.PRODUCE else each.min_version
            versions = range(lowest, each.max_version + 1)
            found[each.api_key] = [each for each in found.get(each.api_key, versions) if each in versions]
    return found


def codes_of_message(message: Any) -> set[int]:
    """Returns the error codes in a message and in the structs in it."""
    found = set()
    for name in message.FIELDS:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            found |= codes_of_message(each) if hasattr(each, "FIELDS") else set()
    return found


def codes(answer: Any, name: str = "") -> Expected:
    """Returns the error codes in an answer of comparable values, without 0."""
    if answer == CLOSED:
        return CLOSED
    if name.endswith("error_code"):
        return {answer} - {0}
    if isinstance(answer, dict):
        return set().union(*(codes(value, key) for key, value in answer.items()))
    return set().union(*map(codes, answer)) if isinstance(answer, list) else set()


def without_differences(answer: Any) -> Any:
    """Returns the answer without the order of lists, times, and messages with objects of Java or ids of clusters."""
    if isinstance(answer, list):
        return sorted(map(without_differences, answer), key=repr)
    if not isinstance(answer, dict):
        return answer
    left_out = {"transaction_start_time_ms"}
    if answer.get("error_code") in (31, 104):
        left_out.add("error_message")
    return {key: without_differences(each) for key, each in answer.items() if key not in left_out}


@pytest.fixture(params=["kafkapy", "apache"])
def broker(request: pytest.FixtureRequest) -> PreparedBroker:
    prepared: PreparedBroker = request.getfixturevalue(request.param)
    return prepared


@pytest.fixture(scope="module")
def kafkapy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreparedBroker]:
    with SecuredKafkapy(tmp_path_factory.mktemp("kafkapy"), [*USERS, REGEX_USER, STRANGER]) as server:
        yield PreparedBroker(server)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreparedBroker]:
    with SecuredKafka(
        kafka_directory("4.3.0"), tmp_path_factory.mktemp("apache"), [*USERS, REGEX_USER, STRANGER]
    ) as server:
        yield PreparedBroker(server)


@pytest.mark.parametrize(("user", "case"), [*zip(USERS, CASES, strict=True)], ids=[case.label for case in CASES])
def test_permission(kafkapy: PreparedBroker, apache: PreparedBroker, user: str, case: Case) -> None:
    theirs = apache.answer(user, case)
    assert codes(theirs) == case.expected
    ours = kafkapy.answer(user, case)
    assert codes(ours) == case.expected
    assert without_differences(ours) == without_differences(theirs)


@pytest.mark.parametrize("key", sorted({case.key for case in every_version.cases()}), ids=lambda key: key.name)
def test_a_client_without_permissions_gets_the_same_answer_in_every_version(
    kafkapy: PreparedBroker, apache: PreparedBroker, key: ApiKey
) -> None:
    versions = versions_of_both(kafkapy.server, apache.server).get(key, [])
    for case in every_version.cases():
        for version in versions:
            if case.key == key and version in case.versions and (key, case.name) not in NOT_COMPARED:
                theirs = without_differences(apache.answer_in_version(case, version))
                assert without_differences(kafkapy.answer_in_version(case, version)) == theirs, (case.name, version)


def test_a_regular_expression_matches_only_topics_that_the_member_may_describe(broker: PreparedBroker) -> None:
    allow(broker.server, {REGEX_USER: ["Read group by-pattern", "Describe topic u", "Read topic gone-for-ever"]})
    request = ConsumerGroupHeartbeatRequest(
        group_id="by-pattern", member_id="member", member_epoch=0, rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*", topic_partitions=[],
    )  # fmt: skip
    deadline = time.monotonic() + WAIT_S
    with connect(broker.server, REGEX_USER) as client:
        while True:
            response = ask(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse)
            assert response.error_code == 0, response
            if response.assignment is not None and response.assignment.topic_partitions:
                break
            assert time.monotonic() < deadline, response
            time.sleep(0.05)
            request = ConsumerGroupHeartbeatRequest(
                group_id="by-pattern", member_id="member", member_epoch=response.member_epoch
            )
    assert [bytes(each.topic_id) for each in response.assignment.topic_partitions] == [broker.ids["u"]]
