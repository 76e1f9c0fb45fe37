"""Every metadata record type has its place in the image."""

import pytest

from kafkapy.metadata.cluster_image import DelegationToken, ScramCredential
from kafkapy.metadata.delta import REPLAY, MetadataDelta
from kafkapy.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE
from kafkapy.protocol.messages import metadata_records as records
from kafkapy.protocol.messages.metadata_records import METADATA_RECORDS
from kafkapy.security.access_control_entry import AccessControlEntry
from tests.harness.metadata import DIRECTORY, OTHER_DIRECTORY, bootstrapped, replay, with_brokers, with_topic

TRANSACTIONS = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}
ID = bytes(15) + b"\x09"


def topic(partition_count=1, **fields):
    image = replay(EMPTY_IMAGE, records.TopicRecord(name="t", topic_id=ID))
    for partition in range(partition_count):
        record = records.PartitionRecord(
            partition_id=partition, topic_id=ID, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=3,
            partition_epoch=5, directories=[DIRECTORY, OTHER_DIRECTORY], **fields,
        )  # fmt: skip
        image = replay(image, record)
    return image


def change(**fields):
    return records.PartitionChangeRecord(partition_id=0, topic_id=ID, **fields)


def test_every_record_of_4_3_is_replayed_or_a_transaction_mark():
    assert {message.__name__ for message in METADATA_RECORDS.values()} == set(REPLAY) | TRANSACTIONS


def test_unknown_record_is_named():
    with pytest.raises(ValueError, match="unknown metadata record AccessControlRecord"):
        MetadataDelta(EMPTY_IMAGE).replay(records.AccessControlRecord(resource_type=1))


def test_partition_change_without_leader_raises_only_the_partition_epoch():
    partition = replay(topic(), change(isr=[1])).topics.by_name["t"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_epoch, partition.partition_epoch) == ((1,), 1, 3, 6)


@pytest.mark.parametrize("leader", [-1, 1, 2])
def test_partition_change_with_leader_raises_both_epochs(leader):
    partition = replay(topic(), change(leader=leader)).topics.by_name["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (leader, 4, 6)


def test_partition_change_of_every_field():
    record = change(
        isr=[2], leader=2, replicas=[2, 3], removing_replicas=[1], adding_replicas=[3], leader_recovery_state=1,
        directories=[OTHER_DIRECTORY, DIRECTORY], eligible_leader_replicas=[1], last_known_elr=[1],
    )  # fmt: skip
    assert replay(topic(), record).topics.by_name["t"].partitions[0]._asdict() == {
        "replicas": (2, 3), "directories": (OTHER_DIRECTORY, DIRECTORY), "isr": (2,), "removing_replicas": (1,),
        "adding_replicas": (3,), "elr": (1,), "last_known_elr": (1,), "leader": 2, "leader_recovery_state": 1,
        "leader_epoch": 4, "partition_epoch": 6,
    }  # fmt: skip


def test_directories_follow_replicas_that_stay():
    partition = replay(topic(), change(replicas=[2, 3])).topics.by_name["t"].partitions[0]
    assert partition.directories == (OTHER_DIRECTORY, bytes(15) + b"\x01")


def test_partition_records_of_old_versions_have_migrating_directories():
    image = replay(EMPTY_IMAGE, records.TopicRecord(name="t", topic_id=ID))
    image = replay(image, records.PartitionRecord(partition_id=0, topic_id=ID, replicas=[1], isr=[1], leader=1))
    assert image.topics.by_name["t"].partitions[0].directories == (bytes(16),)


def test_one_change_shares_everything_else():
    before = with_topic(with_topic(with_brokers(bootstrapped(), 1), "a", 3), "b")
    a = before.topics.by_name["a"]
    after = replay(before, records.PartitionChangeRecord(partition_id=1, topic_id=a.topic_id, isr=[]))
    assert after.topics.by_name["b"] is before.topics.by_name["b"]
    assert after.topics.by_name["a"].partitions[0] is a.partitions[0]
    assert after.brokers is before.brokers and after.configs is before.configs
    assert a.partitions[1].isr == (1,) and after.topics.by_name["a"].partitions[1].isr == ()
    assert after.topics.by_id[a.topic_id] is after.topics.by_name["a"]


def changed_partitions(delta):
    return {each.name: each.partitions for each in delta.changed_partitions}


def test_only_the_changed_partitions_of_a_topic_are_to_be_applied():
    before = with_topic(topic(3), "other", 2)
    delta = MetadataDelta(before)
    delta.replay(change(isr=[1]))
    delta.replay(change(isr=[1, 2]))
    delta.replay(records.TopicRecord(name="empty", topic_id=DIRECTORY))
    changed = delta.to_image(9, 1).topics.by_name["t"].partitions[0]
    assert changed.partition_epoch == 7
    assert changed_partitions(delta) == {"t": {0: changed}, "empty": {}}
    delta.replay(records.RemoveTopicRecord(topic_id=ID))
    assert changed_partitions(delta) == {"empty": {}}


def test_a_cleared_partition_has_changed():
    before = replay(topic(2), change(eligible_leader_replicas=[2]))
    delta = MetadataDelta(before)
    delta.replay(records.ClearElrRecord(topic_name=""))
    ((name, partitions),) = changed_partitions(delta).items()
    assert (name, list(partitions), partitions[0].elr) == ("t", [0], ())


def test_a_snapshot_changes_the_partitions_that_differ():
    before, delta = topic(3), MetadataDelta(topic(3))
    after = replay(before, change(leader=2))
    delta.topics.replace_with(after.topics)
    assert changed_partitions(delta) == {"t": {0: after.topics.by_name["t"].partitions[0]}}


def test_a_removed_topic_takes_its_configuration_along():
    config = records.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="retention.ms", value="1")
    image = replay(topic(), config)
    delta = MetadataDelta(image)
    delta.replay(records.RemoveTopicRecord(topic_id=ID))
    after = delta.to_image(9, 1)
    assert not after.topics.by_name and not after.topics.by_id and not after.configs
    assert list(delta.deleted_topics) == [ID] and not delta.changed_topics
    assert delta.changed_configs == {(TOPIC_RESOURCE, "t")}


