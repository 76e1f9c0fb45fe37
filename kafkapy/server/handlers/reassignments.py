"""AlterPartitionReassignments, versions 0 and 1, and ListPartitionReassignments, version 0 (KIP-455).

ListPartitionReassignments lists the partitions whose replicas are being changed. AlterPartitionReassignments begins or
cancels such changes.

Permissions: Describe on the cluster to list reassignments, Alter on the cluster to change replicas.
"""

from __future__ import annotations

from kafkapy.controller.reassignments import alter_partition_reassignments, list_partition_reassignments
from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import Error
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition

OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def list_partition_reassignments_error(
    request: ListPartitionReassignmentsRequest, version: int, error: Error, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Returns a response with the error and the named partitions, without their replicas."""
    topics = [
        OngoingTopic(
            name=topic.name,
            partitions=[
                ListPartitionReassignmentsResponse.OngoingPartitionReassignment(partition_index=index)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return ListPartitionReassignmentsResponse(error_code=error, error_message=message, topics=topics)


@serves(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, on_error=list_partition_reassignments_error)
def handle_list_partition_reassignments(context: RequestContext, request: ListPartitionReassignmentsRequest) -> None:
    """Lists the reassignments of the named partitions, or of all partitions.

    Partitions that do not exist are left out, as in Kafka.
    """
    check_cluster(context, Operation.DESCRIBE)
    version = context.api_version
    named = None if request.topics is None else [(topic.name, topic.partition_indexes) for topic in request.topics]
    answer_when_committed(
        context,
        lambda image: list_partition_reassignments(image, named),
        _listed,
        lambda error, message: list_partition_reassignments_error(request, version, error, message),
    )


def _listed(found: list[tuple[TopicPartition, PartitionImage]]) -> ListPartitionReassignmentsResponse:
    topics: dict[str, OngoingTopic] = {}
    for (name, index), partition in found:
        topic = topics.setdefault(name, OngoingTopic(name=name, partitions=[]))
        topic.partitions.append(
            ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
        )
    return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))


def alter_partition_reassignments_error(
    request: AlterPartitionReassignmentsRequest, version: int, error: Error, message: str | None
) -> AlterPartitionReassignmentsResponse:
    """Returns a response with the error for the whole request and for every partition."""
    failed = [
        (TopicPartition(topic.name, each.partition_index), ErrorMessage(error, message))
        for topic in request.topics
        for each in topic.partitions
    ]
    return AlterPartitionReassignmentsResponse(error_code=error, error_message=message, responses=_by_topic(failed))


@serves(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, on_error=alter_partition_reassignments_error)
def handle_alter_partition_reassignments(context: RequestContext, request: AlterPartitionReassignmentsRequest) -> None:
    check_cluster(context, Operation.ALTER)
    version = context.api_version
    settings = ControllerSettings.from_config(context.services.config)
    wanted = [
        (TopicPartition(topic.name, each.partition_index), each.replicas)
        for topic in request.topics
        for each in topic.partitions
    ]
    answer_when_committed(
        context,
        lambda image: alter_partition_reassignments(
            image, wanted, settings, allow_replication_factor_change=request.allow_replication_factor_change
        ),
        lambda results: _altered(results, request.allow_replication_factor_change),
        lambda error, message: alter_partition_reassignments_error(request, version, error, message),
    )


def _altered(
    results: list[tuple[TopicPartition, ErrorMessage]], allow_replication_factor_change: bool
) -> AlterPartitionReassignmentsResponse:
    topics = _by_topic(results)
    message = None if topics else ""  # as Apache Kafka does
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allow_replication_factor_change, error_message=message, responses=topics
    )


def _by_topic(
    results: list[tuple[TopicPartition, ErrorMessage]],
) -> list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]:
    topics: dict[str, AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = {}
    for topic_partition, result in results:
        topic = topics.get(topic_partition.topic)
        if topic is None:
            topic = topics[topic_partition.topic] = AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic_partition.topic, partitions=[]
            )
        topic.partitions.append(
            AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=topic_partition.partition, error_code=result.error, error_message=result.message
            )
        )
    return list(topics.values())
