"""Metadata, versions 0 to 13, and DescribeTopicPartitions, version 0 (KIP-966).

The response has the brokers, the topics, their partitions and the leaders. Metadata is requested often and changes
rarely. An encoded response is therefore stored, and sent again until the metadata image changes. A request for a
missing topic creates it, if the configuration and the request allow that.

Permissions: Describe on the topic; Create on the topic or the cluster to create it. A topic that the client may not
describe is left out when all topics are asked for, and otherwise has an error that does not show whether it exists.
With an authorizer no response is stored.

Version notes: version 0 names only reachable replicas. From version 6 on a leader without the client's listener has the
error LISTENER_NOT_FOUND. From version 12 on topics may be requested by id. Only versions 8 to 10 have the operations
permitted on the cluster.
"""

from __future__ import annotations

from kafkapy.controller.topic_name import is_valid_topic_name
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.metadata.topics_image import TopicImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import (
    NO_NAMES,
    OPERATIONS_NOT_ASKED_FOR,
    authorized_cluster_operations,
    authorized_operations,
    denied_names,
    denied_topics,
    is_cluster_allowed,
)
from kafkapy.server.auto_topic_creation import create_missing_topic
from kafkapy.server.request_context import RequestContext
from kafkapy.server.topic_metadata import ClusterView
from kafkapy.types import ZERO_UUID

# Limits on the encoded responses stored per image: their number and their total size.
MAX_STORED_RESPONSES = 256
MAX_STORED_BYTES = 16 * 1024 * 1024
# The first versions in which topics may be requested by id, and a leader without the listener has its own error.
TOPIC_ID_VERSION = 12
LISTENER_NOT_FOUND_VERSION = 6

MissingTopic = tuple["str | None", bytes]  # name, or None if only the id is known, and topic id
TopicAnswer = MetadataResponse.MetadataResponseTopic
DescribedTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


