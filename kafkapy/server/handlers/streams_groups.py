"""StreamsGroupHeartbeat 0 and StreamsGroupDescribe 0: groups of Kafka Streams applications (KIP-1071).

Both are refused with UNSUPPORTED_VERSION unless the protocol is configured and the feature streams.version finalized.
Like Apache Kafka 4.3, the broker refuses static members, source topics by regular expression, warm-up tasks and the
offsets of tasks.

Permissions: Read on the group and Describe on each topic of the topology; for internal topics that do not exist, Create
on the cluster or on the topics. Without the permission to create them the response has a status instead of an error.
StreamsGroupDescribe needs Describe on the group and on all topics of its topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from kafkapy.controller.topic_name import is_valid_topic_name
from kafkapy.controller.topics import NewTopic
from kafkapy.coordinator.group.consumer_member import STATIC_LEAVE_EPOCH
from kafkapy.coordinator.group.streams.streams_member import TaskAssignment
from kafkapy.coordinator.group.streams.streams_membership import StreamsHeartbeatCall, StreamsHeartbeatResult
from kafkapy.coordinator.group.streams.streams_records import tasks_from
from kafkapy.coordinator.group.streams.streams_settings import StreamsGroupSettings
from kafkapy.coordinator.group.streams.topic_configuration import Status
from kafkapy.coordinator.group.streams.topology import topology_from
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from kafkapy.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_topics, is_allowed, is_cluster_allowed
from kafkapy.server.described_groups import described_groups, error_of_each_group
from kafkapy.server.forwarding_port import OnCreated
from kafkapy.server.request_context import RequestContext
from kafkapy.server.topic_request import request_topic

DescribedGroup = StreamsGroupDescribeResponse.DescribedGroup
HIDDEN_TOPOLOGY = "The described group uses topics that the client is not authorized to describe."
_Subtopology = StreamsGroupHeartbeatRequest.Subtopology | StreamsGroupDescribeResponse.Subtopology
# The number of failed topics that a status names.
_MAX_ERRORS_NAMED = 3


# -- StreamsGroupHeartbeat


def heartbeat_error(
    request: StreamsGroupHeartbeatRequest, version: int, error: Error, message: str | None
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=message)


@serves(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, on_error=heartbeat_error)
def handle_streams_group_heartbeat(
    context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | None:
    coordinator = context.services.group_coordinator
    settings = StreamsGroupSettings(coordinator.settings)
    if not settings.is_enabled:
        raise ApiError(Error.UNSUPPORTED_VERSION)
    if not is_allowed(context, Operation.READ, ResourceType.GROUP, request.group_id):
        return heartbeat_error(request, context.api_version, Error.GROUP_AUTHORIZATION_FAILED, None)
    if request.topology is not None:
        topics = list(dict.fromkeys(_topics(request.topology.subtopologies)))
        _check_names(topics)
        if denied_topics(context, Operation.DESCRIBE, topics):
            return heartbeat_error(request, context.api_version, Error.TOPIC_AUTHORIZATION_FAILED, None)
    _refuse_unsupported(request)
    _validate(request)

    def respond(result: StreamsHeartbeatResult) -> None:
        if result.missing_topics:
            interval_ms = settings.heartbeat_interval_ms(request.group_id)
            _create_topics(context, result, error_ttl_ms=2 * interval_ms)
        context.respond(result.response)

    coordinator.streams_group_heartbeat(
        _heartbeat(context, request),
        respond,
        lambda error, message: context.respond(heartbeat_error(request, context.api_version, error, message)),
    )
    return None


def _topics(subtopologies: Iterable[_Subtopology]) -> Iterator[str]:
    for subtopology in subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def _check_names(topics: list[str]) -> None:
    """Raises ApiError STREAMS_INVALID_TOPOLOGY if `topics` has an internal topic of Kafka or an invalid name."""
    internal = [topic for topic in topics if topic in INTERNAL_TOPICS]
    if internal:
        message = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)
    invalid = [topic for topic in topics if not is_valid_topic_name(topic)]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)


def _refuse_unsupported(request: StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError INVALID_REQUEST if the request sets a field that Apache Kafka 4.3 does not support yet.

    These are the instance id, task offsets, task end offsets, warm-up tasks, and patterns for source topics.
    """
    regexes = [] if request.topology is None else [each.source_topic_regex for each in request.topology.subtopologies]
    for is_used, message in (
        (request.instance_id is not None, "Static membership is not yet supported."),
        (request.task_offsets is not None, "TaskOffsets are not supported yet."),
        (request.task_end_offsets is not None, "TaskEndOffsets are not supported yet."),
        (bool(request.warmup_tasks), "WarmupTasks are not supported yet."),
        (any(regexes), "Regular expressions for source topics are not supported yet."),
    ):
        if is_used:
            raise ApiError(Error.INVALID_REQUEST, message)


