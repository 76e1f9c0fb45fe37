"""ElectLeaders, versions 0 to 2 (KIP-183, KIP-460).

Behaviour: elects the preferred replica, or any live replica, of the named or of all partitions. The election of any
live replica may lose records.

Version notes: version 0 elects preferred replicas only, and its response has no error of the whole request.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.controller.elections import elect_leaders
from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext
from kafkapy.types import TopicPartition


def elect_leaders_error(
    request: ElectLeadersRequest, version: int, error: Error, message: str | None
) -> ElectLeadersResponse:
    failed = ErrorMessage(error, message)
    results = dict.fromkeys(_partitions(request) or (), failed)
    # The response of version 0 has no error of the whole request.
    return ElectLeadersResponse(
        error_code=error if version >= 1 else Error.NONE, replica_election_results=_grouped(results)
    )


@serves(ApiKey.ELECT_LEADERS, 0, 2, on_error=elect_leaders_error)
def handle_elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> None:
    version = context.api_version
    partitions = _partitions(request)
    settings = ControllerSettings.from_config(context.services.config)
    answer_when_committed(
        context,
        lambda image: elect_leaders(image, request.election_type, partitions, settings),
        lambda results: ElectLeadersResponse(replica_election_results=_grouped(results)),
        lambda error, message: elect_leaders_error(request, version, error, message),
    )


def _partitions(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [TopicPartition(each.topic, index) for each in request.topic_partitions for index in each.partitions]


def _grouped(results: Mapping[TopicPartition, ErrorMessage]) -> list[ElectLeadersResponse.ReplicaElectionResult]:
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    for (topic, partition), result in results.items():
        if topic not in topics:
            topics[topic] = ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=[])
        topics[topic].partition_result.append(
            ElectLeadersResponse.PartitionResult(
                partition_id=partition, error_code=result.error, error_message=result.message
            )
        )
    return list(topics.values())
