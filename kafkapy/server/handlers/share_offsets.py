"""DescribeShareGroupOffsets 0-1, AlterShareGroupOffsets 0 and DeleteShareGroupOffsets 0: the start offsets of share
groups (KIP-932).

Versions:
    DescribeShareGroupOffsets 1   has the lag of each partition.
Permissions: Describe, Read or Delete on the group, and Describe (DescribeShareGroupOffsets) or Read on each topic. If
the request names no topics, the response leaves out the topics that the client may not describe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafkapy.coordinator.group.share_offsets import UNKNOWN, ShareOffset
from kafkapy.coordinator.runtime import ErrorResponder
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kafkapy.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from kafkapy.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kafkapy.replica.share.persister import UNINITIALIZED_START_OFFSET, SharePartitionKey
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import error_with_message, serves
from kafkapy.server.authorization import check_group, denied_names, denied_topics
from kafkapy.server.handlers.share_groups import check_share_groups
from kafkapy.server.request_context import RequestContext

DescribedGroup = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
DescribedTopic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
DescribedPartition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
AlteredTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlteredPartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
DeletedTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


# -- DescribeShareGroupOffsets


def describe_error(
    request: DescribeShareGroupOffsetsRequest, version: int, error: Error, message: str | None
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[DescribedGroup(group_id=each.group_id, error_code=error) for each in request.groups]
    )


@serves(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, on_error=describe_error)
def handle_describe_share_group_offsets(context: RequestContext, request: DescribeShareGroupOffsetsRequest) -> None:
    check_share_groups(context)
    denied = denied_names(context, Operation.DESCRIBE, ResourceType.GROUP, [each.group_id for each in request.groups])
    answers: list[DescribedGroup | None] = [None] * len(request.groups)
    remaining = len(request.groups)

    def done(number: int, group: DescribedGroup) -> None:
        nonlocal remaining
        answers[number] = group
        remaining -= 1
        if not remaining:
            context.respond(DescribeShareGroupOffsetsResponse(groups=[each for each in answers if each is not None]))

    if not request.groups:
        context.respond(DescribeShareGroupOffsetsResponse(groups=[]))
    for number, requested in enumerate(request.groups):
        if requested.group_id in denied:
            done(number, DescribedGroup(group_id=requested.group_id, error_code=Error.GROUP_AUTHORIZATION_FAILED))
            continue
        try:
            _describe(context, requested, lambda group, number=number: done(number, group))  # type: ignore[misc]
        except ApiError as error:
            text = error.message or error.error.message
            done(number, DescribedGroup(group_id=requested.group_id, error_code=error.error, error_message=text))


def _describe(
    context: RequestContext,
    requested: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    done: Callable[[DescribedGroup], None],
) -> None:
    """Calls `done` with the response for one group. Raises ApiError if this broker cannot serve the group."""
    offsets = context.services.shares.offsets
    topics = context.services.metadata.image.topics
    without_lookup: list[DescribedTopic] = []
    wanted: dict[str, list[int]] = {}
    if requested.topics is None:
        found = offsets.initialized(requested.group_id)
        wanted = {topics.by_id[each].name: sorted(found[each]) for each in found if each in topics.by_id}
        for name in denied_topics(context, Operation.DESCRIBE, list(wanted)):
            del wanted[name]
    else:
        denied = denied_topics(context, Operation.DESCRIBE, [each.topic_name for each in requested.topics])
        for each in requested.topics:
            if each.topic_name not in denied and each.topic_name in topics.by_name:
                wanted[each.topic_name] = each.partitions
                continue
            error = Error.TOPIC_AUTHORIZATION_FAILED if each.topic_name in denied else Error.NONE
            without_lookup.append(_without_offsets(each.topic_name, each.partitions, error))
    keys = [
        SharePartitionKey(requested.group_id, topics.by_name[name].topic_id, number)
        for name, numbers in wanted.items()
        for number in numbers
    ]

    def described(found: Mapping[SharePartitionKey, ShareOffset]) -> None:
        answered = []
        for name, numbers in wanted.items():
            topic_id = topics.by_name[name].topic_id
            offsets = [(number, found[SharePartitionKey(requested.group_id, topic_id, number)]) for number in numbers]
            partitions = [
                DescribedPartition(
                    partition_index=number, start_offset=each.start_offset, leader_epoch=each.leader_epoch, lag=each.lag
                )
                for number, each in offsets
            ]
            answered.append(DescribedTopic(topic_name=name, topic_id=topic_id, partitions=partitions))
        # Apache Kafka also puts the unknown topics first and the denied topics last.
        refused = [each for each in without_lookup if each.partitions and each.partitions[0].error_code]
        unknown = [each for each in without_lookup if each not in refused]
        done(DescribedGroup(group_id=requested.group_id, topics=[*unknown, *answered, *refused]))

    offsets.describe(keys, described)


def _without_offsets(name: str, numbers: list[int], error: Error) -> DescribedTopic:
    return DescribedTopic(
        topic_name=name,
        partitions=[
            DescribedPartition(
                partition_index=number,
                start_offset=UNINITIALIZED_START_OFFSET,
                lag=UNKNOWN,
                error_code=error,
                error_message=error.message if error else None,
            )
            for number in numbers
        ],
    )


def _denied_topics_of(
    context: RequestContext,
    request: AlterShareGroupOffsetsRequest | DeleteShareGroupOffsetsRequest,
    operation: Operation,
) -> Collection[str]:
    """Returns the topics of the request that the client may not read.

    Raises ApiError if share groups are not served, or if the client may not perform `operation` on the group.
    """
    check_share_groups(context)
    check_group(context, operation, request.group_id)
    if not request.group_id:
        raise ApiError(Error.INVALID_GROUP_ID)
    return denied_topics(context, Operation.READ, [each.topic_name for each in request.topics])


def _refusal(context: RequestContext, response_class: Any) -> ErrorResponder:
    """Returns a function that is called with an error and a message or None, and sends them to the client.

    The response is a `response_class` with this error for the whole request; without a message it has the text of
    the error.
    """
    return lambda error, message: context.respond(
        response_class(error_code=error, error_message=message or error.message)
    )


# -- AlterShareGroupOffsets


@serves(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, on_error=error_with_message(AlterShareGroupOffsetsResponse))
def handle_alter_share_group_offsets(context: RequestContext, request: AlterShareGroupOffsetsRequest) -> None:
    denied = _denied_topics_of(context, request, Operation.READ)
    topics = context.services.metadata.image.topics.by_name
    offsets: dict[bytes, dict[int, int]] = {}
    errors: dict[tuple[str, int], Error] = {}
    for requested in request.topics:
        topic = topics.get(requested.topic_name)
        for each in requested.partitions:
            if requested.topic_name in denied:
                errors[requested.topic_name, each.partition_index] = Error.TOPIC_AUTHORIZATION_FAILED
            elif topic is None or each.partition_index not in topic.partitions:
                errors[requested.topic_name, each.partition_index] = Error.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets.setdefault(topic.topic_id, {})[each.partition_index] = each.start_offset

    def altered(found: Mapping[tuple[bytes, int], Error]) -> None:
        answered = []
        for requested in request.topics:
            topic = topics.get(requested.topic_name)
            topic_id = bytes(16) if topic is None else topic.topic_id
            partitions = []
            for each in requested.partitions:
                number = each.partition_index
                error = errors.get((requested.topic_name, number)) or found.get((topic_id, number), Error.NONE)
                text = error.message if error else None
                partitions.append(AlteredPartition(partition_index=number, error_code=error, error_message=text))
            answered.append(AlteredTopic(topic_name=requested.topic_name, topic_id=topic_id, partitions=partitions))
        context.respond(AlterShareGroupOffsetsResponse(responses=answered))

    context.services.shares.offsets.alter(
        request.group_id,
        offsets,
        altered,
        _refusal(context, AlterShareGroupOffsetsResponse),
    )


# -- DeleteShareGroupOffsets


@serves(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, on_error=error_with_message(DeleteShareGroupOffsetsResponse))
def handle_delete_share_group_offsets(context: RequestContext, request: DeleteShareGroupOffsetsRequest) -> None:
    denied = _denied_topics_of(context, request, Operation.DELETE)
    topics = context.services.metadata.image.topics.by_name
    permitted = [each.topic_name for each in request.topics if each.topic_name not in denied]
    named = {topics[name].topic_id: name for name in permitted if name in topics}

    def deleted(errors: Mapping[bytes, Error]) -> None:
        failed = [_deleted(name, bytes(16), Error.TOPIC_AUTHORIZATION_FAILED) for name in denied]
        for name in permitted:
            topic = topics.get(name)
            if topic is None:
                failed.append(_deleted(name, bytes(16), Error.UNKNOWN_TOPIC_OR_PARTITION))
            elif topic.topic_id not in errors:
                text = "There is no offset information to delete."
                failed.append(_deleted(name, bytes(16), Error.UNKNOWN_TOPIC_OR_PARTITION, text))
        done = [_deleted(named[topic_id], topic_id, error) for topic_id, error in errors.items()]
        context.respond(DeleteShareGroupOffsetsResponse(responses=[*failed, *done]))

    context.services.shares.offsets.delete(
        request.group_id,
        named,
        deleted,
        _refusal(context, DeleteShareGroupOffsetsResponse),
    )


def _deleted(name: str, topic_id: bytes, error: Error, text: str | None = None) -> DeletedTopic:
    message = text or error.message if error else None
    return DeletedTopic(topic_name=name, topic_id=topic_id, error_code=error, error_message=message)