def _validate(request: StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError INVALID_REQUEST if fields of the heartbeat are empty, out of range or do not fit together.

    Raises ApiError STREAMS_INVALID_TOPOLOGY if the topology of a joining member is invalid.
    """
    epoch = request.member_epoch
    for is_wrong, message in (
        (not request.member_id.strip(), "MemberId can't be empty."),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
    ):
        if is_wrong:
            raise ApiError(Error.INVALID_REQUEST, message)
    if epoch == 0:
        _validate_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        raise ApiError(Error.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        message = f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
        raise ApiError(Error.INVALID_REQUEST, message)
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is not None for each in tasks) and any(each is None for each in tasks):
        raise ApiError(Error.INVALID_REQUEST, "If one task-type is non-null, all must be non-null.")
    if epoch != 0 and request.topology is not None:
        raise ApiError(Error.INVALID_REQUEST, "Topology can only be provided when (re-)joining.")


def _validate_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise ApiError(Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise ApiError(Error.INVALID_REQUEST, f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise ApiError(Error.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                message = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)


def _heartbeat(context: RequestContext, request: StreamsGroupHeartbeatRequest) -> StreamsHeartbeatCall:
    owned = None
    if request.active_tasks is not None:
        owned = TaskAssignment(
            tasks_from(request.active_tasks),
            tasks_from(request.standby_tasks or ()),
            tasks_from(request.warmup_tasks or ()),
        )
    endpoint = request.user_endpoint
    tags = None
    if request.client_tags is not None:
        tags = tuple(sorted((tag.key, tag.value) for tag in request.client_tags))
    return StreamsHeartbeatCall(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        topology=None if request.topology is None else topology_from(request.topology),
        owned=owned,
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=tags,
        wants_shutdown=request.shutdown_application,
    )


def _create_topics(context: RequestContext, result: StreamsHeartbeatResult, *, error_ttl_ms: int) -> None:
    """Requests the creation of the application's internal topics that `result` reports as missing.

    Adds the names of topics that cannot be created, and the reason, to the status in the response. For `error_ttl_ms`
    milliseconds after a creation failed, the topic is not requested again and its error is reported.
    """
    topics = result.missing_topics
    denied = _not_creatable(context, topics)
    if denied:
        names = ", ".join(topic for topic in topics if topic in denied)
        _add_detail(result.response, f"Unauthorized to CREATE on topics {names}.")
        return
    streams_topics = context.services.streams_topics
    streams_topics.request(topics, error_ttl_ms, partial(_create_topic, context))
    failed = [f"{topic} ({error})" for topic, error in streams_topics.errors(topics).items()]
    if failed:
        named = ", ".join(failed[:_MAX_ERRORS_NAMED])
        if len(failed) > _MAX_ERRORS_NAMED:
            named += f" and {len(failed) - _MAX_ERRORS_NAMED} more"
        _add_detail(result.response, f"Creation failed: {named}.")


def _create_topic(context: RequestContext, wanted: NewTopic, on_result: OnCreated) -> None:
    request_topic(context.services, wanted, context, on_result)


def _not_creatable(context: RequestContext, topics: Iterable[str]) -> frozenset[str]:
    if is_cluster_allowed(context, Operation.CREATE, log_if_denied=False):
        return frozenset()
    return frozenset(denied_topics(context, Operation.CREATE, topics))


def _add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {detail}"


# -- StreamsGroupDescribe


@serves(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, on_error=error_of_each_group(StreamsGroupDescribeResponse))
def handle_streams_group_describe(
    context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    coordinator = context.services.group_coordinator
    if not StreamsGroupSettings(coordinator.settings).is_enabled:
        raise ApiError(Error.UNSUPPORTED_VERSION)
    describe = coordinator.describe_streams_group
    response = StreamsGroupDescribeResponse
    return described_groups(context, request, response, describe, _topics_of, HIDDEN_TOPOLOGY)


def _topics_of(group: DescribedGroup) -> Iterator[str]:
    return _topics(() if group.topology is None else group.topology.subtopologies or ())
