"""The operations on the cluster: its brokers, features, metadata quorum and log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from kafkapy.compat.kafka.admin.acls import with_operation_names
from kafkapy.compat.kafka.admin.requests import AT_CONTROLLER, as_dict, error_class, error_text, raise_error
from kafkapy.compat.kafka.admin.topics import TopicOperations
from kafkapy.compat.kafka.connected import release_of
from kafkapy.compat.kafka.enum_helper import EnumHelper
from kafkapy.compat.kafka.errors import kafka_errors
from kafkapy.compat.kafka.structs import TopicPartitionReplica
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumRequest
from kafkapy.protocol.messages.update_features import UpdateFeaturesRequest
from kafkapy.types import METADATA_TOPIC

_UNSUPPORTED: Any = kafka_errors[35]


class UpdateFeatureType(EnumHelper, IntEnum):
    """The kinds of changes of a feature's level."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class ClusterOperations(TopicOperations):
    """The methods of KafkaAdminClient for the cluster: brokers, features, the metadata quorum, log directories."""

    def describe_cluster(self) -> dict[str, Any]:
        """Returns the fields of the DescribeCluster response as a dictionary.

        It has the brokers, the controller's id, the cluster's id and the operations that the client is permitted to
        perform.
        """

        def build(version: int) -> DescribeClusterRequest:
            request = DescribeClusterRequest(include_cluster_authorized_operations=True)
            if version >= DescribeClusterRequest.FIRST_VERSION_WITH_INCLUDE_FENCED_BROKERS:
                request.include_fenced_brokers = True
            return request

        try:
            response = self._ask(ApiKey.DESCRIBE_CLUSTER, build)
        except _UNSUPPORTED:
            return self._describe_old_cluster()
        raise_error(response.error_code, response.error_message)
        found = as_dict(response)
        for name in ("error_code", "error_message", "endpoint_type", "throttle_time_ms"):
            found.pop(name, None)
        with_operation_names(found, "cluster_authorized_operations")
        return found

    def _describe_old_cluster(self) -> dict[str, Any]:
        found = self._metadata([])
        for name in ("topics", "throttle_time_ms"):
            found.pop(name, None)
        for broker in found["brokers"]:
            broker["broker_id"] = broker.pop("node_id")
        return found

    def describe_log_dirs(
        self, topic_partitions: Any = None, brokers: Iterable[int] | None = None
    ) -> list[dict[str, Any]]:
        """Returns a dict for each broker: its id (`broker`), and its log directories and their partitions (`log_dirs`).

        `topic_partitions` is a dict of topics and partitions, a list of topics, or None for all topics. `brokers` are
        the ids of the brokers, by default of all.
        """
        request = DescribeLogDirsRequest(
            topics=[
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=list(numbers))
                for name, numbers in self._partitions_by_topic(topic_partitions).items()
            ]
        )
        return [
            {
                "broker": broker,
                "log_dirs": [as_dict(each) for each in self._ask(ApiKey.DESCRIBE_LOG_DIRS, request, broker).results],
            }
            for broker in (self._broker_ids() if brokers is None else brokers)
        ]

    def _partitions_by_topic(self, topic_partitions: Any) -> dict[str, list[int]]:
        """Returns a dictionary from each topic to a list of partition numbers.

        If `topic_partitions` is a dictionary of topics and partition numbers, the result has the same content. If it is
        a list of topics, or None for all topics, the result has all partitions of these topics.
        """
        if isinstance(topic_partitions, Mapping):
            return {name: list(numbers) for name, numbers in topic_partitions.items()}
        return {
            topic["name"]: [each["partition_index"] for each in topic["partitions"]]
            for topic in self.describe_topics(topic_partitions)
        }

    def alter_replica_log_dirs(self, replica_assignments: Mapping[Any, str]) -> dict[TopicPartitionReplica, Any]:
        """Moves replicas to other log directories of their brokers; returns the error class of each replica.

        `replica_assignments` maps a TopicPartitionReplica to the path of the new directory. NoError means that the move
        has begun.
        """
        by_broker: dict[int, dict[str, dict[str, list[int]]]] = {}
        for replica, path in replica_assignments.items():
            each = TopicPartitionReplica(*replica)
            by_broker.setdefault(each.broker_id, {}).setdefault(path, {}).setdefault(each.topic, []).append(
                each.partition
            )
        found = {}
        for broker, paths in by_broker.items():
            response = self._ask(ApiKey.ALTER_REPLICA_LOG_DIRS, _log_dirs_request(paths), broker)
            for topic in response.results:
                for partition in topic.partitions:
                    moved = TopicPartitionReplica(topic.topic_name, partition.partition_index, broker)
                    found[moved] = error_class(partition.error_code)
        return found

    def describe_metadata_quorum(self) -> dict[str, Any]:
        """Returns the DescribeQuorum response as a dictionary: the leader, voters and observers of the metadata log.

        The list `topics` has one topic with one partition, which has the leader, voters and observers. The field
        `error` of the partition is the text of its error, or None if there is no error.
        """
        topic = DescribeQuorumRequest.TopicData(
            topic_name=METADATA_TOPIC, partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
        )
        response = self._ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic]))
        raise_error(response.error_code, response.error_message)
        found = as_dict(response)
        for name in ("error_code", "error_message", "throttle_time_ms"):
            found.pop(name, None)
        for each in found["topics"]:
            for partition in each["partitions"]:
                partition["error"] = error_text(partition.pop("error_code"), partition.pop("error_message", None))
        return found

    def get_broker_version_data(self, broker_id: int) -> BrokerVersionData:
        """Returns a broker's release, and the lowest and highest version of each API that it serves, by API number.

        The release is derived from the versions. It is not later than the client's option `api_version` or, if the
        option is not set, than the release of the broker to which the client connected first.
        """
        response = self._ask(ApiKey.API_VERSIONS, _versions_request, broker_id)
        raise_error(response.error_code, None)
        versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        return BrokerVersionData(min(self.config["api_version"], release_of(versions)), versions)

    def api_versions(self) -> dict[Any, tuple[int, int]]:
        """Returns the lowest and highest version of each API that one broker, chosen by the client, serves."""
        response = self._ask(ApiKey.API_VERSIONS, _versions_request)
        raise_error(response.error_code, None)
        known = {int(key) for key in ApiKey}
        return {
            ApiKey(each.api_key) if each.api_key in known else each.api_key: (each.min_version, each.max_version)
            for each in response.api_keys
        }

    def describe_features(self, send_request_to_controller: bool = False) -> dict[str, dict[str, Any]]:
        """Returns a dictionary for each feature, with its `supported` and its `finalized` levels.

        The levels are pairs (lowest, highest). The item `finalized_epoch` is the epoch of the finalized levels, None if
        it is unknown. Asks the controller if `send_request_to_controller` is set, otherwise any broker.
        """
        node = AT_CONTROLLER if send_request_to_controller else None
        response = self._ask(ApiKey.API_VERSIONS, _versions_request, node)
        raise_error(response.error_code, None)
        found: dict[str, dict[str, Any]] = {}
        for each in response.supported_features:
            found.setdefault(each.name, {})["supported"] = each.min_version, each.max_version
        epoch = response.finalized_features_epoch
        for each in response.finalized_features:
            feature = found.setdefault(each.name, {})
            feature["finalized"] = each.min_version_level, each.max_version_level
            feature["finalized_epoch"] = None if epoch < 0 else epoch
        return found

    def update_features(
        self, feature_updates: Mapping[str, Any], validate_only: bool = False, timeout_ms: float = 60000
    ) -> dict[str, str]:
        """Changes the finalized levels of features.

        `feature_updates` has the new level of each feature, or a pair of UpdateFeatureType and level. Returns "OK" or
        the text of the error for each feature.
        """
        if not isinstance(feature_updates, Mapping):
            raise TypeError("feature_updates must be a dict of features and levels")
        kinds = {name: _update(spec) for name, spec in feature_updates.items()}

        def build(version: int) -> UpdateFeaturesRequest:
            request = UpdateFeaturesRequest(timeout_ms=int(timeout_ms))
            for name, (kind, level) in kinds.items():
                update = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
                if version >= UpdateFeaturesRequest.FIRST_VERSION_WITH_UPGRADE_TYPE:
                    update.upgrade_type = kind
                else:
                    update.allow_downgrade = kind > UpdateFeatureType.UPGRADE
                request.feature_updates.append(update)
            if validate_only:
                request.validate_only = True
            return request

        response = self._ask(ApiKey.UPDATE_FEATURES, build, AT_CONTROLLER, timeout_ms)
        raise_error(response.error_code, response.error_message)
        found = dict.fromkeys(feature_updates, "OK")
        for each in response.results:
            found[each.feature] = error_text(each.error_code, each.error_message) or "OK"
        return found


class BrokerVersionData:
    """The release of a broker, and the lowest and highest version of each API that it serves."""

    def __init__(self, broker_version: tuple[int, ...], api_versions: dict[int, tuple[int, int]]) -> None:
        self.broker_version = broker_version
        self.api_versions = api_versions

    @property
    def broker_version_str(self) -> str:
        """The release as text."""
        return ".".join(map(str, self.broker_version))

    def __str__(self) -> str:
        return f"<BrokerVersionData {self.broker_version_str}>"


def _log_dirs_request(paths: Mapping[str, Mapping[str, list[int]]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                    for name, numbers in topics.items()
                ],
            )
            for path, topics in paths.items()
        ]
    )


def _versions_request(version: int) -> ApiVersionsRequest:
    if version < ApiVersionsRequest.FIRST_VERSION_WITH_CLIENT_SOFTWARE_NAME:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name="kafkapy", client_software_version="1")


def _update(spec: Any) -> tuple[int, int]:
    kind, level = spec if isinstance(spec, tuple) else (UpdateFeatureType.UPGRADE, spec)
    return UpdateFeatureType.value_for(kind), int(level)