class EncodedResponse:
    """An encoded response body, which is sent instead of a message. The object does not change."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body

    def delayed(self, version: int, throttle_ms: int) -> EncodedResponse:
        """Returns the response with the throttle time `throttle_ms`, which is the first field of the encoded body.

        Returns this object unchanged if the response has no throttle time in this version.
        """
        if version < MetadataResponse.FIRST_VERSION_WITH_THROTTLE_TIME_MS:
            return self
        return EncodedResponse(throttle_ms.to_bytes(4, "big") + self.body[4:])

    def encode_chunks(self, version: int, prefix: bytes = b"") -> list[bytes]:
        return [prefix + self.body]


def metadata_error(request: MetadataRequest, version: int, error: Error, message: str | None) -> MetadataResponse:
    topics = [
        TopicAnswer(error_code=error, name=_name_of(topic, version), topic_id=topic.topic_id, partitions=[])
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=error)


@serves(ApiKey.METADATA, 0, 13, on_error=metadata_error)
def handle_metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse | EncodedResponse:
    version = context.api_version
    image, stored = context.services.metadata.current
    if context.services.authorizer is not None:
        return _answer(context, request, image)[0]
    key = _key_of(context, request)
    encoded = stored.get(key)
    if encoded is not None:
        return EncodedResponse(encoded)
    response, is_complete = _answer(context, request, image)
    # The key has every element of the request, and the response has each topic once. A request that repeats topics
    # would make the key far larger than the response, whose size is limited.
    has_repetitions = request.topics is not None and len(request.topics) > len(response.topics)
    if is_complete and not has_repetitions and len(stored) < MAX_STORED_RESPONSES:
        encoded = response.encode(version)
        if len(encoded) + sum(map(len, stored.values())) <= MAX_STORED_BYTES:
            stored[key] = encoded
        return EncodedResponse(encoded)
    return response


def _key_of(context: RequestContext, request: MetadataRequest) -> object:
    """Returns the key under which the encoded response is stored. It contains all that the response depends on, except
    the image."""
    topics = request.topics
    wanted = None if topics is None else tuple([(topic.name, topic.topic_id) for topic in topics])
    return (
        context.api_version,
        context.listener.name,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        wanted,
    )


def _answer(context: RequestContext, request: MetadataRequest, image: MetadataImage) -> tuple[MetadataResponse, bool]:
    """Returns the response, and whether all requested topics exist.

    If a topic is missing, the encoded response must not be stored and sent to later requests, because the topic may be
    created soon.
    """
    version, services = context.api_version, context.services
    view = ClusterView(image, context.listener.name)
    found, missing = _find_topics(request, version, image)
    may_create = services.config.auto_create_topics_enable and request.allow_auto_topic_creation
    denied: list[TopicAnswer] = []
    if services.authorizer is not None:
        found, missing, denied = _permitted(context, request, found, missing, may_create=may_create)
    topics = [_topic(topic, view, version, _operations(context, request, topic.name)) for topic in found]
    for name, topic_id in missing:
        if name is None:
            error = Error.UNKNOWN_TOPIC_ID
        elif may_create:
            error = create_missing_topic(services, name, context)
        else:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else Error.INVALID_TOPIC_EXCEPTION
        topics.append(
            TopicAnswer(
                error_code=error,
                name=name if name is not None or version >= TOPIC_ID_VERSION else "",
                topic_id=topic_id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=[],
                topic_authorized_operations=OPERATIONS_NOT_ASKED_FOR
                if name is None
                else _operations(context, request, name),
            )
        )
    asked_for_cluster = request.include_cluster_authorized_operations and 8 <= version <= 10
    response = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=broker_id, host=endpoint.host, port=endpoint.port, rack=view.rack_of(broker_id)
            )
            for broker_id, endpoint in view.endpoints.items()
        ],
        cluster_id=services.cluster_id,
        controller_id=services.node_id,
        topics=topics + denied,
        cluster_authorized_operations=authorized_cluster_operations(context)
        if asked_for_cluster
        else OPERATIONS_NOT_ASKED_FOR,
    )
    return response, not missing


def _operations(context: RequestContext, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return OPERATIONS_NOT_ASKED_FOR
    return authorized_operations(context, ResourceType.TOPIC, name)


def _permitted(
    context: RequestContext,
    request: MetadataRequest,
    found: list[TopicImage],
    missing: list[MissingTopic],
    *,
    may_create: bool,
) -> tuple[list[TopicImage], list[MissingTopic], list[TopicAnswer]]:
    """Returns the topics of `found` and of `missing` that the client may describe, and the answers for denied topics.

    If `may_create` is True, the caller will create the missing topics. A missing topic for which the client has the
    permission CREATE neither on the topic nor on the cluster is then a denied topic.
    """
    is_all = _asks_for_all(request, context.api_version)
    names = [topic.name for topic in found] + [name for name, _ in missing if name is not None]
    hidden = denied_names(context, Operation.DESCRIBE, ResourceType.TOPIC, names, log_if_denied=not is_all)
    to_create = [name for name, _ in missing if may_create and name is not None and name not in hidden]
    not_creatable = NO_NAMES
    if to_create and not is_cluster_allowed(context, Operation.CREATE, log_if_denied=False):
        not_creatable = denied_topics(context, Operation.CREATE, to_create)
    answers = [_denied_topic(name, is_internal=name in INTERNAL_TOPICS) for name in not_creatable]
    if not is_all and any(topic.topic_id != ZERO_UUID for topic in request.topics or ()):
        answers += [_denied_topic(None, topic.topic_id) for topic in found if topic.name in hidden]
    elif not is_all:
        answers += [_denied_topic(name) for name in hidden]
    return (
        [topic for topic in found if topic.name not in hidden],
        [each for each in missing if each[0] not in hidden and each[0] not in not_creatable],
        answers,
    )


def _denied_topic(name: str | None, topic_id: bytes = ZERO_UUID, *, is_internal: bool = False) -> TopicAnswer:
    error = Error.TOPIC_AUTHORIZATION_FAILED
    return TopicAnswer(error_code=error, name=name, topic_id=topic_id, is_internal=is_internal, partitions=[])


def _asks_for_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _find_topics(
    request: MetadataRequest, version: int, image: MetadataImage
) -> tuple[list[TopicImage], list[MissingTopic]]:
    """Returns the requested topics that exist, and (name, id) of each requested topic that does not exist.

    A topic that is requested more than once is returned once. Raises ApiError for an invalid request.
    """
    if request.topics is None or _asks_for_all(request, version):
        return list(image.topics.by_name.values()), []
    if version < TOPIC_ID_VERSION:
        for topic in request.topics:
            if topic.name is None:
                raise ApiError(Error.INVALID_REQUEST, f"Topic name can not be null for version {version}")
            if topic.topic_id != ZERO_UUID:
                raise ApiError(Error.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}")
    by_id = any(topic.topic_id != ZERO_UUID for topic in request.topics)
    found: dict[bytes, TopicImage] = {}
    missing: dict[tuple[str | None, bytes], None] = {}
    for topic in request.topics:
        if by_id:
            if topic.topic_id == ZERO_UUID:
                continue
            existing = image.topics.by_id.get(topic.topic_id)
            absent: tuple[str | None, bytes] = (None, topic.topic_id)
        else:
            name = topic.name or ""
            existing = image.topics.by_name.get(name)
            absent = (name, ZERO_UUID)
        if existing is None:
            missing[absent] = None
        else:
            found[existing.topic_id] = existing
    return list(found.values()), list(missing)


def _name_of(topic: MetadataRequest.MetadataRequestTopic, version: int) -> str | None:
    return topic.name if topic.name is not None or version >= TOPIC_ID_VERSION else ""


def _topic(topic: TopicImage, view: ClusterView, version: int, operations: int) -> TopicAnswer:
    partitions = []
    for partition_id, partition in topic.partitions.items():
        described = view.describe(
            partition, name_missing_listener=version >= LISTENER_NOT_FOUND_VERSION, strict=version == 0
        )
        partitions.append(
            MetadataResponse.MetadataResponsePartition(
                error_code=described.error,
                partition_index=partition_id,
                leader_id=described.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=described.replicas,
                isr_nodes=described.isr,
                offline_replicas=described.offline_replicas,
            )
        )
    return TopicAnswer(
        error_code=Error.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def describe_topic_partitions_error(
    request: DescribeTopicPartitionsRequest, version: int, error: Error, message: str | None
) -> DescribeTopicPartitionsResponse:
    topics = [DescribedTopic(error_code=error, name=topic.name) for topic in request.topics]
    return DescribeTopicPartitionsResponse(topics=topics)


@serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, on_error=describe_topic_partitions_error)
def handle_describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = context.services.metadata.image
    view = ClusterView(image, context.listener.name)
    names, start = _names_from_cursor(request, image)
    limit = context.services.config.max_request_partition_size_limit
    remaining = max(min(limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    denied = denied_topics(context, Operation.DESCRIBE, names)
    for name in names:
        if name in denied:
            continue
        if remaining == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.by_name.get(name)
        if topic is None:
            error = Error.UNKNOWN_TOPIC_OR_PARTITION if is_valid_topic_name(name) else Error.INVALID_TOPIC_EXCEPTION
            operations = authorized_operations(context, ResourceType.TOPIC, name)
            response.topics.append(DescribedTopic(error_code=error, name=name, topic_authorized_operations=operations))
            continue
        first = start.get(name, 0)
        chosen = [partition_id for partition_id in sorted(topic.partitions) if partition_id >= first]
        operations = authorized_operations(context, ResourceType.TOPIC, name)
        response.topics.append(_described_topic(topic, chosen[:remaining], view, operations))
        if len(chosen) > remaining:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(
                topic_name=name, partition_index=chosen[remaining]
            )
            break
        remaining -= len(chosen)
    if request.topics:
        error = Error.TOPIC_AUTHORIZATION_FAILED
        response.topics += [DescribedTopic(error_code=error, name=name) for name in names if name in denied]
    return response


def _names_from_cursor(
    request: DescribeTopicPartitionsRequest, image: MetadataImage
) -> tuple[list[str], dict[str, int]]:
    """Returns the sorted names of the requested topics from the cursor on, and {topic of the cursor: its first
    partition to return}.

    The second value is empty without a cursor. Raises ApiError for an invalid cursor.
    """
    names = sorted({topic.name for topic in request.topics} if request.topics else image.topics.by_name)
    cursor = request.cursor
    if cursor is None:
        return names, {}
    if request.topics and cursor.topic_name not in names:
        raise ApiError(
            Error.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise ApiError(
            Error.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition_index}",
        )
    return [name for name in names if name >= cursor.topic_name], {cursor.topic_name: cursor.partition_index}


def _described_topic(topic: TopicImage, chosen: list[int], view: ClusterView, operations: int) -> DescribedTopic:
    partitions = []
    for partition_id in chosen:
        partition = topic.partitions[partition_id]
        described = view.describe(partition)
        partitions.append(
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
                error_code=described.error,
                partition_index=partition_id,
                leader_id=described.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=described.replicas,
                isr_nodes=described.isr,
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=described.offline_replicas,
            )
        )
    return DescribedTopic(
        error_code=Error.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=operations,
    )
