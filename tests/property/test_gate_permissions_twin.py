"""The gate and the Python path return the same answers and leave the same files while permissions change."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kafkapy.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.security.acl import Operation, Permission, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.principal import Principal
from kafkapy.server.gate_rights import GateRights
from tests.api_client import ask
from tests.property.test_gate_twin import (
    CONNECTIONS,
    PROPERTIES,
    SHARED_PARTITIONS,
    STEPS,
    TOPICS,
    Requests,
)
from tests.twin_brokers import BrokerTwin, TwinBrokers, TwinRequest

USERS = 3  # connections share users
CHANGES = 0.15
OPERATIONS = [Operation.READ, Operation.WRITE]


class ChangingAuthorizer:
    """Allows everything but reads and writes of some topics by some users, which `change` draws again."""

    def __init__(self, chance: random.Random) -> None:
        self.generation = 0
        self._chance = chance
        self._denied: set[tuple[str, Operation, str]] = set()

    def change(self) -> None:
        """Denies one more operation, or allows all operations on one topic."""
        chance = self._chance
        topic = chance.choice(list(TOPICS))
        if chance.random() < 0.5:
            self._denied.add((f"user-{chance.randrange(USERS)}", chance.choice(OPERATIONS), topic))
        else:
            self._denied = {each for each in self._denied if each[2] != topic}
        self.generation += 1

    def authorize(self, requester: Requester, actions: Sequence[Action]) -> list[bool]:
        return [
            action.resource_type is not ResourceType.TOPIC
            or (requester.principal.name, action.operation, action.resource_name) not in self._denied
            for action in actions
        ]

    def authorize_by_type(self, requester: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        return True


def install(twin: BrokerTwin, authorizer: ChangingAuthorizer) -> GateRights:
    """Lets the authorizer decide about all requests from now on."""
    parts = twin.broker.parts
    parts.services.gate_rights = GateRights(parts.gate, authorizer)
    parts.services.authorizer = authorizer
    return parts.services.gate_rights


def name_users(twin: BrokerTwin) -> None:
    """Sets the principal of each open connection by its number, so that some connections have the same user."""
    users = {
        connection.getsockname()[1]: Principal("User", f"user-{number % USERS}")
        for number, connection in twin.connections.items()
    }
    for connection in twin.broker.reactor.idle_order():
        connection.state.principal = users.get(connection.peer_port, connection.state.principal)


def separated(step: dict[int, TwinRequest]) -> list[dict[int, TwinRequest]]:
    """Divides requests that append to the same partitions into wake-ups of their own, because the authorizer may leave
    any of them to the Python path, which runs later."""
    wake_ups: list[dict[int, TwinRequest]] = [{}]
    appended: set[tuple[str, int]] = set()
    for number, request in step.items():
        if request[0] is ApiKey.PRODUCE:
            named = {(topic.name, data.index) for topic in request[2].topic_data for data in topic.partition_data}
            if named & appended:
                wake_ups.append({})
                appended = set()
            appended |= named
        wake_ups[-1][number] = request
    return wake_ups


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_same_answers_while_permissions_change(tmp_path, seed):
    for codec in range(1, 5):
        find_codec_functions(codec)  # as if one batch of each codec had been decompressed before
    chance = random.Random(seed)
    requests = Requests(chance)
    twins = TwinBrokers(tmp_path, PROPERTIES)
    for name, (partitions, configs) in TOPICS.items():
        twins.create_topic(name, partitions, configs)
    for _ in range(2):  # Python serves the first batches of a segment and of a producer
        for number in CONNECTIONS:
            topics = [requests.clean_topic(number, range(SHARED_PARTITIONS))]
            twins.wake_up({number: requests.request(topics, is_clean=True)})
    authorizer = ChangingAuthorizer(random.Random(seed + 100))
    rights = [install(twin, authorizer) for twin in (twins.plain, twins.gated)]
    gated_before = twins.gate_counters()["batches_appended"]
    for _ in range(STEPS):
        if chance.random() < CHANGES:
            authorizer.change()
            for each in rights:
                each.check()
        for step in separated(requests.step()):
            name_users(twins.plain)
            name_users(twins.gated)
            requests.sessions.learn(step, twins.wake_up(step))
        if chance.random() < 0.2:
            twins.pipeline(requests.pipelined_step())
    counters = twins.gate_counters()
    assert counters["batches_appended"] - gated_before > STEPS // 4
    assert counters["session_fetches_answered"] > 0
    assert counters["rights_used"] > STEPS
    assert twins.topic_counters(twins.gated) == twins.topic_counters(twins.plain)
    assert twins.request_counts(twins.gated) == twins.request_counts(twins.plain)
    twins.stop_and_compare()


def acl_codes(twins: TwinBrokers, request, response_class, key: ApiKey) -> list[int]:
    """Changes the ACLs of both brokers; returns the error codes."""
    found = [ask(twin.connection(0), key, 3, request, response_class) for twin in (twins.plain, twins.gated)]
    return [each.error_code for response in found for each in (*getattr(response, "results", ()),
                                                               *getattr(response, "filter_results", ()))]  # fmt: skip


def test_the_gate_is_open_with_acls_and_a_change_applies_to_the_next_request(tmp_path):
    keys = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    requests = Requests(random.Random(9))
    twins = TwinBrokers(tmp_path, PROPERTIES | keys)
    twins.create_topic("t-plain", 3, {})

    def produce() -> tuple[int, int]:
        """Returns the error code of an append, and how many requests the gate has served in it."""
        before = twins.gate_counters()["batches_appended"]
        builder = RecordBatchBuilder()
        builder.append(requests.start_ms, None, b"value")
        data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name="t-plain", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        answer = twins.wake_up({1: (ApiKey.PRODUCE, 9, request)})[1]
        code = ProduceResponse.decode(answer, 9, 5).responses[0].partition_responses[0].error_code
        return code, twins.gate_counters()["batches_appended"] - before

    first = [produce()[0] for _ in range(3)]
    assert first == [0, 0, 0]
    assert produce() == (0, 1)
    denial = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "t-plain",
        "resource_pattern_type": 3,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": Operation.WRITE,
        "permission_type": Permission.DENY,
    }
    creation = CreateAclsRequest(creations=[CreateAclsRequest.AclCreation(**denial)])
    everything = {"resource_type_filter": ResourceType.ANY, "resource_name_filter": None, "pattern_type_filter": 1,
                  "principal_filter": None, "host_filter": None, "operation": Operation.ANY,
                  "permission_type": Permission.ANY}  # fmt: skip
    deletion = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**everything)])
    for _ in range(2):
        assert acl_codes(twins, creation, CreateAclsResponse, ApiKey.CREATE_ACLS) == [0, 0]
        assert produce() == (Error.TOPIC_AUTHORIZATION_FAILED, 0)
        assert produce() == (Error.TOPIC_AUTHORIZATION_FAILED, 0)
        assert acl_codes(twins, deletion, DeleteAclsResponse, ApiKey.DELETE_ACLS) == [0, 0]
        assert produce() == (0, 0)
        assert produce() == (0, 1)
    twins.stop_and_compare()
