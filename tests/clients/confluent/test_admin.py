"""AdminClient of confluent-kafka against a broker: the same calls and results with the original and with ours."""

from __future__ import annotations

import time
from typing import Any

import pytest

PATIENCE_S = 30.0


@pytest.fixture
def admin(library, bootstrap):
    return library.module("admin").AdminClient({"bootstrap.servers": bootstrap})


def error_of(library: Any, future: Any) -> Any:
    with pytest.raises(library.top.KafkaException) as caught:
        future.result(PATIENCE_S)
    return caught.value.args[0]


def test_topics_are_created_described_extended_and_deleted(library, admin, topic):
    module = library.module("admin")
    name = f"{topic}-made"
    [(key, future)] = admin.create_topics([module.NewTopic(name, 2, 1, config={"retention.ms": "60000"})]).items()
    assert (key, future.result(PATIENCE_S)) == (name, None)
    error = error_of(library, admin.create_topics([module.NewTopic(name, 2, 1)])[name])
    assert error.code() == library.top.KafkaError.TOPIC_ALREADY_EXISTS
    assert name in error.str()
    while name not in admin.list_topics(timeout=PATIENCE_S).topics:
        time.sleep(0.02)  # a broker learns of a new topic after the controller
    described = admin.describe_topics(library.top.TopicCollection([name]))[name].result(PATIENCE_S)
    assert (described.name, described.is_internal, len(described.partitions)) == (name, False, 2)
    partition = described.partitions[1]
    assert (partition.id, partition.leader.id, [each.id for each in partition.isr]) == (1, 1, [1])
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    assert admin.create_partitions([module.NewPartitions(name, 4)])[name].result(PATIENCE_S) is None
    assert len(admin.list_topics(name, timeout=PATIENCE_S).topics[name].partitions) == 4
    assert admin.delete_topics([name])[name].result(PATIENCE_S) is None
    error = error_of(library, admin.delete_topics([name])[name])
    assert error.code() == library.top.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_an_invalid_topic_is_only_validated(library, admin, topic):
    module = library.module("admin")
    futures = admin.create_topics([module.NewTopic(f"{topic}-never", 1, 1)], validate_only=True)
    assert futures[f"{topic}-never"].result(PATIENCE_S) is None
    error = error_of(library, admin.create_topics([module.NewTopic("a/b", 1, 1)])["a/b"])
    assert error.code() == library.top.KafkaError.TOPIC_EXCEPTION
    with pytest.raises(TypeError):
        admin.create_topics([module.NewTopic(f"{topic}-never", 1, 1)], nonsense=True)


