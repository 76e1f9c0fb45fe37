"""The wire messages of a fetcher, in the versions that the finalized metadata.version determines."""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.metadata.features import fetch_request_version
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.replica.fetcher.fetch_session import FetchPlan
from kafkapy.replica.fetcher.leader_fetcher import LeaderOffset, OffsetQuery
from kafkapy.replica.fetcher.settings import FetchSettings
from kafkapy.types import ZERO_UUID, TopicPartition

_LAST_VERSION_WITH_NAMES = 12


def fetch_version(plan: FetchPlan, metadata_version: int) -> int:
    """Returns the version of the Fetch request for `metadata_version`. If a topic has no id, returns the newest version
    that identifies topics by name."""
    if any(position.topic_id == ZERO_UUID for position in plan.positions.values()):
        return _LAST_VERSION_WITH_NAMES
    return fetch_request_version(metadata_version)


def build_fetch(plan: FetchPlan, settings: FetchSettings, broker_epoch: int, version: int) -> FetchRequest:
    """Returns the Fetch request of a follower. `broker_epoch` (KIP-903) is sent from version 15 on."""
    topics: dict[tuple[str, bytes], FetchRequest.FetchTopic] = {}
    for topic_partition, position in plan.positions.items():
        key = topic_partition.topic, position.topic_id
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchRequest.FetchTopic(
                topic=topic_partition.topic, topic_id=position.topic_id, partitions=[]
            )
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=topic_partition.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.log_start_offset,
                partition_max_bytes=settings.partition_max_bytes,
            )
        )
    request = FetchRequest(
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.response_max_bytes,
        session_id=plan.session_id,
        session_epoch=plan.session_epoch,
        topics=list(topics.values()),
        forgotten_topics_data=forgotten_topics(plan),
    )
    if version >= FetchRequest.FIRST_VERSION_WITH_REPLICA_STATE:
        request.replica_state = FetchRequest.ReplicaState(replica_id=settings.node_id, replica_epoch=broker_epoch)
    else:
        request.replica_id = settings.node_id
    return request


def forgotten_topics(plan: FetchPlan) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[tuple[str, bytes], FetchRequest.ForgottenTopic] = {}
    for topic_partition, topic_id in plan.forgotten:
        key = topic_partition.topic, topic_id
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchRequest.ForgottenTopic(
                topic=topic_partition.topic, topic_id=topic_id, partitions=[]
            )
        topic.partitions.append(topic_partition.partition)
    return list(topics.values())


def build_list_offsets(query: OffsetQuery, node_id: int) -> ListOffsetsRequest:
    """Returns the ListOffsets request for the leader's start or end offsets."""
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for topic_partition, leader_epoch in query.leader_epochs.items():
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = ListOffsetsRequest.ListOffsetsTopic(
                name=topic_partition.topic, partitions=[]
            )
        topic.partitions.append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=topic_partition.partition, current_leader_epoch=leader_epoch, timestamp=query.timestamp
            )
        )
    return ListOffsetsRequest(replica_id=node_id, topics=list(topics.values()))


def leader_offsets(response: ListOffsetsResponse) -> dict[TopicPartition, LeaderOffset]:
    return {
        TopicPartition(topic.name, found.partition_index): LeaderOffset(Error.of(found.error_code), found.offset)
        for topic in response.topics
        for found in topic.partitions
    }