def test_a_topic_deleted_and_created_anew_in_one_delta_is_both():
    delta = MetadataDelta(topic())
    delta.replay(records.RemoveTopicRecord(topic_id=ID))
    delta.replay(records.TopicRecord(name="t", topic_id=DIRECTORY))
    assert list(delta.deleted_topics) == [ID] and list(delta.changed_topics) == [DIRECTORY]
    assert delta.to_image(9, 1).topics.by_name["t"].topic_id == DIRECTORY


@pytest.mark.parametrize(("offset", "epoch"), [(1, 1), (9, 0)])
def test_an_image_goes_back_neither_in_offset_nor_in_epoch(offset, epoch):
    image = topic()
    assert (image.offset, image.epoch) == (2, 1)
    with pytest.raises(AssertionError, match="after one"):
        MetadataDelta(image).to_image(offset, epoch)


def test_the_states_of_a_migration_from_zookeeper_change_nothing():
    """Kafka 3 writes the states in this order: before (2), during (1) and after (3) the migration."""
    image = topic()
    after = replay(image, *(records.ZkMigrationStateRecord(zk_migration_state=state) for state in (0, 2, 1, 3)))
    assert after[2:] == image[2:]


@pytest.mark.parametrize(
    ("resource_type", "name", "is_stored"),
    [(2, "message.format.version", False), (32, "no.such.key", False), (4, "plug.in.key", True)],
)
def test_keys_that_kafka_no_longer_has_are_left_out(resource_type, name, is_stored):
    record = records.ConfigRecord(resource_type=resource_type, resource_name="1", name=name, value="x")
    assert bool(replay(EMPTY_IMAGE, record).configs) is is_stored


def test_config_entries_come_and_go():
    def entry(value):
        return records.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=value)

    image = replay(EMPTY_IMAGE, entry("1"))
    assert image.config(2, "t") == {"retention.ms": "1"}
    assert replay(image, entry("2")).config(2, "t") == {"retention.ms": "2"}
    assert replay(image, entry(None)).configs == {}


