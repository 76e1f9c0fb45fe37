"""Our admin client: every operation is executed by a broker, and its effect is checked."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from kafkapy.client.admin import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ElectionType,
    HangingTransaction,
    NewPartitions,
    NewScramCredential,
    NewTopic,
    Replica,
    ResourceType,
    ScramMechanism,
    quota_entity,
)
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError, Error
from tests.ports import free_ports

MakeTopic = Callable[[int], str]
FIRST_TIME = 1_700_000_000_000


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"admin-{uuid.uuid4()}"


@pytest.fixture
def filled(bootstrap: str, new_topic: MakeTopic) -> str:
    """Returns a topic with two partitions of ten records each, whose timestamps are a second apart."""
    topic = new_topic(2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(20):
            producer.send(topic, str(number), partition=number % 2, timestamp=FIRST_TIME + number // 2 * 1000)
    return topic


def until(asked: Callable[[], object], expected: object, seconds: float = 20) -> None:
    """Waits until `asked()` returns `expected`, at most for the given number of seconds.

    The wait is necessary because Apache Kafka's broker applies changes of its controller with a delay.
    """
    deadline = time.monotonic() + seconds
    while (answer := asked()) != expected:
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def error_of(action: Callable[[], object]) -> Error:
    with pytest.raises(ApiError) as raised:
        action()
    return raised.value.error


def test_topics(admin: Admin, name: str) -> None:
    wanted = [NewTopic(name, 3, 1, configs={"retention.ms": "1000"}), NewTopic("bad name", 1, 1)]
    assert admin.create_topics([wanted[0]], validate_only=True).check()[name].partitions == 3
    assert name not in admin.list_topics()
    created = admin.create_topics(wanted)
    assert (created[name].partitions, created[name].replication_factor) == (3, 1)
    assert created[name].configs["retention.ms"] == "1000"
    assert created.errors["bad name"].error is Error.INVALID_TOPIC_EXCEPTION
    assert admin.create_topics([wanted[0]]).errors[name].error is Error.TOPIC_ALREADY_EXISTS
    topic_id = created[name].topic_id
    until(lambda: name in admin.list_topics(), True)
    assert admin.list_topics()[name] == (name, topic_id, False)
    described = admin.describe_topics([name, "absent"])
    assert described.errors["absent"].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert described[name] == admin.describe_topic_ids([topic_id])[topic_id]._replace(
        partitions=described[name].partitions
    )
    assert [each.partition for each in described[name].partitions] == [0, 1, 2]
    assert described[name].partitions[0].replicas == described[name].partitions[0].isr
    assert admin.create_partitions({name: 5})[name] is None
    brokers = [[described[name].partitions[0].leader]]
    assert admin.create_partitions({name: NewPartitions(6, brokers)})[name] is None
    assert admin.create_partitions({name: 2}).errors[name].error is Error.INVALID_PARTITIONS
    until(lambda: len(admin.describe_topics([name])[name].partitions), 6)
    deleted = admin.delete_topics([topic_id, "absent"])
    assert deleted[topic_id] is None and deleted.errors["absent"].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    until(lambda: name in admin.list_topics(), False)


def test_topics_with_assignments_and_pages_of_partitions(admin: Admin, name: str) -> None:
    broker = admin.describe_cluster().brokers[0].node_id
    admin.create_topics([NewTopic(name, assignments={0: [broker], 1: [broker]}), NewTopic(f"{name}-b", 1)]).check()
    admin.create_partitions({name: 11}).check()
    until(lambda: len(admin.describe_topics([name])[name].partitions), 11)
    described = admin.describe_topics([name, f"{name}-b"], page_size=4).check()
    assert [each.partition for each in described[name].partitions] == list(range(11))
    assert len(described[f"{name}-b"].partitions) == 1
    admin.delete_topics([name, f"{name}-b"]).check()


def test_configs(admin: Admin, new_topic: MakeTopic) -> None:
    topic = ConfigResource(ResourceType.TOPIC, new_topic(1))
    broker = ConfigResource(ResourceType.BROKER, str(admin.describe_cluster().brokers[0].node_id))
    changes = [ConfigChange("cleanup.policy", "compact", ConfigOperation.APPEND), ConfigChange("retention.ms", "5")]
    until(lambda: bool(admin.describe_configs([topic]).errors), False)
    assert admin.incremental_alter_configs({topic: changes}, validate_only=True)[topic] is None
    assert admin.describe_configs([topic])[topic]["retention.ms"].source == ConfigSource.DEFAULT
    assert admin.incremental_alter_configs({topic: changes})[topic] is None
    until(lambda: admin.describe_configs([topic])[topic]["retention.ms"].value, "5")
    described = admin.describe_configs([topic, broker], include_synonyms=True, include_documentation=True)
    assert described[topic]["cleanup.policy"].value == "delete,compact"
    entry = described[topic]["retention.ms"]
    assert (entry.value, entry.source, entry.is_read_only, entry.is_sensitive) == (
        "5",
        ConfigSource.TOPIC,
        False,
        False,
    )
    assert entry.synonyms[0].value == "5" and entry.documentation
    assert described[broker]["node.id"].value == broker.name and described[broker]["node.id"].is_read_only
    admin.incremental_alter_configs({topic: [ConfigChange("retention.ms", None, ConfigOperation.DELETE)]}).check()
    until(lambda: admin.describe_configs([topic])[topic]["retention.ms"].source, ConfigSource.DEFAULT)
    wrong = admin.incremental_alter_configs({topic: [ConfigChange("retention.ms", "soon")]})
    assert wrong.errors[topic].error is Error.INVALID_CONFIG
    unknown = ConfigResource(ResourceType.BROKER, "77")
    assert admin.describe_configs([unknown]).errors[unknown].error is Error.BROKER_NOT_AVAILABLE


def test_configs_of_groups_and_client_metrics(admin: Admin, name: str) -> None:
    group, metrics = ConfigResource(ResourceType.GROUP, name), ConfigResource(ResourceType.CLIENT_METRICS, name)
    admin.incremental_alter_configs(
        {group: [ConfigChange("consumer.session.timeout.ms", "50000")], metrics: [ConfigChange("interval.ms", "2000")]}
    ).check()
    until(lambda: admin.describe_configs([group])[group]["consumer.session.timeout.ms"].value, "50000")
    described = admin.describe_configs([metrics])
    assert described[metrics]["interval.ms"].value == "2000"
    assert set(admin.list_config_resources([ResourceType.GROUP, ResourceType.CLIENT_METRICS])) >= {group, metrics}
    admin.incremental_alter_configs({metrics: [ConfigChange("interval.ms", None, ConfigOperation.DELETE)]}).check()


def test_loggers(admin: Admin) -> None:
    broker = ConfigResource(ResourceType.BROKER_LOGGER, str(admin.describe_cluster().brokers[0].node_id))
    loggers = admin.describe_configs([broker])[broker]
    assert loggers
    assert {each.source for each in loggers.values()} == {ConfigSource.BROKER_LOGGER}


def test_offsets_and_records(admin: Admin, filled: str) -> None:
    first, second, absent = TopicPartition(filled, 0), TopicPartition(filled, 1), TopicPartition(filled, 7)
    found = admin.list_offsets({first: LATEST, second: EARLIEST, absent: LATEST})
    assert (found[first].offset, found[second].offset) == (10, 0)
    assert found.errors[absent].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    found = admin.list_offsets({first: FIRST_TIME + 2500, second: FIRST_TIME + 60_000})
    assert found[first][:2] == (3, FIRST_TIME + 3000) and found[second].offset == -1
    assert admin.list_offsets({(filled, 0): MAX_TIMESTAMP})[first][:2] == (9, FIRST_TIME + 9000)
    deleted = admin.delete_records({first: 4, second: -1, absent: 1})
    assert (deleted[first], deleted[second]) == (4, 10)
    assert deleted.errors[absent].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.delete_records({first: 11}).errors[first].error is Error.OFFSET_OUT_OF_RANGE
    assert admin.list_offsets({first: EARLIEST})[first].offset == 4


def test_groups(admin: Admin, bootstrap: str, filled: str, name: str) -> None:
    first = TopicPartition(filled, 0)
    with Consumer(bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([filled])
        while len(consumer.assignment()) < 2:
            consumer.poll(1)
        consumer.commit({first: OffsetAndMetadata(3, "three")})
        described = admin.describe_groups([name])[name]
        assert (described.type, described.state, described.protocol_type) == ("Classic", "Stable", "consumer")
        (member,) = described.members
        assert set(member.partitions) == {first, TopicPartition(filled, 1)}
        assert admin.delete_groups([name]).errors[name].error is Error.NON_EMPTY_GROUP
        listed = {each.group_id: each for each in admin.list_groups(states=["Stable"], types=["classic"])}
        assert listed[name] == (name, "consumer", "Stable", "Classic")
        assert admin.remove_group_members(name)[member.member_id] is None
    assert name not in {each.group_id for each in admin.list_groups(states=["Stable"])}
    assert admin.list_group_offsets([name])[name][first][:2] == (3, "three")
    assert admin.alter_group_offsets(name, {first: 7, TopicPartition(filled, 1): OffsetAndMetadata(8)}).check()
    assert {each.offset for each in admin.list_group_offsets({name: None})[name].values()} == {7, 8}
    assert admin.delete_group_offsets(name, [first])[first] is None
    assert set(admin.list_group_offsets({name: [first]})[name]) == set()
    assert admin.describe_groups(["absent"]).errors["absent"].error is Error.GROUP_ID_NOT_FOUND
    deleted = admin.delete_groups([name, "absent"])
    assert deleted[name] is None and deleted.errors["absent"].error is Error.GROUP_ID_NOT_FOUND


def test_transactions(admin: Admin, bootstrap: str, new_topic: MakeTopic, name: str) -> None:
    where = TopicPartition(new_topic(1), 0)
    producer = Producer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(where.topic, "open", partition=0).result(30)
    described = admin.describe_transactions([name, "absent"])
    assert (described[name].state, described[name].partitions) == ("Ongoing", {where})
    assert described.errors["absent"].error is Error.TRANSACTIONAL_ID_NOT_FOUND
    listed = {each.transactional_id: each for each in admin.list_transactions(states=["Ongoing"], pattern=f"{name}.*")}
    assert listed[name].producer_id == described[name].producer_id
    assert name not in {each.transactional_id for each in admin.list_transactions(longer_than_ms=3_600_000)}
    (state,) = admin.describe_producers([where])[where]
    assert (state.producer_id, state.transaction_start_offset) == (described[name].producer_id, 0)
    committed = admin.list_offsets({where: LATEST}, read_committed=True)[where].offset
    assert (committed, admin.list_offsets({where: LATEST})[where].offset) == (0, 1)
    admin.abort_transaction(HangingTransaction(where, state.producer_id, state.producer_epoch, state.coordinator_epoch))
    assert admin.list_offsets({where: LATEST}, read_committed=True)[where].offset == 2
    fenced = admin.fence_producers([name])[name]
    assert fenced.producer_id == state.producer_id and fenced.epoch > state.producer_epoch
    assert error_of(producer.commit_transaction) in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
    producer.close()


def test_log_dirs_and_partitions(admin: Admin, filled: str) -> None:
    first = TopicPartition(filled, 0)
    broker = admin.describe_cluster().brokers[0].node_id
    directories = admin.describe_log_dirs()[broker]
    ((path, directory),) = directories.items()
    assert directory.error is None and directory.replicas[first].size > 0
    assert directory.total_bytes >= directory.usable_bytes > 0
    replica = Replica(filled, 0, broker)
    assert admin.alter_replica_log_dirs({replica: path})[replica] is None
    elsewhere = admin.alter_replica_log_dirs({replica: str(Path(path).parent / "elsewhere")})
    assert elsewhere.errors[replica].error is Error.LOG_DIR_NOT_FOUND
    elected = admin.elect_leaders(ElectionType.PREFERRED, [first, TopicPartition("absent", 0)])
    assert elected.errors[first].error is Error.ELECTION_NOT_NEEDED
    assert elected.errors[TopicPartition("absent", 0)].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    moved = admin.alter_partition_reassignments({first: [broker], TopicPartition(filled, 1): None})
    assert moved[first] is None
    assert moved.errors[TopicPartition(filled, 1)].error is Error.NO_REASSIGNMENT_IN_PROGRESS
    assert admin.list_partition_reassignments() == admin.list_partition_reassignments([first]) == {}


def test_cluster(admin: Admin, bootstrap: str) -> None:
    cluster = admin.describe_cluster(include_fenced=True)
    (node,) = cluster.brokers
    assert f"{node.host}:{node.port}" == bootstrap and cluster.cluster_id and not cluster.fenced
    assert cluster.controller == node
    versions = admin.describe_versions()[node.node_id]
    assert versions.apis[18].lowest == 0
    features = admin.describe_features(broker=node.node_id)
    assert features == versions.features
    finalized = features.finalized["metadata.version"]
    assert features.supported["metadata.version"].highest >= finalized.highest
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader == node.node_id and [each.node_id for each in quorum.voters] == [node.node_id]


def test_quotas_and_credentials(admin: Admin, name: str) -> None:
    both = quota_entity(user=name, client_id=None)
    assert admin.alter_client_quotas({both: {"producer_byte_rate": 1024.0, "request_percentage": 1.5}})[both] is None
    quotas = {both: {"producer_byte_rate": 1024.0, "request_percentage": 1.5}}
    until(lambda: admin.describe_client_quotas([("user", name)]), quotas)
    assert admin.describe_client_quotas([("user", name)], strict=True) == {}
    admin.alter_client_quotas({both: {"producer_byte_rate": None, "request_percentage": None}}).check()
    until(lambda: admin.describe_client_quotas([("user", name)]), {})
    new = NewScramCredential(name, ScramMechanism.SCRAM_SHA_256, "secret", 4096)
    assert admin.alter_user_scram_credentials([new])[name] is None
    expected = {name: [(ScramMechanism.SCRAM_SHA_256, 4096)]}
    until(lambda: admin.describe_user_scram_credentials([name]).values, expected)
    admin.alter_user_scram_credentials(deletions=[(name, ScramMechanism.SCRAM_SHA_256)]).check()
    until(lambda: admin.describe_user_scram_credentials([name]).values, {})
    assert admin.describe_user_scram_credentials([name]).errors[name].error is Error.RESOURCE_NOT_FOUND


def test_a_broker_that_is_not_there() -> None:
    with Admin(bootstrap_servers=f"localhost:{free_ports(1)[0]}", default_api_timeout_ms=300) as admin:
        assert error_of(admin.list_topics) is Error.REQUEST_TIMED_OUT
        assert error_of(lambda: admin.describe_groups(["a"])) is Error.REQUEST_TIMED_OUT
    with pytest.raises(RuntimeError, match="closed"):
        admin.list_topics()
