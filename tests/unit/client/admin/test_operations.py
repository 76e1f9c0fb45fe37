"""Configurations, transactions, partitions, log directories, offsets and the cluster: requests, results, versions."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.admin import (
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSynonym,
    ElectionType,
    FeatureDescription,
    FeatureUpdate,
    HangingTransaction,
    Node,
    ProducerState,
    QuorumReplica,
    Reassignment,
    Replica,
    ReplicaInfo,
    ResourceType,
    TransactionDescription,
    TransactionListing,
    UpgradeType,
    VersionRange,
)
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from kafkapy.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse
from kafkapy.protocol.messages.delete_records import DeleteRecordsResponse
from kafkapy.protocol.messages.describe_cluster import DescribeClusterResponse
from kafkapy.protocol.messages.describe_configs import DescribeConfigsResponse
from kafkapy.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kafkapy.protocol.messages.describe_producers import DescribeProducersResponse
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumResponse
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsResponse
from kafkapy.protocol.messages.elect_leaders import ElectLeadersResponse
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesResponse
from kafkapy.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from kafkapy.protocol.messages.list_transactions import ListTransactionsResponse
from kafkapy.protocol.messages.unregister_broker import UnregisterBrokerResponse
from kafkapy.protocol.messages.update_features import UpdateFeaturesResponse
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC, BROKER = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "2")
DEFAULT = ConfigResource(ResourceType.BROKER, "")
BAD = int(Error.INVALID_REQUEST)


@pytest.fixture
def brokers():
    harness = LogBrokers(node_ids=(1, 2))
    harness.fill("t", ["a"] * 4, ["b"] * 6)
    harness.add_topic("t", [(1, 3), (2, 3)])
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin(default_api_timeout_ms=20_000) as made:
        yield made


def answer(brokers: LogBrokers, key: ApiKey, response: Any) -> None:
    brokers.answers[key] = lambda request, version: response


def nodes_of(brokers: LogBrokers, key: ApiKey) -> list[int]:
    return [each.node_id for each in brokers.asked if each.key == key]


def refused(call: Any) -> Error:
    with pytest.raises(ApiError) as raised:
        call()
    return raised.value.error


# Configurations


def describe_configs(request: Any, version: int) -> DescribeConfigsResponse:
    results = []
    for each in request.resources:
        entry = DescribeConfigsResponse.DescribeConfigsResourceResult(name="k", value="v", read_only=True)
        if version == 0:
            entry.is_default = True
        else:
            entry.config_source = 5
            entry.synonyms = [DescribeConfigsResponse.DescribeConfigsSynonym(name="k", value="w", source=4)]
        if version >= 3:
            entry.config_type, entry.documentation = 2, "text"
        results.append(
            DescribeConfigsResponse.DescribeConfigsResult(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=[entry],
                error_code=BAD if each.resource_name == "bad" else 0,
            )
        )
    return DescribeConfigsResponse(results=results)


def test_configurations_are_described_by_the_broker_that_has_them(brokers, admin: Admin):
    brokers.answers[ApiKey.DESCRIBE_CONFIGS] = describe_configs
    bad = ConfigResource(ResourceType.TOPIC, "bad")
    results = admin.describe_configs([TOPIC, BROKER, DEFAULT, bad, (2, "t")], include_synonyms=True)
    entry = ConfigEntry("k", "v", 5, False, True, (ConfigSynonym("k", "w", 4),), 2, "text")
    assert results.values == {TOPIC: {"k": entry}, BROKER: {"k": entry}, DEFAULT: {"k": entry}}
    assert results.errors[bad].error is Error.INVALID_REQUEST
    shared, own = sorted(brokers.of(ApiKey.DESCRIBE_CONFIGS), key=lambda each: -len(each.resources))
    assert [each.resource_name for each in shared.resources] == ["t", "", "bad"]
    assert [(each.resource_type, each.resource_name) for each in own.resources] == [(4, "2")]
    assert shared.include_synonyms and not shared.include_documentation
    assert 2 in nodes_of(brokers, ApiKey.DESCRIBE_CONFIGS)
    with pytest.raises(ValueError, match="'x' is not the id of a broker"):
        admin.describe_configs([ConfigResource(ResourceType.BROKER_LOGGER, "x")])


def test_an_old_broker_describes_the_source_of_defaults_only(brokers, admin: Admin):
    brokers.versions[ApiKey.DESCRIBE_CONFIGS] = (0, 0)
    brokers.answers[ApiKey.DESCRIBE_CONFIGS] = describe_configs
    described = admin.describe_configs([TOPIC], include_synonyms=True, include_documentation=True)[TOPIC]["k"]
    assert (described.source, described.synonyms, described.documentation or None) == (5, (), None)


def test_an_unreachable_broker_is_an_error_of_its_resources(admin: Admin):
    absent = ConfigResource(ResourceType.BROKER, "9")
    assert admin.describe_configs([absent]).errors[absent].error is Error.BROKER_NOT_AVAILABLE
    assert admin.incremental_alter_configs({absent: []}).errors[absent].error is Error.BROKER_NOT_AVAILABLE


def test_after_an_unreachable_broker_the_others_are_read(brokers, admin: Admin):
    brokers.answers[ApiKey.DESCRIBE_CONFIGS] = describe_configs
    brokers.answers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = lambda request, version: IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                resource_type=each.resource_type, resource_name=each.resource_name
            )
            for each in request.resources
        ]
    )
    absent = ConfigResource(ResourceType.BROKER, "9")
    described = admin.describe_configs([absent, TOPIC])
    assert (list(described.errors), list(described.values)) == ([absent], [TOPIC])
    altered = admin.incremental_alter_configs({absent: [], TOPIC: []})
    assert (list(altered.errors), list(altered.values)) == ([absent], [TOPIC])


def test_a_changed_configuration_is_sent_again_after_the_controller_has_moved(brokers, admin: Admin) -> None:
    result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    errors = [Error.NOT_CONTROLLER]
    brokers.answers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = lambda request, version: IncrementalAlterConfigsResponse(
        responses=[
            result(
                resource_type=int(TOPIC.type), resource_name=TOPIC.name, error_code=int(errors.pop()) if errors else 0
            )
        ]
    )
    assert admin.incremental_alter_configs({TOPIC: []}).check() == {TOPIC: None}
    assert len(brokers.of(ApiKey.INCREMENTAL_ALTER_CONFIGS)) == 2


def test_keys_are_changed_one_by_one(brokers, admin: Admin):
    brokers.answers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = lambda request, version: IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                error_code=BAD if each.resource_name == "t" else 0,
            )
            for each in request.resources
        ]
    )
    changes = [ConfigChange("a", "1"), ConfigChange("b", None, ConfigOperation.DELETE)]
    results = admin.incremental_alter_configs({TOPIC: changes, BROKER: []}, validate_only=True)
    assert results.values == {BROKER: None} and results.errors[TOPIC].error is Error.INVALID_REQUEST
    request = next(each for each in brokers.of(ApiKey.INCREMENTAL_ALTER_CONFIGS) if each.resources[0].configs)
    assert request.validate_only
    assert [(each.name, each.value, each.config_operation) for each in request.resources[0].configs] == [
        ("a", "1", 0),
        ("b", None, 1),
    ]


def test_resources_with_a_configuration_are_listed(brokers, admin: Admin):
    resource = ListConfigResourcesResponse.ConfigResource
    brokers.answers[ApiKey.LIST_CONFIG_RESOURCES] = lambda request, version: ListConfigResourcesResponse(
        config_resources=[resource(resource_name="t", resource_type=2)] if version else [resource(resource_name="m")]
    )
    assert admin.list_config_resources([ResourceType.TOPIC, ResourceType.GROUP]) == [TOPIC]
    assert brokers.of(ApiKey.LIST_CONFIG_RESOURCES)[0].resource_types == [2, 32]
    brokers.versions[ApiKey.LIST_CONFIG_RESOURCES] = (0, 0)
    with brokers.admin() as older:
        assert refused(older.list_config_resources) is Error.UNSUPPORTED_VERSION
        assert older.list_config_resources([ResourceType.CLIENT_METRICS]) == [
            ConfigResource(ResourceType.CLIENT_METRICS, "m")
        ]


# Transactions


def test_transactions_of_all_brokers_are_listed(brokers, admin: Admin):
    state = ListTransactionsResponse.TransactionState(transactional_id="x", producer_id=7, transaction_state="Ongoing")
    answer(brokers, ApiKey.LIST_TRANSACTIONS, ListTransactionsResponse(transaction_states=[state]))
    found = admin.list_transactions(states=["Ongoing"], producer_ids=[7], longer_than_ms=0, pattern="x.*")
    assert found == [TransactionListing("x", 1, 7, "Ongoing"), TransactionListing("x", 2, 7, "Ongoing")]
    request = brokers.of(ApiKey.LIST_TRANSACTIONS)[0]
    assert (request.state_filters, request.producer_id_filters) == (["Ongoing"], [7])
    assert (request.duration_filter, request.transactional_id_pattern) == (0, "x.*")
    admin.list_transactions()
    request = brokers.of(ApiKey.LIST_TRANSACTIONS)[-1]
    assert (request.duration_filter, request.transactional_id_pattern) == (-1, None)


@pytest.mark.parametrize(("highest", "filters"), [(0, {"longer_than_ms": 0}), (1, {"pattern": "x"})])
def test_filters_of_transactions_that_a_broker_does_not_have_are_refused(brokers, admin: Admin, highest, filters):
    brokers.versions[ApiKey.LIST_TRANSACTIONS] = (0, highest)
    answer(brokers, ApiKey.LIST_TRANSACTIONS, ListTransactionsResponse())
    assert refused(lambda: admin.list_transactions(**filters)) is Error.UNSUPPORTED_VERSION
    assert admin.list_transactions(longer_than_ms=5 if highest else -1) == []


def test_transactions_are_described_by_their_coordinators(brokers, admin: Admin):
    state = DescribeTransactionsResponse.TransactionState
    topics = [DescribeTransactionsResponse.TopicData(topic="t", partitions=[0, 1])]
    states = [
        state(transactional_id="x", transaction_state="Ongoing", transaction_timeout_ms=5, transaction_start_time_ms=6,
              producer_id=7, producer_epoch=8, topics=topics),
        state(transactional_id="y", error_code=int(Error.TRANSACTIONAL_ID_NOT_FOUND)),
    ]  # fmt: skip
    answer(brokers, ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsResponse(transaction_states=states))
    results = admin.describe_transactions(["x", "y"])
    assert results["x"] == TransactionDescription(1, "Ongoing", 7, 8, 5, 6, frozenset((T0, T1)))
    assert results.errors["y"].error is Error.TRANSACTIONAL_ID_NOT_FOUND
    assert brokers.of(ApiKey.FIND_COORDINATOR)[0].key_type == 1


@pytest.mark.parametrize("code", [Error.NONE, Error.INVALID_PRODUCER_EPOCH])
def test_a_hanging_transaction_is_aborted_at_the_leader(brokers, admin: Admin, code):
    marker = WriteTxnMarkersResponse.WritableTxnMarkerResult(
        producer_id=7,
        topics=[
            WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                name="t",
                partitions=[
                    WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(partition_index=1, error_code=int(code))
                ],
            )
        ],
    )
    answer(brokers, ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersResponse(markers=[marker]))
    hanging = HangingTransaction(T1, 7, 8, 9)
    if code:
        assert refused(lambda: admin.abort_transaction(hanging)) is code
    else:
        admin.abort_transaction(hanging)
    assert nodes_of(brokers, ApiKey.WRITE_TXN_MARKERS) == [2]
    (sent,) = brokers.of(ApiKey.WRITE_TXN_MARKERS)[0].markers
    assert (sent.producer_id, sent.producer_epoch, sent.coordinator_epoch, sent.transaction_result) == (7, 8, 9, False)
    assert [(each.name, each.partition_indexes) for each in sent.topics] == [("t", [1])]


def test_producers_are_fenced_by_a_request_each(brokers, admin: Admin):
    def fence(request, version):
        if request.transactional_id == "y":
            return InitProducerIdResponse(error_code=BAD)
        return InitProducerIdResponse(producer_id=7, producer_epoch=8)

    brokers.answers[ApiKey.INIT_PRODUCER_ID] = fence
    results = admin.fence_producers(["x", "y"])
    assert results["x"] == (7, 8) and results.errors["y"].error is Error.INVALID_REQUEST
    assert [each.transactional_id for each in brokers.of(ApiKey.INIT_PRODUCER_ID)] == ["x", "y"]
    assert brokers.of(ApiKey.INIT_PRODUCER_ID)[0].transaction_timeout_ms == 30_000


# Partitions


def test_leaders_are_elected(brokers, admin: Admin):
    partition = ElectLeadersResponse.PartitionResult
    result = ElectLeadersResponse.ReplicaElectionResult(
        topic="t",
        partition_result=[partition(partition_id=0), partition(partition_id=1, error_code=BAD, error_message="no")],
    )
    answer(brokers, ApiKey.ELECT_LEADERS, ElectLeadersResponse(replica_election_results=[result]))
    results = admin.elect_leaders(ElectionType.UNCLEAN, [T0, T1], timeout=9)
    assert results.values == {T0: None} and results.errors[T1].message == "no"
    request = brokers.of(ApiKey.ELECT_LEADERS)[0]
    assert request.election_type == 1 and 8000 < request.timeout_ms <= 9000
    assert [(each.topic, each.partitions) for each in request.topic_partitions] == [("t", [0, 1])]
    admin.elect_leaders(ElectionType.PREFERRED)
    assert brokers.of(ApiKey.ELECT_LEADERS)[1].topic_partitions is None
    brokers.versions[ApiKey.ELECT_LEADERS] = (0, 0)
    with brokers.admin() as older:
        assert refused(lambda: older.elect_leaders(ElectionType.UNCLEAN)) is Error.UNSUPPORTED_VERSION
        assert older.elect_leaders(ElectionType.PREFERRED).values == {T0: None}


def test_partitions_are_reassigned(brokers, admin: Admin):
    partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
    topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
        name="t", partitions=[partition(partition_index=0), partition(partition_index=1, error_code=BAD)]
    )
    answer(brokers, ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsResponse(responses=[topic]))
    results = admin.alter_partition_reassignments({T0: (2, 1), ("t", 1): None})
    assert results.values == {T0: None} and results.errors[T1].error is Error.INVALID_REQUEST
    request = brokers.of(ApiKey.ALTER_PARTITION_REASSIGNMENTS)[0]
    (sent,) = request.topics
    assert [(each.partition_index, each.replicas) for each in sent.partitions] == [(0, [2, 1]), (1, None)]
    assert request.allow_replication_factor_change
    brokers.versions[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = (0, 0)
    with brokers.admin() as older:
        older.alter_partition_reassignments({T0: [1]})
        keep = {"allow_replication_factor_change": False}
        assert refused(lambda: older.alter_partition_reassignments({T0: [1]}, **keep)) is Error.UNSUPPORTED_VERSION


def test_reassignments_are_listed(brokers, admin: Admin):
    partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment(name="t", partitions=[partition])
    answer(brokers, ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse(topics=[topic]))
    assert admin.list_partition_reassignments([T1]) == {T1: Reassignment((1, 2), (2,), (1,))}
    admin.list_partition_reassignments()
    named, everything = brokers.of(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    assert [(each.name, each.partition_indexes) for each in named.topics] == [("t", [1])]
    assert everything.topics is None


@pytest.mark.parametrize(("broker", "node"), [(None, 2), (1, 1)])
def test_producers_are_described_by_the_leader_or_a_broker(brokers, admin: Admin, broker, node):
    state = DescribeProducersResponse.ProducerState
    partition = DescribeProducersResponse.PartitionResponse(
        partition_index=1,
        active_producers=[
            state(producer_id=7, producer_epoch=8, last_sequence=9, last_timestamp=10, coordinator_epoch=-1,
                  current_txn_start_offset=-1),
            state(producer_id=8, producer_epoch=0, last_sequence=1, last_timestamp=2, coordinator_epoch=3,
                  current_txn_start_offset=0),
        ],
    )  # fmt: skip
    topic = DescribeProducersResponse.TopicResponse(name="t", partitions=[partition])
    answer(brokers, ApiKey.DESCRIBE_PRODUCERS, DescribeProducersResponse(topics=[topic]))
    assert admin.describe_producers([T1], broker=broker)[T1] == [
        ProducerState(7, 8, 9, 10, -1, None),
        ProducerState(8, 0, 1, 2, 3, 0),
    ]
    assert nodes_of(brokers, ApiKey.DESCRIBE_PRODUCERS) == [node]


# Log directories and offsets


def test_log_directories_are_described(brokers, admin: Admin):
    partition = DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=0, partition_size=100, offset_lag=3, is_future_key=True
    )
    directory = DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir="/a",
        topics=[DescribeLogDirsResponse.DescribeLogDirsTopic(name="t", partitions=[partition])],
        total_bytes=10,
        usable_bytes=5,
    )
    offline = DescribeLogDirsResponse.DescribeLogDirsResult(log_dir="/b", error_code=BAD)
    answer(brokers, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsResponse(results=[directory, offline]))
    results = admin.describe_log_dirs([1, 9])
    described = results[1]
    assert described["/a"].replicas == {T0: ReplicaInfo(100, 3, True)}
    assert (described["/a"].error, described["/a"].total_bytes, described["/a"].usable_bytes) == (None, 10, 5)
    assert described["/b"].error.error is Error.INVALID_REQUEST
    assert results.errors[9].error is Error.BROKER_NOT_AVAILABLE
    assert set(admin.describe_log_dirs()) == {1, 2}


def test_replicas_are_moved_between_log_directories(brokers, admin: Admin):
    partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult
    topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
        topic_name="t", partitions=[partition(partition_index=0), partition(partition_index=1, error_code=BAD)]
    )
    answer(brokers, ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsResponse(results=[topic]))
    moves = {Replica("t", 0, 1): "/a", Replica("t", 1, 1): "/b", Replica("t", 0, 9): "/a"}
    results = admin.alter_replica_log_dirs(moves)
    assert results.values == {Replica("t", 0, 1): None}
    assert {key: error.error for key, error in results.errors.items()} == {
        Replica("t", 1, 1): Error.INVALID_REQUEST,
        Replica("t", 0, 9): Error.BROKER_NOT_AVAILABLE,
    }
    (request,) = brokers.of(ApiKey.ALTER_REPLICA_LOG_DIRS)
    assert [(each.path, each.topics[0].partitions) for each in request.dirs] == [("/a", [0]), ("/b", [1])]


def test_records_are_deleted_before_offsets(brokers, admin: Admin):
    brokers.answers[ApiKey.DELETE_RECORDS] = lambda request, version: DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsResponse.DeleteRecordsPartitionResult(
                        partition_index=each.partition_index,
                        low_watermark=each.offset,
                        error_code=BAD if each.offset < 0 else 0,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    results = admin.delete_records({T0: 3, ("t", 1): -1}, timeout=5)
    assert results.values == {T0: 3} and results.errors[T1].error is Error.INVALID_REQUEST
    assert 4000 < brokers.of(ApiKey.DELETE_RECORDS)[0].timeout_ms <= 5000


def test_kinds_of_offsets_that_a_broker_does_not_know_are_refused(brokers, admin: Admin):
    brokers.versions[ApiKey.LIST_OFFSETS] = (1, 6)
    results = admin.list_offsets({T0: MAX_TIMESTAMP, T1: LATEST}, read_committed=True)
    assert results.errors[T0].error is Error.UNSUPPORTED_VERSION and results.values[T1].offset == 6
    (request,) = brokers.of(ApiKey.LIST_OFFSETS)
    assert (request.isolation_level, request.timeout_ms, request.replica_id) == (1, 0, -1)
    brokers.versions[ApiKey.LIST_OFFSETS] = (1, 7)
    with brokers.admin() as newer:
        assert newer.list_offsets({T0: MAX_TIMESTAMP}).check()
    assert brokers.of(ApiKey.LIST_OFFSETS)[-1].isolation_level == 0


# The cluster


def test_the_cluster_is_described(brokers, admin: Admin):
    broker = DescribeClusterResponse.DescribeClusterBroker
    found = [broker(broker_id=1, host="a", port=1, rack="r"), broker(broker_id=2, host="b", port=2, is_fenced=True)]
    response = DescribeClusterResponse(cluster_id="c", controller_id=2, brokers=found)
    answer(brokers, ApiKey.DESCRIBE_CLUSTER, response)
    nodes = (Node(1, "a", 1, "r"), Node(2, "b", 2))
    assert admin.describe_cluster(include_fenced=True) == ClusterDescription("c", nodes[1], nodes, frozenset((2,)))
    assert brokers.of(ApiKey.DESCRIBE_CLUSTER)[0].include_fenced_brokers


def test_an_old_broker_describes_the_cluster_by_metadata(brokers, admin: Admin):
    brokers.versions[ApiKey.DESCRIBE_CLUSTER] = (9, 9)
    nodes = (Node(1, "memory", 1), Node(2, "memory", 2))
    assert admin.describe_cluster() == ClusterDescription("memory", nodes[0], nodes)
    assert refused(lambda: admin.describe_cluster(include_fenced=True)) is Error.UNSUPPORTED_VERSION


def test_versions_and_features_are_described(brokers, admin: Admin):
    brokers.features = {"transaction.version": 2}
    results = admin.describe_versions()
    assert set(results.values) == {1, 2}
    assert results[1].apis[ApiKey.PRODUCE] == VersionRange(3, 13)
    expected = FeatureDescription({"transaction.version": VersionRange(2, 2)}, -1, {})
    assert results[2].features == admin.describe_features() == admin.describe_features(broker=1) == expected
    assert admin.describe_versions([7]).errors[7].error is Error.BROKER_NOT_AVAILABLE


def test_features_are_updated(brokers, admin: Admin):
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    answer(brokers, ApiKey.UPDATE_FEATURES, UpdateFeaturesResponse())
    updates = {"a": FeatureUpdate(3), "b": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)}
    assert admin.update_features(updates, validate_only=True).check() == {"a": None, "b": None}
    request = brokers.of(ApiKey.UPDATE_FEATURES)[0]
    assert request.validate_only
    assert [(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates] == [
        ("a", 3, 1),
        ("b", 1, 2),
    ]
    brokers.versions[ApiKey.UPDATE_FEATURES] = (0, 0)
    answer(brokers, ApiKey.UPDATE_FEATURES, UpdateFeaturesResponse(results=[result(feature="b", error_code=BAD)]))
    with brokers.admin() as older:
        assert refused(lambda: older.update_features(updates, validate_only=True)) is Error.UNSUPPORTED_VERSION
        results = older.update_features(updates)
    assert results.values == {"a": None} and results.errors["b"].error is Error.INVALID_REQUEST
    sent = brokers.of(ApiKey.UPDATE_FEATURES)[-1].feature_updates
    assert [each.allow_downgrade for each in sent] == [False, True]


def test_the_quorum_is_described(brokers, admin: Admin):
    state = DescribeQuorumResponse.ReplicaState
    partition = DescribeQuorumResponse.PartitionData(
        leader_id=1, leader_epoch=4, high_watermark=99,
        current_voters=[state(replica_id=1, log_end_offset=100, last_fetch_timestamp=5, last_caught_up_timestamp=6)],
        observers=[state(replica_id=2, log_end_offset=50)],
    )  # fmt: skip
    topic = DescribeQuorumResponse.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    listener = DescribeQuorumResponse.Listener(name="CONTROLLER", host="h", port=9)
    node = DescribeQuorumResponse.Node(node_id=1, listeners=[listener])
    answer(brokers, ApiKey.DESCRIBE_QUORUM, DescribeQuorumResponse(topics=[topic], nodes=[node]))
    described = admin.describe_metadata_quorum()
    assert (described.leader, described.leader_epoch, described.high_watermark) == (1, 4, 99)
    assert described.voters == (QuorumReplica(1, bytes(16), 100, 5, 6),)
    assert [each.node_id for each in described.observers] == [2]
    assert described.listeners == {1: {"CONTROLLER": ("h", 9)}}


@pytest.mark.parametrize(("code", "expected"), [(None, Error.UNKNOWN_SERVER_ERROR), (BAD, Error.INVALID_REQUEST)])
def test_a_quorum_that_is_not_described_is_an_error(brokers, admin: Admin, code, expected):
    partitions = [] if code is None else [DescribeQuorumResponse.PartitionData(error_code=code)]
    topic = DescribeQuorumResponse.TopicData(topic_name="__cluster_metadata", partitions=partitions)
    answer(brokers, ApiKey.DESCRIBE_QUORUM, DescribeQuorumResponse(topics=[topic]))
    assert refused(admin.describe_metadata_quorum) is expected


def test_a_broker_is_unregistered(brokers, admin: Admin):
    answer(brokers, ApiKey.UNREGISTER_BROKER, UnregisterBrokerResponse())
    admin.unregister_broker(7)
    assert brokers.of(ApiKey.UNREGISTER_BROKER)[0].broker_id == 7
    answer(brokers, ApiKey.UNREGISTER_BROKER, UnregisterBrokerResponse(error_code=BAD))
    assert refused(lambda: admin.unregister_broker(7)) is Error.INVALID_REQUEST