def test_broker_registration_changes():
    image = with_brokers(bootstrapped(), 1)
    epoch = image.brokers[1].epoch
    assert image.brokers[1].is_active

    def after(**fields):
        record = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, **fields)
        return replay(image, record).brokers[1]

    assert after(fenced=1).fenced and not after(fenced=-1).fenced and not after(fenced=0).fenced
    assert not after(in_controlled_shutdown=1).is_active
    assert after(log_dirs=[OTHER_DIRECTORY]).log_dirs == (OTHER_DIRECTORY,)
    assert after(cordoned_log_dirs=[DIRECTORY]).cordoned_log_dirs == (DIRECTORY,)
    assert replay(image, records.FenceBrokerRecord(id=1, epoch=epoch)).brokers[1].fenced
    assert replay(image, records.UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch)).brokers == {}
    with pytest.raises(ValueError, match="epoch 99"):
        replay(image, records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=99, fenced=1))


def test_quotas_by_entity_whatever_the_order():
    def quota(*entity, key="producer_byte_rate", value=1.0, remove=False):
        parts = [records.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        return records.ClientQuotaRecord(entity=parts, key=key, value=value, remove=remove)

    image = replay(EMPTY_IMAGE, quota(("user", None), ("client-id", "c"), value=5.0))
    entity = (("client-id", "c"), ("user", None))
    assert image.client_quotas == {entity: {"producer_byte_rate": 5.0}}
    image = replay(image, quota(("client-id", "c"), ("user", None), key="consumer_byte_rate"))
    assert set(image.client_quotas[entity]) == {"producer_byte_rate", "consumer_byte_rate"}
    for key in ("producer_byte_rate", "consumer_byte_rate"):
        image = replay(image, quota(*entity, key=key, remove=True))
    assert image.client_quotas == {}


def test_acls_credentials_tokens_and_producer_ids():
    entry = AccessControlEntry(2, "t", 3, "User:bob", "*", 3, 3)
    image = replay(
        EMPTY_IMAGE,
        records.AccessControlEntryRecord(id=ID, **entry._asdict()),
        records.UserScramCredentialRecord(
            name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        ),
        records.DelegationTokenRecord(
            owner="User:a", requester="User:b", renewers=["User:c"], issue_timestamp=1, max_timestamp=2,
            expiration_timestamp=3, token_id="x",
        ),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=3000),
    )  # fmt: skip
    assert image.acls == {ID: entry}
    assert image.scram == {("alice", 1): ScramCredential(b"s", b"k", b"v", 4096)}
    assert image.delegation_tokens == {"x": DelegationToken("User:a", "User:b", ("User:c",), 1, 2, 3, "x")}
    assert image.next_producer_id == 3000
    image = replay(
        image,
        records.RemoveAccessControlEntryRecord(id=ID),
        records.RemoveUserScramCredentialRecord(name="alice", mechanism=1),
        records.RemoveDelegationTokenRecord(token_id="x"),
    )
    assert not image.acls and not image.scram and not image.delegation_tokens


def test_clear_elr_of_one_topic_and_of_all():
    image = topic(2, eligible_leader_replicas=[2], last_known_elr=[2])
    for name in ("t", ""):
        partitions = replay(image, records.ClearElrRecord(topic_name=name)).topics.by_name["t"].partitions
        assert [(each.elr, each.last_known_elr, each.partition_epoch) for each in partitions.values()] == [
            ((), (), 6)
        ] * 2


def test_features_that_we_cannot_serve_are_refused():
    for name, level in (("metadata.version", 31), ("metadata.version", 6), ("group.version", 2), ("new.version", 1)):
        with pytest.raises(ValueError, match=name):
            replay(EMPTY_IMAGE, records.FeatureLevelRecord(name=name, feature_level=level))
    image = replay(bootstrapped(), records.FeatureLevelRecord(name="group.version", feature_level=0))
    assert "group.version" not in image.features and image.metadata_version == 30


def test_changes_of_what_is_unknown_are_refused():
    for record in (change(isr=[1]), records.RemoveTopicRecord(topic_id=ID), records.ClearElrRecord(topic_name="t")):
        with pytest.raises(ValueError, match="unknown topic"):
            replay(EMPTY_IMAGE, record)
    with pytest.raises(ValueError, match="unknown partition"):
        replay(topic(), records.PartitionChangeRecord(partition_id=7, topic_id=ID, isr=[]))
