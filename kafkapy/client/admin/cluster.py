"""Operations on the cluster: brokers, API versions, and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from kafkapy import __version__
from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import AdminRequest, Target, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.client.cluster import Node
from kafkapy.client.connection import SOFTWARE_NAME
from kafkapy.client.metadata_updater import CONTROLLER_ENDPOINTS
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerRequest
from kafkapy.protocol.messages.update_features import UpdateFeaturesRequest


class ClusterDescription(NamedTuple):
    """The cluster as one broker describes it.

    `fenced` are the ids of fenced brokers, empty unless they were requested; `cluster_id` is None before Apache Kafka
    0.10.1; `controller` is None if it is unknown.
    """

    cluster_id: str | None
    controller: Node | None
    brokers: tuple[Node, ...]
    fenced: frozenset[int] = frozenset()


class VersionRange(NamedTuple):
    """The lowest and highest level of a feature, or version of an API."""

    lowest: int
    highest: int


class FeatureDescription(NamedTuple):
    """The features of a cluster: `finalized` has the levels that the cluster uses, and `supported` the levels that one
    broker supports, both by the feature's name.

    `epoch` counts the changes of the finalized levels; it is -1 if it is unknown.
    """

    finalized: dict[str, VersionRange]
    epoch: int
    supported: dict[str, VersionRange]


class BrokerVersions(NamedTuple):
    """The versions that a broker serves, by API key, and its features. APIs that this client does not know are
    included.
    """

    apis: dict[int, VersionRange]
    features: FeatureDescription


class UpgradeType(IntEnum):
    """The allowed direction of a change of a feature's level."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A change of a feature: its new level, which is 0 to disable the feature.

    `upgrade_type` is the allowed direction of the change: the request fails if the level would change in another way.
    """

    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class ClusterOperations(AdminLookups):
    """Operations on the cluster as a whole."""

    def describe_cluster(self, *, include_fenced: bool = False, timeout: float | None = None) -> ClusterDescription:
        """Returns the cluster's id, controller and brokers, or the controllers if the client connects to them. Blocks.

        `include_fenced` needs Apache Kafka 4.0 or newer.
        """
        endpoint_type = CONTROLLER_ENDPOINTS if self._network.uses_controllers else 1
        deadline_ms = self._deadline_ms(timeout)

        def build(version: int) -> DescribeClusterRequest:
            if include_fenced and version < 2:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker does not report fenced brokers.")
            return DescribeClusterRequest(include_fenced_brokers=include_fenced, endpoint_type=endpoint_type)

        try:
            result = self._request(
                self._any_broker, ApiKey.DESCRIBE_CLUSTER, build, top_level_error, deadline_ms=deadline_ms
            )
        except ApiError as error:
            if include_fenced or endpoint_type != 1 or error.error is not Error.UNSUPPORTED_VERSION:
                raise
            self._metadata((), deadline_ms)
            cluster = self._network.cluster
            nodes = tuple(sorted(cluster.nodes.values()))
            return ClusterDescription(cluster.cluster_id, cluster.nodes.get(cluster.controller_id), nodes)
        brokers = tuple(Node(each.broker_id, each.host, each.port, each.rack) for each in result.brokers)
        controller = next((each for each in brokers if each.node_id == result.controller_id), None)
        fenced = frozenset(each.broker_id for each in result.brokers if each.is_fenced)
        return ClusterDescription(result.cluster_id, controller, brokers, fenced)

    def describe_versions(
        self, brokers: Iterable[int] | None = None, *, timeout: float | None = None
    ) -> Results[int, BrokerVersions]:
        """Returns the API versions and features of brokers (None: all). Blocks."""
        deadline_ms = self._deadline_ms(timeout)
        wanted = list(self._brokers(deadline_ms) if brokers is None else brokers)
        requests = {node_id: _versions_request(self._broker(node_id)) for node_id in wanted}
        self._send_all(list(requests.values()), deadline_ms)
        results: Results[int, BrokerVersions] = Results()
        for node_id, request in requests.items():
            results.put(node_id, request.error or _versions(request.response))
        return results

    def describe_features(self, *, broker: int | None = None, timeout: float | None = None) -> FeatureDescription:
        """Returns the features of the cluster and those that a broker (None: any) supports. Blocks."""
        request = _versions_request(self._any_broker if broker is None else self._broker(broker))
        self._send_all([request], self._deadline_ms(timeout))
        return _versions(request.result()).features

    def update_features(
        self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, None]:
        """Changes the finalized levels of features; Apache Kafka 4.0 or newer changes either all or none. Blocks."""
        deadline_ms = self._deadline_ms(timeout)

        def build(version: int) -> UpdateFeaturesRequest:
            if version < 1 and validate_only:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot validate without a change.")
            keys = []
            for name, (level, upgrade_type) in updates.items():
                key = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
                if version < 1:
                    key.allow_downgrade = upgrade_type is not UpgradeType.UPGRADE
                else:
                    key.upgrade_type = int(upgrade_type)
                keys.append(key)
            left_ms = self._left_ms(deadline_ms)
            return UpdateFeaturesRequest(timeout_ms=left_ms, feature_updates=keys, validate_only=validate_only)

        response = self._request(
            self._controller, ApiKey.UPDATE_FEATURES, build, top_level_error, deadline_ms=deadline_ms
        )
        results: Results[str, None] = Results()
        for name in updates:
            results.put(name, None)
        for result in response.results:
            error = error_of(result)
            if error is not None:
                results.values.pop(result.feature, None)
                results.errors[result.feature] = error
        return results

    def unregister_broker(self, broker: int, *, timeout: float | None = None) -> None:
        """Removes a broker that no longer exists from the cluster's metadata. Blocks."""
        self._request(
            self._controller,
            ApiKey.UNREGISTER_BROKER,
            lambda version: UnregisterBrokerRequest(broker_id=broker),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )


def _versions_request(target: Target) -> AdminRequest:
    def build(version: int) -> ApiVersionsRequest:
        if version < 3:
            return ApiVersionsRequest()
        return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)

    return AdminRequest(target, ApiKey.API_VERSIONS, build, top_level_error)


def _versions(result: Any) -> BrokerVersions:
    finalized = {
        each.name: VersionRange(each.min_version_level, each.max_version_level) for each in result.finalized_features
    }
    supported = {each.name: VersionRange(each.min_version, each.max_version) for each in result.supported_features}
    return BrokerVersions(
        {each.api_key: VersionRange(each.min_version, each.max_version) for each in result.api_keys},
        FeatureDescription(finalized, result.finalized_features_epoch, supported),
    )
