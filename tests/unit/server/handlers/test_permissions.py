"""The questions that handlers ask the authorizer, and the answers for clients that are denied.

`tests/security/test_permissions_by_api.py` compares the answers of every API with Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.image import BROKER_RESOURCE
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.security.acl import CLUSTER_NAME, Operation, ResourceType
from kafkapy.server.authorization import OPERATIONS_NOT_ASKED_FOR
from kafkapy.server.handlers.configs import handle_alter_configs, handle_incremental_alter_configs
from kafkapy.server.handlers.fetch import handle_fetch
from kafkapy.server.handlers.metadata import handle_metadata
from kafkapy.server.handlers.offsets import handle_offset_commit, handle_offset_fetch
from kafkapy.server.handlers.produce import handle_produce
from kafkapy.server.handlers.topics import handle_delete_topics
from tests.harness.admin import AdminHarness
from tests.harness.granted_operations import GrantedOperations
from tests.harness.group_handler import GroupHandlerHarness
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NODE_ID, batch, partition_image

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER


@pytest.fixture
def harness(tmp_path: Path) -> HandlerHarness:
    made = HandlerHarness(tmp_path, brokers=(NODE_ID, 2))
    for name in ("t", "u"):
        made.put_topic(name, [partition_image(), partition_image()])
    made.services.authorizer = GrantedOperations()
    return made


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[AdminHarness]:
    harness = AdminHarness(tmp_path / "data")
    harness.create_topic("t")
    harness.create_topic("u")
    harness.services.authorizer = GrantedOperations()
    yield harness
    harness.loop.stop()


def granted(harness: Any) -> GrantedOperations:
    authorizer: GrantedOperations = harness.services.authorizer
    return authorizer


def produce(*names: str, acks: int = -1, transactional_id: str | None = None, records: bytes | None = None) -> Any:
    topics = [
        ProduceRequest.TopicProduceData(
            name=name,
            partition_data=[
                ProduceRequest.PartitionProduceData(index=index, records=records or batch(b"a")) for index in (0, 1)
            ],
        )
        for name in names
    ]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics, transactional_id=transactional_id)


def errors(response: Any) -> dict[str, set[int]]:
    return {topic.name: {each.error_code for each in topic.partition_responses} for topic in response.responses}


def test_produce_appends_to_the_permitted_topics_and_asks_once_for_each(harness: HandlerHarness) -> None:
    granted(harness).grant(Operation.WRITE, TOPIC, "t")
    response = harness.send(handle_produce, produce("t", "u", "absent"), 12).response
    assert errors(response) == {"t": {0}, "u": {29}, "absent": {29}}
    assert granted(harness).questions() == [
        (Operation.WRITE, "t", 1), (Operation.WRITE, "u", 1), (Operation.WRITE, "absent", 1)
    ]  # fmt: skip
    assert [each.log.log_end_offset for each in harness.manager.partitions.values()] == [1, 1, 0, 0]


def test_a_denied_produce_without_acks_closes_the_connection(harness: HandlerHarness) -> None:
    granted(harness).grant(Operation.WRITE, TOPIC, "t")
    assert harness.send(handle_produce, produce("t", acks=0), 12).connection.closed is None
    assert harness.send(handle_produce, produce("u", acks=0), 12).connection.closed is not None


def fetch(harness: HandlerHarness, *names: str, session: tuple[int, int] = (0, -1), replica_id: int = -1) -> Any:
    topics = [
        FetchRequest.FetchTopic(
            topic=name, partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)]
        )
        for name in names
    ]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=topics, session_id=session[0], session_epoch=session[1],
        replica_id=replica_id,
    )  # fmt: skip
    response = harness.send(handle_fetch, request, 12).response
    found = {topic.topic: [each.error_code for each in topic.partitions] for topic in response.responses}
    return response.session_id, found


def test_a_fetch_in_a_session_is_checked_again(harness: HandlerHarness) -> None:
    granted(harness).grant(Operation.READ, TOPIC, "t", "u")
    session_id, found = fetch(harness, "t", "u", session=(0, 0))
    assert found == {"t": [0], "u": [0]}
    granted(harness).granted.clear()
    assert fetch(harness, session=(session_id, 1))[1] == {"t": [29], "u": [29]}
    granted(harness).grant(Operation.READ, TOPIC, "u")
    assert fetch(harness, session=(session_id, 2))[1] == {"t": [29], "u": [0]}


def test_a_follower_needs_no_permission_for_topics(harness: HandlerHarness) -> None:
    granted(harness).grant(Operation.READ, TOPIC, "t")
    assert fetch(harness, "t", replica_id=2)[1] == {"t": [Error.TOPIC_AUTHORIZATION_FAILED]}
    assert granted(harness).questions() == [(Operation.CLUSTER_ACTION, CLUSTER_NAME, 1)]
    granted(harness).grant(Operation.CLUSTER_ACTION, CLUSTER)
    assert Error.TOPIC_AUTHORIZATION_FAILED not in fetch(harness, "t", replica_id=2)[1]["t"]


def metadata(harness: AdminHarness, *names: str, create: bool = False) -> Any:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(
        topics=topics or None, allow_auto_topic_creation=create, include_topic_authorized_operations=True
    )
    return harness.send(handle_metadata, request, 12)


def test_metadata_is_not_shared_by_clients_with_different_permissions(admin: AdminHarness) -> None:
    granted(admin).grant(Operation.DESCRIBE, TOPIC, "t", "u")
    assert [topic.name for topic in metadata(admin).topics] == ["t", "u"]
    granted(admin).granted.clear()
    granted(admin).grant(Operation.READ, TOPIC, "u")
    [topic] = metadata(admin).topics
    assert topic.name == "u"
    assert topic.topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE


def test_metadata_does_not_show_whether_a_hidden_topic_exists(admin: AdminHarness) -> None:
    hidden, absent = metadata(admin, "t", "absent").topics
    assert {hidden.name, absent.name} == {"t", "absent"}
    for topic in (hidden, absent):
        assert (topic.error_code, topic.partitions) == (Error.TOPIC_AUTHORIZATION_FAILED, [])
        assert (topic.topic_id, topic.topic_authorized_operations) == (bytes(16), OPERATIONS_NOT_ASKED_FOR)


@pytest.mark.parametrize("where", ["topic", "cluster", "nowhere"])
def test_a_topic_is_created_for_a_client_that_may_create_it(admin: AdminHarness, where: str) -> None:
    granted(admin).grant(Operation.DESCRIBE, TOPIC, "new")
    if where != "nowhere":
        granted(admin).grant(Operation.CREATE, *((TOPIC, "new") if where == "topic" else (CLUSTER,)))
    [topic] = metadata(admin, "new", create=True).topics
    expected = Error.TOPIC_AUTHORIZATION_FAILED if where == "nowhere" else Error.UNKNOWN_TOPIC_OR_PARTITION
    assert topic.error_code == expected
    if where == "nowhere":
        assert "new" not in admin.metadata.image.topics.by_name


def test_topics_are_deleted_by_id_without_showing_their_names(admin: AdminHarness) -> None:
    topics = admin.metadata.image.topics.by_name
    granted(admin).grant(Operation.DESCRIBE, TOPIC, "u")
    ids = [DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topics[name].topic_id) for name in ("t", "u")]
    response = admin.send(handle_delete_topics, DeleteTopicsRequest(topics=ids, timeout_ms=1000), 6)
    assert [(each.name, each.error_code) for each in response.responses] == [(None, 29), ("u", 29)]
    assert set(admin.metadata.image.topics.by_name) == {"t", "u"}


def test_all_offsets_of_a_group_are_those_of_visible_topics(tmp_path: Path) -> None:
    harness = GroupHandlerHarness(tmp_path)
    harness.put_topic("u", [partition_image()])
    authorizer = harness.services.authorizer = GrantedOperations()
    authorizer.grant(Operation.READ, ResourceType.GROUP, "g")
    authorizer.grant(Operation.READ, TOPIC, "t", "u")
    commit(harness, "t", "u")
    authorizer.granted.discard((Operation.READ, TOPIC, "u"))
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)])
    [group] = harness.send(handle_offset_fetch, request, 8).response.groups
    assert [topic.name for topic in group.topics] == ["t"]


def commit(harness: GroupHandlerHarness, *names: str) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in names]
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    response = harness.send(handle_offset_commit, request, 8).response
    assert {each.error_code for topic in response.topics for each in topic.partitions} == {0}


@pytest.mark.parametrize("is_incremental", [True, False])
def test_files_of_key_stores_are_read_only_for_clients_that_may_change_them(
    admin: AdminHarness, is_incremental: bool
) -> None:
    """The file may be one that the broker waits for, such as a terminal."""
    read: list[str] = []
    admin.services.tls_listeners = SimpleNamespace(check=lambda overrides, names: read.extend(names))
    name = "listener.name.ssl.ssl.keystore.location"
    request: Any
    if is_incremental:
        kind: Any = IncrementalAlterConfigsRequest
        configs = [kind.AlterableConfig(name=name, config_operation=0, value="/dev/ptmx")]
        handler: Any = handle_incremental_alter_configs
    else:
        kind = AlterConfigsRequest
        configs = [kind.AlterableConfig(name=name, value="/dev/ptmx")]
        handler = handle_alter_configs
    request = kind(
        resources=[kind.AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1", configs=configs)]
    )
    (refused,) = admin.send(handler, request, 1).responses
    assert (refused.error_code, read) == (Error.CLUSTER_AUTHORIZATION_FAILED, [])
    granted(admin).grant(Operation.ALTER_CONFIGS, CLUSTER)
    (changed,) = admin.send(handler, request, 1).responses
    assert (changed.error_code, read) == (Error.NONE, [name])