def test_configurations_are_described_and_altered(library, admin, topic):
    module = library.module("admin")
    resource = module.ConfigResource(module.ResourceType.TOPIC, topic)
    resource.add_incremental_config(
        module.ConfigEntry("retention.ms", "70000", incremental_operation=module.AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    wanted = module.ConfigResource("topic", topic)
    entries = admin.describe_configs([wanted])[wanted].result(PATIENCE_S)
    entry = entries["retention.ms"]
    assert (entry.value, entry.is_default, entry.is_read_only, entry.is_sensitive) == ("70000", False, False, False)
    assert entry.source == module.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert entries["cleanup.policy"].is_default
    replaced = module.ConfigResource("topic", topic, set_config={"max.message.bytes": "2000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        admin.alter_configs([replaced])[replaced].result(PATIENCE_S)
    entries = admin.describe_configs([wanted])[wanted].result(PATIENCE_S)
    assert (entries["max.message.bytes"].value, entries["retention.ms"].is_default) == ("2000", True)
    bad = module.ConfigResource("topic", topic)
    bad.add_incremental_config(
        module.ConfigEntry("retention.ms", "x", incremental_operation=module.AlterConfigOpType.SET)
    )
    error = error_of(library, admin.incremental_alter_configs([bad])[bad])
    assert error.code() == library.top.KafkaError.INVALID_CONFIG


def test_groups_and_their_offsets(library, admin, bootstrap, topic, group):
    partition = library.top.TopicPartition
    consumer = library.top.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": "member"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[partition(topic, 0, 5, metadata="mine")], asynchronous=False)
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert (described.group_id, described.state, described.is_simple_consumer_group) == (
        group, library.top.ConsumerGroupState.STABLE, False,
    )  # fmt: skip
    assert described.partition_assignor == "range"
    [member] = described.members
    assert member.client_id == "member"
    assert [each.partition for each in member.assignment.topic_partitions] == [0, 1, 2]
    assert described.coordinator.id == 1
    listed = admin.list_consumer_groups(states={library.top.ConsumerGroupState.STABLE}).result(PATIENCE_S)
    assert group in [each.group_id for each in listed.valid]
    assert listed.errors == []
    [found] = [each for each in admin.list_groups(timeout=PATIENCE_S) if each.id == group]
    assert (found.state, found.protocol_type, len(found.members)) == ("Stable", "consumer", 1)
    consumer.close()
    request = library.top.ConsumerGroupTopicPartitions(group, [partition(topic, 0), partition(topic, 1)])
    offsets = admin.list_consumer_group_offsets([request])[group].result(PATIENCE_S)
    assert (offsets.topic_partitions[0].offset, offsets.topic_partitions[0].metadata) == (5, "mine")
    assert offsets.topic_partitions[1].offset == library.top.OFFSET_INVALID
    change = library.top.ConsumerGroupTopicPartitions(group, [partition(topic, 0, 7)])
    altered = admin.alter_consumer_group_offsets([change])[group].result(PATIENCE_S)
    assert [(each.partition, each.error) for each in altered.topic_partitions] == [(0, None)]
    every = library.top.ConsumerGroupTopicPartitions(group)
    offsets = admin.list_consumer_group_offsets([every])[group].result(PATIENCE_S)
    assert [(each.partition, each.offset) for each in offsets.topic_partitions] == [(0, 7)]
    assert admin.delete_consumer_groups([group])[group].result(PATIENCE_S) is None
    error = error_of(library, admin.delete_consumer_groups([group])[group])
    assert error.code() == library.top.KafkaError.GROUP_ID_NOT_FOUND


def test_offsets_are_looked_up_and_records_deleted(library, admin, bootstrap, topic):
    module, partition = library.module("admin"), library.top.TopicPartition
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce(topic, "v", partition=0, timestamp=1000 + number)
    producer.flush(PATIENCE_S)

    def look_up(spec: Any) -> Any:
        [future] = admin.list_offsets({partition(topic, 0): spec}).values()
        return future.result(PATIENCE_S)

    assert look_up(module.OffsetSpec.earliest()).offset == 0
    assert look_up(module.OffsetSpec.latest()).offset == 5
    found = look_up(module.OffsetSpec.for_timestamp(1003))
    assert (found.offset, found.timestamp) == (3, 1003)
    assert look_up(module.OffsetSpec.max_timestamp()).offset == 4
    [future] = admin.delete_records([partition(topic, 0, 2)]).values()
    assert future.result(PATIENCE_S).low_watermark == 2
    assert look_up(module.OffsetSpec.earliest()).offset == 2


def test_the_cluster_is_described(library, admin):
    found = admin.describe_cluster().result(PATIENCE_S)
    assert found.cluster_id == admin.cluster_id(timeout=PATIENCE_S)
    assert [each.id for each in found.nodes] == [found.controller.id] == [1]
    assert found.authorized_operations is None
    assert admin.poll(0) == 0


def test_an_election_is_not_needed(library, admin, topic):
    election = admin.elect_leaders(library.top.ElectionType.PREFERRED, [library.top.TopicPartition(topic, 0)])
    [(place, exception)] = election.result(PATIENCE_S).items()
    assert (place.topic, place.partition) == (topic, 0)
    assert getattr(exception, "args", [exception])[0].code() == library.top.KafkaError.ELECTION_NOT_NEEDED


def test_scram_credentials(library, admin, topic):
    module = library.module("admin")
    info = module.ScramCredentialInfo(module.ScramMechanism.SCRAM_SHA_256, 4096)
    futures = admin.alter_user_scram_credentials([module.UserScramCredentialUpsertion(topic, info, b"secret")])
    assert futures[topic].result(PATIENCE_S) is None
    described = admin.describe_user_scram_credentials([topic])[topic].result(PATIENCE_S)
    [found] = described.scram_credential_infos
    assert (described.user, found.mechanism, found.iterations) == (topic, info.mechanism, 4096)
    assert topic in admin.describe_user_scram_credentials().result(PATIENCE_S)
    deletion = module.UserScramCredentialDeletion(topic, info.mechanism)
    assert admin.alter_user_scram_credentials([deletion])[topic].result(PATIENCE_S) is None
    error = error_of(library, admin.describe_user_scram_credentials([topic])[topic])
    assert error.code() == library.top.KafkaError.RESOURCE_NOT_FOUND


def test_permissions_without_an_authorizer_are_refused(library, admin, topic):
    module = library.module("admin")
    binding = module.AclBinding("topic", topic, "literal", "User:a", "*", "read", "allow")
    [future] = admin.create_acls([binding]).values()
    assert error_of(library, future).code() == library.top.KafkaError.SECURITY_DISABLED
    every = module.AclBindingFilter("any", None, "any", None, None, "any", "any")
    assert admin.describe_acls(every).result(PATIENCE_S) == []
    with pytest.raises(ValueError, match="duplicate ACL bindings"):
        admin.create_acls([binding, binding])


def test_permissions_are_converted(ours):
    from kafkapy.client.admin import AccessControlEntry

    convert, module = ours.module("admin._conversions"), ours.module("admin")
    binding = module.AclBinding("topic", "t", "prefixed", "User:a", "*", "write", "deny")
    entry = convert.entry(binding)
    assert entry == AccessControlEntry(2, "t", 4, "User:a", "*", 4, 2)
    assert convert.binding(entry) == binding


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda admin: admin.describe_consumer_groups("g"), TypeError),
        (lambda admin: admin.describe_consumer_groups([]), ValueError),
        (lambda admin: admin.delete_consumer_groups([]), ValueError),
        (lambda admin: admin.list_consumer_groups(states=["a"]), TypeError),
        (lambda admin: admin.describe_topics(["a"]), TypeError),
        (lambda admin: admin.list_consumer_group_offsets([]), ValueError),
        (lambda admin: admin.list_consumer_group_offsets(None), TypeError),
        (lambda admin: admin.alter_consumer_group_offsets(["a"]), TypeError),
        (lambda admin: admin.describe_user_scram_credentials([""]), ValueError),
        (lambda admin: admin.alter_user_scram_credentials([]), ValueError),
        (lambda admin: admin.list_offsets([]), TypeError),
        (lambda admin: admin.delete_records("a"), TypeError),
        (lambda admin: admin.elect_leaders("a"), TypeError),
        (lambda admin: admin.describe_configs(["a"]), ValueError),
    ],
)
def test_invalid_arguments_are_refused_before_a_request(admin, call, error):
    with pytest.raises(error):
        call(admin)
