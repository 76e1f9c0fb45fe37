"""ElectLeaders, versions 0 to 2 (KIP-183, KIP-460).

The controller elects new leaders for the named partitions, or for all partitions. The request chooses the kind of
election: it elects the preferred replica, or any live replica. Electing any live replica may lose records.

Permissions: Alter on the cluster.

Version notes: version 0 elects preferred replicas only, and its response has no error of the whole request.
"""

from __future__ import annotations

from kafkapy.controller.elections import ElectionResults, elect_leaders
from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition, by_topic


def elect_leaders_error(
    request: ElectLeadersRequest, version: int, error: Error, message: str | None
) -> ElectLeadersResponse:
    failed = ErrorMessage(error, message)
    results = {topic: dict.fromkeys(numbers, failed) for topic, numbers in by_topic(_partitions(request) or ()).items()}
    # The response of version 0 has no error of the whole request.
    return ElectLeadersResponse(
        error_code=error if version >= 1 else Error.NONE, replica_election_results=_on_wire(results)
    )


@serves(ApiKey.ELECT_LEADERS, 0, 2, on_error=elect_leaders_error)
def handle_elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> None:
    check_cluster(context, Operation.ALTER)
    version = context.api_version
    partitions = _partitions(request)
    settings = ControllerSettings.from_config(context.services.config)
    answer_when_committed(
        context,
        lambda image: elect_leaders(image, request.election_type, partitions, settings),
        lambda results: ElectLeadersResponse(replica_election_results=_on_wire(results)),
        lambda error, message: elect_leaders_error(request, version, error, message),
    )


def _partitions(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [TopicPartition(each.topic, index) for each in request.topic_partitions for index in each.partitions]


def _on_wire(results: ElectionResults) -> list[ElectLeadersResponse.ReplicaElectionResult]:
    return [
        ElectLeadersResponse.ReplicaElectionResult(
            topic=topic,
            partition_result=[
                ElectLeadersResponse.PartitionResult(
                    partition_id=number, error_code=result.error, error_message=result.message
                )
                for number, result in partitions.items()
            ],
        )
        for topic, partitions in results.items()
    ]
