"""DescribeQuorum, versions 0 to 2 (KIP-595, KIP-853), and UpdateFeatures, versions 0 to 2 (KIP-584).

Behaviour: describes the metadata log's only voter, this node; changes the finalized levels of features.

Version notes: the response of UpdateFeatures has a result for each feature up to version 1, and none in version 2.
"""

from __future__ import annotations

from kafkapy.controller.feature_updates import FeatureUpdate, update_features
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import METADATA_PARTITION, METADATA_TOPIC
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kafkapy.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext
from kafkapy.server.services import Services
from kafkapy.types import ZERO_UUID

FIRST_VERSION_WITH_NODES = 2
LAST_VERSION_WITH_RESULTS = 1

DescribedPartition = DescribeQuorumResponse.PartitionData


# -- DescribeQuorum


def describe_quorum_error(
    request: DescribeQuorumRequest, version: int, error: Error, message: str | None
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error, error_message=message or "")


@serves(ApiKey.DESCRIBE_QUORUM, 0, 2, on_error=describe_quorum_error)
def handle_describe_quorum(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    services, version = context.services, context.api_version
    topics = []
    is_known = False
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            if topic.topic_name == METADATA_TOPIC and asked.partition_index == METADATA_PARTITION:
                is_known = True
                partitions.append(_metadata_partition(services, version))
            else:
                partitions.append(_unknown_partition(asked.partition_index, version))
        topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=partitions))
    response = DescribeQuorumResponse(error_message="", topics=topics)
    if is_known and version >= FIRST_VERSION_WITH_NODES:
        response.nodes = _nodes(services)
    return response


def _metadata_partition(services: Services, version: int) -> DescribedPartition:
    """Returns the state of the only voter, which is the leader and whose whole log is committed."""
    image = services.metadata.image
    wall_ms = services.clock.wall_ms()
    voter = DescribeQuorumResponse.ReplicaState(
        replica_id=services.node_id,
        replica_directory_id=_metadata_directory_id(services) if version >= FIRST_VERSION_WITH_NODES else ZERO_UUID,
        log_end_offset=image.offset,
        last_fetch_timestamp=wall_ms,
        last_caught_up_timestamp=wall_ms,
    )
    return DescribedPartition(
        partition_index=METADATA_PARTITION,
        error_message="",
        leader_id=services.node_id,
        leader_epoch=image.epoch,
        high_watermark=image.offset,
        current_voters=[voter],
    )


def _metadata_directory_id(services: Services) -> bytes:
    path = services.config.metadata_log_dir
    found: list[bytes] = [each.directory_id for each in services.log_manager.directories if each.path == path]
    return found[0] if found else ZERO_UUID


def _unknown_partition(index: int, version: int) -> DescribedPartition:
    error = Error.UNKNOWN_TOPIC_OR_PARTITION
    has_message = version >= FIRST_VERSION_WITH_NODES
    return DescribedPartition(
        partition_index=index, error_code=error, error_message=error.message if has_message else ""
    )


def _nodes(services: Services) -> list[DescribeQuorumResponse.Node]:
    return [
        DescribeQuorumResponse.Node(
            node_id=controller.controller_id,
            listeners=[
                DescribeQuorumResponse.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                for endpoint in controller.endpoints.values()
            ],
        )
        for controller in services.metadata.image.controllers.values()
    ]


# -- UpdateFeatures


def update_features_error(
    request: UpdateFeaturesRequest, version: int, error: Error, message: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=message)


@serves(ApiKey.UPDATE_FEATURES, 0, 2, on_error=update_features_error)
def handle_update_features(context: RequestContext, request: UpdateFeaturesRequest) -> None:
    services, version = context.services, context.api_version
    updates = [
        FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates
    ]
    answer_when_committed(
        context,
        lambda image: update_features(
            image, services.config, updates, services.node_id, validate_only=request.validate_only
        ),
        lambda _: _updated(updates, version),
        lambda error, message: update_features_error(request, version, error, message),
    )


def _updated(updates: list[FeatureUpdate], version: int) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(error_message=None)
    if version <= LAST_VERSION_WITH_RESULTS:
        response.results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.name, error_message=Error.NONE.name)
            for update in updates
        ]
    return response
