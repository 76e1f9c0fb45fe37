"""OffsetCommit 0-10, OffsetFetch 0-10 and OffsetDelete 0: committed offsets of groups.

Partitions are named by topic name, or by topic id from version 10 on. The handler refuses partitions that do not
exist; the group coordinator decides on the others.

Versions:
    Both 0           offsets in ZooKeeper (`offsets_in_zookeeper`); served only with `zookeeper.listener`.
    OffsetCommit 9   knows GROUP_ID_NOT_FOUND, and members of consumer groups.
    OffsetFetch 2    has one error for the whole group; older versions have one for each partition.
    OffsetFetch 7    can require offsets that no open transaction may change.
    OffsetFetch 8    several groups in one request.
Permissions: OffsetCommit needs Read on the group and the topic, OffsetFetch Describe on both, OffsetDelete Delete on
the group and Read on the topic. Topics that the client may not describe are left out when all offsets are fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

from kafkapy.coordinator.group.offset_requests import (
    CommitCall,
    FetchCall,
    FetchedOffset,
    OffsetToCommit,
    PartitionErrors,
)
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import TopicImage, TopicsImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkapy.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_group, denied_topics
from kafkapy.server.request_context import RequestContext
from kafkapy.types import ZERO_UUID

# -- OffsetCommit


def offset_commit_error(
    request: OffsetCommitRequest, version: int, error: Error, message: str | None
) -> OffsetCommitResponse:
    return _commit_response(request, version, repeat(error))


@serves(ApiKey.OFFSET_COMMIT, 0, 10, on_error=offset_commit_error)
def handle_offset_commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse | None:
    if context.api_version == 0:
        from kafkapy.server.handlers.offsets_in_zookeeper import commit_to_zookeeper

        commit_to_zookeeper(context, request)
        return None
    check_group(context, Operation.READ, request.group_id)
    topics = context.services.metadata.image.topics
    version = context.api_version
    by_id = version >= OffsetCommitRequest.FIRST_VERSION_WITH_TOPIC_ID
    denied = denied_topics(context, Operation.READ, _names(request.topics, topics, by_id=by_id))
    # One error for each partition, in the order of the request; None where the coordinator decides.
    errors: list[Error | None] = []
    offsets: list[OffsetToCommit] = []
    for topic in request.topics:
        found = topics.by_id.get(topic.topic_id) if by_id else topics.by_name.get(topic.name)
        if (found.name if by_id and found is not None else topic.name) in denied:
            errors += [Error.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
            continue
        for requested in topic.partitions:
            if found is None or requested.partition_index not in found.partitions:
                is_unknown_id = by_id and found is None
                errors.append(Error.UNKNOWN_TOPIC_ID if is_unknown_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            errors.append(None)
            offsets.append(_to_commit(found, requested))
    if not offsets:
        return _commit_response(request, version, (error for error in errors if error is not None))

    def respond(decided: list[Error]) -> None:
        rest = iter(decided)
        context.respond(_commit_response(request, version, (next(rest) if e is None else e for e in errors)))

    context.services.group_coordinator.commit_offsets(
        CommitCall(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            request.retention_time_ms,
            version >= OffsetCommitRequest.FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND,
            offsets,
        ),
        respond,
    )
    return None


def _names(requested: Iterable[Any], topics: TopicsImage, *, by_id: bool) -> Iterator[str]:
    """Yields the names of the requested topics. If `by_id` is True, the topics are requested by id, and unknown ids are
    left out.
    """
    for topic in requested:
        if not by_id:
            yield topic.name
        elif topic.topic_id in topics.by_id:
            yield topics.by_id[topic.topic_id].name


def _to_commit(topic: TopicImage, requested: OffsetCommitRequest.OffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        topic.name,
        topic.topic_id,
        requested.partition_index,
        requested.committed_offset,
        requested.committed_leader_epoch,
        requested.committed_metadata or "",
    )


def _commit_response(request: OffsetCommitRequest, version: int, errors: Iterator[Error]) -> OffsetCommitResponse:
    """Builds the response; `errors` has one error for each partition of the request, in order."""
    response = []
    for topic in request.topics:
        partitions = [
            OffsetCommitResponse.OffsetCommitResponsePartition(
                partition_index=requested.partition_index, error_code=next(errors)
            )
            for requested in topic.partitions
        ]
        topic_response = OffsetCommitResponse.OffsetCommitResponseTopic(partitions=partitions)
        if version >= OffsetCommitRequest.FIRST_VERSION_WITH_TOPIC_ID:
            topic_response.topic_id = topic.topic_id
        else:
            topic_response.name = topic.name
        response.append(topic_response)
    return OffsetCommitResponse(topics=response)


# -- OffsetFetch


def offset_fetch_error(
    request: OffsetFetchRequest, version: int, error: Error, message: str | None
) -> OffsetFetchResponse:
    if version >= OffsetFetchRequest.FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
                for group in request.groups
            ]
        )
    return _single_group_error(request, version, error)


@serves(ApiKey.OFFSET_FETCH, 0, 10, on_error=offset_fetch_error)
def handle_offset_fetch(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse | None:
    version = context.api_version
    if version == 0:
        from kafkapy.server.handlers.offsets_in_zookeeper import fetch_from_zookeeper

        fetch_from_zookeeper(context, request)
        return None
    if version < OffsetFetchRequest.FIRST_VERSION_WITH_GROUPS:
        return _fetch_single_group(context, request)
    topics = context.services.metadata.image.topics
    groups = []
    for requested in request.groups:
        group = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=requested.group_id)
        groups.append(group)
        try:
            group.topics = _fetch_group(context, requested, request.require_stable, topics)
        except ApiError as error:
            group.error_code = error.error
    return OffsetFetchResponse(groups=groups)


def _fetch_group(
    context: RequestContext,
    requested: OffsetFetchRequest.OffsetFetchRequestGroup,
    require_stable: bool,
    topics: TopicsImage,
) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    check_group(context, Operation.DESCRIBE, requested.group_id)
    by_id = context.api_version >= OffsetFetchRequest.FIRST_VERSION_WITH_TOPIC_ID
    wanted: list[tuple[str, int, bytes]] | None = None
    refused: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
    if requested.topics is not None:
        wanted = []
        denied = denied_topics(context, Operation.DESCRIBE, _names(requested.topics, topics, by_id=by_id))
        for topic in requested.topics:
            found = topics.by_id.get(topic.topic_id) if by_id else topics.by_name.get(topic.name)
            if by_id and found is None:
                refused.append(_refused_topic(topic, Error.UNKNOWN_TOPIC_ID))
                continue
            name, topic_id = (topic.name, ZERO_UUID) if found is None else (found.name, found.topic_id)
            if name in denied:
                refused.append(_refused_topic(topic, Error.TOPIC_AUTHORIZATION_FAILED))
                continue
            wanted.extend((name, partition, topic_id) for partition in topic.partition_indexes)
    call = FetchCall(requested.group_id, wanted, require_stable, requested.member_id, requested.member_epoch)
    fetched = _fetch_visible(context, call)
    response = []
    for name, offsets in _by_topic(fetched):
        found = topics.by_name.get(name)
        if by_id and found is None:
            continue  # The topic was deleted since the commit, so it has no id.
        topic_response = OffsetFetchResponse.OffsetFetchResponseTopics(
            partitions=[
                OffsetFetchResponse.OffsetFetchResponsePartitions(
                    partition_index=offset.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                    error_code=offset.error,
                )
                for offset in offsets
            ]
        )
        if by_id and found is not None:
            topic_response.topic_id = found.topic_id
        else:
            topic_response.name = name
        response.append(topic_response)
    return [*response, *refused]


def _fetch_visible(context: RequestContext, call: FetchCall) -> list[FetchedOffset]:
    """Returns the offsets that the request names. If it names no partitions, returns all offsets of the group, except
    those of topics that the client may not describe."""
    fetched = context.services.group_coordinator.fetch_offsets(call)
    if call.partitions is not None:
        return fetched
    denied = denied_topics(context, Operation.DESCRIBE, dict.fromkeys(offset.topic for offset in fetched))
    return [offset for offset in fetched if offset.topic not in denied] if denied else fetched


def _refused_topic(
    topic: OffsetFetchRequest.OffsetFetchRequestTopics, error: Error
) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    return OffsetFetchResponse.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=-1,
                committed_leader_epoch=-1,
                metadata="",
                error_code=error,
            )
            for partition in topic.partition_indexes
        ],
    )


def _fetch_single_group(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    topics = context.services.metadata.image.topics
    wanted: list[tuple[str, int, bytes]] | None = None
    refused: list[FetchedOffset] = []
    try:
        check_group(context, Operation.DESCRIBE, request.group_id)
        if request.topics is not None:
            wanted = []
            denied = denied_topics(context, Operation.DESCRIBE, (topic.name for topic in request.topics))
            for topic in request.topics:
                if topic.name in denied:
                    refused += [_denied(topic.name, partition) for partition in topic.partition_indexes]
                    continue
                found = topics.by_name.get(topic.name)
                topic_id = ZERO_UUID if found is None else found.topic_id
                wanted.extend((topic.name, partition, topic_id) for partition in topic.partition_indexes)
        fetched = _fetch_visible(context, FetchCall(request.group_id, wanted, request.require_stable))
    except ApiError as error:
        return _single_group_error(request, context.api_version, error.error)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(name=name, partitions=[_single(offset) for offset in offsets])
            for name, offsets in _by_topic([*fetched, *refused])
        ]
    )


def _denied(topic: str, partition: int) -> FetchedOffset:
    return FetchedOffset(topic, partition, error=Error.TOPIC_AUTHORIZATION_FAILED)


def _single_group_error(request: OffsetFetchRequest, version: int, error: Error) -> OffsetFetchResponse:
    """Builds the response with `error` for the group. Versions 0 and 1 have no field for the error of the group; in
    them each partition has the error.
    """
    if version >= OffsetFetchResponse.FIRST_VERSION_WITH_ERROR_CODE:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    _single(FetchedOffset(topic.name, partition, error=error)) for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics or []
        ]
    )


def _single(offset: FetchedOffset) -> OffsetFetchResponse.OffsetFetchResponsePartition:
    return OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index=offset.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=offset.error,
    )


def _by_topic(fetched: Iterable[FetchedOffset]) -> list[tuple[str, list[FetchedOffset]]]:
    grouped: dict[str, list[FetchedOffset]] = {}
    for offset in fetched:
        grouped.setdefault(offset.topic, []).append(offset)
    return list(grouped.items())


# -- OffsetDelete


def offset_delete_error(
    request: OffsetDeleteRequest, version: int, error: Error, message: str | None
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


@serves(ApiKey.OFFSET_DELETE, 0, 0, on_error=offset_delete_error)
def handle_offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> None:
    check_group(context, Operation.DELETE, request.group_id)
    topics = context.services.metadata.image.topics
    denied = denied_topics(context, Operation.READ, (topic.name for topic in request.topics))
    partitions = [
        (topic.name, requested.partition_index)
        for topic in request.topics
        for requested in topic.partitions
        if topic.name not in denied and topics.partition(topic.name, requested.partition_index) is not None
    ]

    def error_without_deletion(topic: str) -> Error:
        return Error.TOPIC_AUTHORIZATION_FAILED if topic in denied else Error.UNKNOWN_TOPIC_OR_PARTITION

    def respond(errors: PartitionErrors) -> None:
        response = [
            OffsetDeleteResponse.OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=requested.partition_index,
                        error_code=errors.get(
                            (topic.name, requested.partition_index), error_without_deletion(topic.name)
                        ),
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        context.respond(OffsetDeleteResponse(topics=response))

    context.services.group_coordinator.delete_offsets(
        request.group_id,
        partitions,
        respond,
        lambda error, _: context.respond(OffsetDeleteResponse(error_code=error)),
    )
