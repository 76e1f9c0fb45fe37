"""AlterPartition, versions 2 and 3 (KIP-497, KIP-903), and AssignReplicasToDirs, version 0 (KIP-858).

With these requests a broker reports the ISR of partitions that it leads, and the log directories of its replicas. The
response has a result for each partition and is sent when the active controller has committed the changes.

Permissions: ClusterAction on the cluster.

Version notes: version 3 of AlterPartition names the broker epoch of each member of the ISR.
"""

from __future__ import annotations

from kafkapy.controller.partitions import AlteredPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafkapy.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext

AlteredTopic = AlterPartitionResponse.TopicData
AssignedDirectory = AssignReplicasToDirsResponse.DirectoryData


@serves(ApiKey.ALTER_PARTITION, 2, 3, on_error=error_without_message(AlterPartitionResponse))
def handle_alter_partition(context: RequestContext, request: AlterPartitionRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    version = context.api_version
    answer_when_committed(
        context,
        context.services.controller_operations.alter_partitions(request, version),
        _altered,
        lambda error, message: AlterPartitionResponse(error_code=error),
    )


def _altered(partitions: list[AlteredPartition]) -> AlterPartitionResponse:
    topics: dict[bytes, AlteredTopic] = {}
    for each in partitions:
        topic = topics.get(each.topic_id)
        if topic is None:
            topic = topics[each.topic_id] = AlteredTopic(topic_id=each.topic_id, partitions=[])
        topic.partitions.append(
            AlterPartitionResponse.PartitionData(
                partition_index=each.partition,
                error_code=each.error,
                leader_id=each.leader,
                leader_epoch=each.leader_epoch,
                isr=list(each.isr),
                leader_recovery_state=each.leader_recovery_state,
                partition_epoch=each.partition_epoch,
            )
        )
    return AlterPartitionResponse(topics=list(topics.values()))


@serves(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, on_error=error_without_message(AssignReplicasToDirsResponse))
def handle_assign_replicas_to_dirs(context: RequestContext, request: AssignReplicasToDirsRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    answer_when_committed(
        context,
        context.services.controller_operations.assign_directories(request),
        lambda errors: _assigned(request, errors),
        lambda error, message: AssignReplicasToDirsResponse(error_code=error),
    )


def _assigned(request: AssignReplicasToDirsRequest, errors: list[Error]) -> AssignReplicasToDirsResponse:
    remaining = iter(errors)
    return AssignReplicasToDirsResponse(
        directories=[
            AssignedDirectory(
                id=directory.id,
                topics=[
                    AssignReplicasToDirsResponse.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            AssignReplicasToDirsResponse.PartitionData(
                                partition_index=partition.partition_index, error_code=next(remaining)
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
