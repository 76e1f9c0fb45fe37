"""DescribeQuorum, versions 0 to 2 (KIP-595, KIP-853), and UpdateFeatures, versions 0 to 2 (KIP-584).

DescribeQuorum describes the voters and observers of the metadata log, as their leader sees them. UpdateFeatures changes
the finalized levels of features. The level of the feature kraft.version is in a control record of the metadata log, not
in the metadata. It can be increased from 0 to 1 when every voter has reported that it supports level 1.

Permissions: Describe on the cluster for DescribeQuorum, Alter for UpdateFeatures.

Version notes: the response of UpdateFeatures has a result for each feature up to version 1, and none in version 2.
"""

from __future__ import annotations

from concurrent.futures import Future

from kafkapy.controller.feature_updates import FeatureUpdate, UpdatedFeatures, update_features
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.result import Operation as ControllerOperation
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kafkapy.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkapy.quorum.raft.messages import QuorumDescription, ReplicaState
from kafkapy.quorum.voters import Voter
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.controller_answer import answer_when_done
from kafkapy.server.request_context import RequestContext
from kafkapy.server.services import ControllerServices
from kafkapy.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID

UNKNOWN_MS = -1
LAST_VERSION_WITH_RESULTS = 1

DescribedPartition = DescribeQuorumResponse.PartitionData


# -- DescribeQuorum


def describe_quorum_error(
    request: DescribeQuorumRequest, version: int, error: Error, message: str | None
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error, error_message=message or "")


@serves(ApiKey.DESCRIBE_QUORUM, 0, 2, on_error=describe_quorum_error)
def handle_describe_quorum(context: RequestContext, request: DescribeQuorumRequest) -> None:
    services, version = context.services, context.api_version
    loop, reactor = services.quorum, services.reactor

    def refuse(error: Error, message: str | None) -> None:
        context.respond(describe_quorum_error(request, version, error, message))

    def describe() -> None:
        monotonic_ms = services.clock.monotonic_ms()
        found = loop.quorum.machine.describe(monotonic_ms)
        response = _described(request, version, found, services.clock.wall_ms() - monotonic_ms)
        reactor.post(lambda: context.respond(response))

    if not services.controller.is_active and context.hand_over(refuse):
        return
    check_cluster(context, Operation.DESCRIBE)
    if not loop.offer(describe):
        refuse(Error.REQUEST_TIMED_OUT, None)


def _described(
    request: DescribeQuorumRequest, version: int, quorum: QuorumDescription | None, wall_minus_monotonic_ms: int
) -> DescribeQuorumResponse:
    topics = []
    is_known = False
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            if topic.topic_name != METADATA_TOPIC or asked.partition_index != METADATA_PARTITION:
                partitions.append(_failed_partition(asked.partition_index, version, Error.UNKNOWN_TOPIC_OR_PARTITION))
            elif quorum is None:
                partitions.append(_failed_partition(asked.partition_index, version, Error.NOT_LEADER_OR_FOLLOWER))
            else:
                is_known = True
                partitions.append(_metadata_partition(quorum, version, wall_minus_monotonic_ms))
        topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=partitions))
    response = DescribeQuorumResponse(error_message="", topics=topics)
    if is_known and quorum is not None and version >= DescribeQuorumResponse.FIRST_VERSION_WITH_NODES:
        response.nodes = [_node(voter) for voter in quorum.nodes]
    return response


def _metadata_partition(quorum: QuorumDescription, version: int, wall_minus_monotonic_ms: int) -> DescribedPartition:
    has_directories = version >= DescribeQuorumResponse.FIRST_VERSION_WITH_NODES

    def replica(state: ReplicaState) -> DescribeQuorumResponse.ReplicaState:
        times = [UNKNOWN_MS if each < 0 else each + wall_minus_monotonic_ms for each in state[2:]]
        return DescribeQuorumResponse.ReplicaState(
            replica_id=state.key.node_id,
            replica_directory_id=state.key.directory_id if has_directories else ZERO_UUID,
            log_end_offset=state.log_end_offset,
            last_fetch_timestamp=times[0],
            last_caught_up_timestamp=times[1],
        )

    return DescribedPartition(
        partition_index=METADATA_PARTITION,
        error_message="",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[replica(each) for each in quorum.voters],
        observers=[replica(each) for each in quorum.observers],
    )


def _failed_partition(index: int, version: int, error: Error) -> DescribedPartition:
    has_message = version >= DescribeQuorumResponse.FIRST_VERSION_WITH_NODES
    return DescribedPartition(
        partition_index=index, error_code=error, error_message=error.message if has_message else ""
    )


def _node(voter: Voter) -> DescribeQuorumResponse.Node:
    wire = DescribeQuorumResponse.Listener
    listeners = [wire(name=name, host=host, port=port) for name, host, port in voter.listeners]
    return DescribeQuorumResponse.Node(node_id=voter.node_id, listeners=listeners)


# -- UpdateFeatures


def update_features_error(
    request: UpdateFeaturesRequest, version: int, error: Error, message: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=message)


@serves(ApiKey.UPDATE_FEATURES, 0, 2, on_error=update_features_error)
def handle_update_features(context: RequestContext, request: UpdateFeaturesRequest) -> None:
    check_cluster(context, Operation.ALTER)
    services, version = context.services, context.api_version
    updates = [
        FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates
    ]
    quorum = services.quorum.quorum

    def update(image: MetadataImage) -> ControllerResult[UpdatedFeatures]:
        return update_features(
            image, services.config, updates, services.node_id, quorum.version, validate_only=request.validate_only
        )

    answer_when_done(
        context,
        lambda: _update(services, update),
        lambda _: _updated(updates, version),
        lambda error, message: update_features_error(request, version, error, message),
    )


def _update(services: ControllerServices, operation: ControllerOperation[UpdatedFeatures]) -> Future[None]:
    """Submits an update of features to the controller. The quorum writes a new level of kraft.version after the other
    features."""
    loop = services.quorum
    ended: Future[None] = Future()

    def upgraded(error: Error, message: str | None) -> None:
        if error is Error.NONE:
            ended.set_result(None)
        else:
            error = Error.NOT_CONTROLLER if error is Error.NOT_LEADER_OR_FOLLOWER else error
            ended.set_exception(ApiError(error, message))

    def committed(finished: Future[UpdatedFeatures]) -> None:
        failure = finished.exception()
        level = None if failure is not None else finished.result().kraft_version
        if failure is not None:
            ended.set_exception(failure)
        elif level is None:
            upgraded(Error.NONE, None)
        elif not loop.offer(lambda: loop.quorum.upgrade_kraft_version(level, upgraded)):
            upgraded(Error.REQUEST_TIMED_OUT, None)

    services.controller.submit(operation).add_done_callback(committed)
    return ended


def _updated(updates: list[FeatureUpdate], version: int) -> UpdateFeaturesResponse:
    response = UpdateFeaturesResponse(error_message=None)
    if version <= LAST_VERSION_WITH_RESULTS:
        response.results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.name, error_message=Error.NONE.name)
            for update in updates
        ]
    return response
