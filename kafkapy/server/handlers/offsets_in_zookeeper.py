"""OffsetCommit 0 and OffsetFetch 0, which write and read offsets of groups in ZooKeeper's znodes.

A kafkapy broker can serve a tree of znodes to ZooKeeper's clients, as a ZooKeeper server does: if the configuration has
`zookeeper.listener`, the broker that leads the partition in which the tree is stored serves it. The offsets are in this
tree.

Every broker answers these requests, as Kafka's brokers did when they stored offsets in ZooKeeper. A broker that does
not serve the tree checks the client's permissions, and forwards the request to the broker that serves the tree. The
group coordinator does not take part, and the client need not be a member of the group.
"""

from __future__ import annotations

from typing import Any

from kafkapy.errors import Error
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.security.acl import Operation
from kafkapy.server.authorization import NO_NAMES, check_group, denied_topics, is_cluster_allowed
from kafkapy.server.request_context import RequestContext
from kafkapy.server.zookeeper_offsets import PURPOSE, CommitErrors, Offsets, ZooKeeperOffsets
from kafkapy.types import TopicPartition, by_topic


def commit_to_zookeeper(context: RequestContext, request: OffsetCommitRequest) -> None:
    """Handles OffsetCommit 0. Permissions: Read on the group and the topics."""
    is_forwarded = _is_from_broker(context)
    denied = NO_NAMES
    if not is_forwarded:
        check_group(context, Operation.READ, request.group_id)
        denied = denied_topics(context, Operation.READ, (topic.name for topic in request.topics))
    topics = context.services.metadata.image.topics
    longest = context.services.config.offset_metadata_max_bytes
    refused: CommitErrors = {}
    offsets: dict[TopicPartition, int] = {}
    for topic in request.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if topic.name in denied:
                refused[partition] = Error.TOPIC_AUTHORIZATION_FAILED
            elif topics.partition(*partition) is None:
                refused[partition] = Error.UNKNOWN_TOPIC_OR_PARTITION
            elif len(each.committed_metadata or "") > longest:
                refused[partition] = Error.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[partition] = each.committed_offset

    def respond(errors: CommitErrors) -> None:
        context.respond(_commit_response({**refused, **errors}))

    if not offsets:
        respond({})
        return
    _offsets(context).commit(request.group_id, offsets, respond, may_forward=not is_forwarded)


def fetch_from_zookeeper(context: RequestContext, request: OffsetFetchRequest) -> None:
    """Handles OffsetFetch 0. Permissions: Describe on the group and the topics."""
    is_forwarded = _is_from_broker(context)
    requested = request.topics or []
    denied = NO_NAMES
    if not is_forwarded:
        check_group(context, Operation.DESCRIBE, request.group_id)
        denied = denied_topics(context, Operation.DESCRIBE, (topic.name for topic in requested))
    topics = context.services.metadata.image.topics
    refused: Offsets = {}
    wanted: list[TopicPartition] = []
    for topic in requested:
        for number in topic.partition_indexes:
            partition = TopicPartition(topic.name, number)
            if topic.name in denied:
                refused[partition] = (-1, Error.TOPIC_AUTHORIZATION_FAILED)
            elif topics.partition(*partition) is None:
                refused[partition] = (-1, Error.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                wanted.append(partition)

    def respond(found: Offsets) -> None:
        context.respond(_fetch_response({**found, **refused}))

    if not wanted:
        respond({})
        return
    _offsets(context).fetch(request.group_id, wanted, respond, may_forward=not is_forwarded)


def _offsets(context: RequestContext) -> ZooKeeperOffsets:
    offsets: ZooKeeperOffsets | None = context.services.zookeeper_offsets
    assert offsets is not None, "version 0 is served only with zookeeper.listener"
    return offsets


def _is_from_broker(context: RequestContext) -> bool:
    """Returns whether another broker has forwarded the request, and has checked the client's permissions."""
    client_id = context.client_id or ""
    if not (client_id.startswith("broker-") and client_id.endswith(f"-{PURPOSE}")):
        return False
    return is_cluster_allowed(context, Operation.CLUSTER_ACTION)


def _commit_response(errors: CommitErrors) -> OffsetCommitResponse:
    kind = OffsetCommitResponse
    return kind(
        topics=[
            kind.OffsetCommitResponseTopic(
                name=topic,
                partitions=[
                    kind.OffsetCommitResponsePartition(
                        partition_index=number, error_code=errors[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(errors).items()
        ]
    )


def _fetch_response(found: Offsets) -> OffsetFetchResponse:
    kind = OffsetFetchResponse

    def entry(topic: str, number: int) -> Any:
        offset, error = found[TopicPartition(topic, number)]
        return kind.OffsetFetchResponsePartition(
            partition_index=number, committed_offset=offset, metadata="", error_code=error
        )

    return kind(
        topics=[
            kind.OffsetFetchResponseTopic(name=topic, partitions=[entry(topic, number) for number in numbers])
            for topic, numbers in by_topic(found).items()
        ]
    )
