"""Registration of brokers: the records that Apache Kafka 4.3 and 3.9 wrote, byte for byte."""

import pytest

from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    cordon_directories,
    fence_broker,
    register_broker,
    register_controller,
    take_directories_offline,
    unfence_broker,
    unregister_broker,
)
from kafkapy.controller.broker_sessions import BrokerSessions
from kafkapy.controller.partitions import assign_directories
from kafkapy.controller.registration_checks import check_cluster_id
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import ControllerRegistration
from kafkapy.metadata.topics_image import RECOVERING
from kafkapy.protocol.record_frame import encode_metadata_record
from tests.harness.metadata import DIRECTORY, bootstrapped, commit, registration, with_brokers, with_topic

CLEAN_STOP = "01050200000000{id}040001010104ffffffff0605020000000107050200000001"
DIRECTORIES = (b"\x11" * 16, b"\x22" * 16)
UNCLEAN_ELECTION = "01050200000000{id}0400050200000001010400000001050101070101"


def image(metadata_version=30, elr=True):
    return with_topic(with_brokers(bootstrapped(metadata_version, elr=elr), 1), "t")


def encoded(result, image):
    """Returns the records as hex, with the broker epochs of the vectors (11)."""
    texts = []
    for message, version in result.records:
        if hasattr(message, "broker_epoch"):
            message.broker_epoch = 11
        texts.append(encode_metadata_record(message, version).hex())
    return texts


def partition_of(image):
    return image.topics.by_name["t"].partitions[0]


def stopped(before):
    before = commit(before, begin_controlled_shutdown(before, 1))
    return commit(before, fence_broker(before, 1))


def test_clean_stop_vectors():
    before = image()
    topic_id = before.topics.by_name["t"].topic_id.hex()
    shutdown = begin_controlled_shutdown(before, 1)
    after = commit(before, shutdown)
    assert encoded(shutdown, before) == [
        "01110100000001000000000000000b01010101", CLEAN_STOP.format(id=topic_id),
    ]  # fmt: skip
    assert encoded(fence_broker(after, 1), after) == ["01110000000001000000000000000b01000101"]
    partition = partition_of(after)
    assert (partition.isr, partition.elr, partition.last_known_elr, partition.leader) == ((), (1,), (1,), -1)


def test_start_after_a_clean_stop():
    before = stopped(image())
    epoch = before.brokers[1].epoch
    registered = register_broker(before, registration(), epoch)
    assert [(type(message).__name__, version) for message, version in registered.records] == [
        ("RegisterBrokerRecord", 4)
    ]
    assert registered.response == before.offset
    after = commit(before, registered)
    unfence = unfence_broker(after, 1)
    changed = commit(after, unfence)
    assert encoded(unfence, after)[0] == "01110000000001000000000000000b010001ff"
    partition = partition_of(changed)
    assert (partition.isr, partition.elr, partition.last_known_elr, partition.leader) == ((1,), (), (), 1)
    assert (partition.leader_recovery_state, partition.leader_epoch, partition.partition_epoch) == (0, 2, 2)


@pytest.mark.parametrize("clean_epoch", [-1, 999])
def test_start_after_an_unclean_stop(clean_epoch):
    before = image()
    fenced = commit(before, fence_broker(before, 1))
    registered = register_broker(fenced, registration(), clean_epoch)
    change = registered.records[0][0]
    assert (change.eligible_leader_replicas, change.isr, change.leader) == ([], None, -2)
    # This is the offset of the batch's first record, not that of RegisterBroker.
    assert registered.response == fenced.offset
    after = commit(fenced, registered)
    assert partition_of(after).elr == ()
    unfence = unfence_broker(after, 1)
    topic_id = before.topics.by_name["t"].topic_id.hex()
    assert encoded(unfence, after)[1] == UNCLEAN_ELECTION.format(id=topic_id)
    final = partition_of(commit(commit(fenced, register_broker(fenced, registration(), -1)), unfence_broker(after, 1)))
    assert (final.leader, final.isr, final.leader_recovery_state) == (1, (1,), RECOVERING)


def test_without_eligible_leader_replicas_the_isr_never_becomes_empty():
    before = image(21, elr=False)
    shutdown = begin_controlled_shutdown(before, 1)
    record, version = shutdown.records[1]
    assert version == 1 and record.leader == -1
    assert record.isr is record.eligible_leader_replicas is record.last_known_elr is None
    after = stopped(before)
    assert partition_of(after).isr == (1,)
    registered = register_broker(after, registration(), -1)
    assert [version for _, version in registered.records] == [3]
    after = commit(after, registered)
    unfence = unfence_broker(after, 1)
    assert (unfence.records[1][0].leader, unfence.records[1][0].isr) == (1, None)


def test_another_incarnation_registers_only_after_the_session():
    before = image()
    sessions = BrokerSessions(before, session_timeout_ms=9000, monotonic_ms=1000)
    with pytest.raises(ApiError) as raised:
        sessions.register(before, registration(), -1, 10_000)
    assert raised.value.error is Error.DUPLICATE_BROKER_REGISTRATION
    registered = sessions.register(before, registration(), -1, 10_001)
    after = commit(before, registered)
    assert after.brokers[1].fenced and after.brokers[1].epoch == before.offset
    assert not sessions.has_valid_session(1, after.brokers[1].epoch, 10_001)


def test_the_same_incarnation_keeps_its_epoch_and_state():
    """A broker changes its listeners in this way."""
    before = commit(bootstrapped(), register_broker(bootstrapped(), registration(1, incarnation=5), -1))
    before = with_topic(commit(before, unfence_broker(before, 1)), "t")
    before = commit(before, begin_controlled_shutdown(before, 1))
    sessions = BrokerSessions(before, 9000, 0)
    again = registration(1, incarnation=5, rack="b")
    result = sessions.register(before, again, -1, 1)
    assert [type(message).__name__ for message, _ in result.records] == ["RegisterBrokerRecord"]
    broker = commit(before, result).brokers[1]
    assert (result.response, broker.epoch, broker.rack) == (before.brokers[1].epoch, before.brokers[1].epoch, "b")
    assert not broker.fenced and broker.in_controlled_shutdown


@pytest.mark.parametrize("elr", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_new_incarnation_leaves_every_isr(elr, is_clean):
    """Compares with ReplicationControlManager of Apache Kafka 4.3, which also does so without ELR."""
    before = with_topic(with_brokers(bootstrapped(elr=elr), 1, 2), "t", 1, 2)
    leader = partition_of(before).leader
    epoch = before.brokers[leader].epoch if is_clean else -1
    after = commit(before, register_broker(before, registration(leader), epoch))
    partition = partition_of(after)
    assert (partition.leader, partition.isr) == (3 - leader, (3 - leader,))


FEATURES = {"metadata.version": (7, 30), "kraft.version": (0, 1), "eligible.leader.replicas.version": (0, 1)}
FEATURES |= {"group.version": (0, 1), "share.version": (0, 1), "streams.version": (0, 1), "transaction.version": (0, 2)}


def without(name):
    return {each: levels for each, levels in FEATURES.items() if each != name}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"is_migrating_zk_broker": True}, Error.BROKER_ID_NOT_REGISTERED, "does not support registering ZK"),
        ({"log_dirs": ()}, Error.INVALID_REGISTRATION, "No directories specified in request"),
        ({"log_dirs": (bytes(16),)}, Error.INVALID_REGISTRATION, "Reserved directory ID in request"),
        ({"log_dirs": (DIRECTORIES[0],) * 2}, Error.INVALID_REGISTRATION, "Duplicate directory ID in request"),
        ({"log_dirs": (DIRECTORY,)}, Error.INVALID_REGISTRATION, "Broker 1 is already registered with directory "),
        ({"features": without("metadata.version")}, Error.INVALID_REGISTRATION, "do not contain 'metadata.version'"),
        (
            {"features": FEATURES | {"metadata.version": (7, 29)}},
            Error.UNSUPPORTED_VERSION,
            "the broker does not support finalized version 30 of metadata.version. The broker wants a version "
            "between 7 and 29, inclusive.",
        ),
        ({"features": without("share.version")}, Error.UNSUPPORTED_VERSION, "version 1 of share.version. The broker"),
        ({"features": FEATURES | {"own": (1, 2)}}, Error.UNSUPPORTED_VERSION, "finalized version 0 of own"),
        ({"features": without("kraft.version")}, Error.UNSUPPORTED_VERSION, "finalized version 1 of kraft.version"),
    ],
)
def test_faulty_registrations_are_refused_in_kafkas_words(fields, error, message):
    before = image()
    wanted = registration(2)._replace(features=FEATURES)
    register_broker(before, wanted, -1, kraft_version=1)
    with pytest.raises(ApiError) as raised:
        register_broker(before, wanted._replace(**fields), -1, kraft_version=1)
    assert raised.value.error is error and message in raised.value.message


def test_directories_are_not_checked_before_they_are_stored():
    before = bootstrapped(16, elr=False)
    assert register_broker(before, registration(1)._replace(log_dirs=()), -1).records


def test_a_broker_of_another_cluster_is_refused():
    check_cluster_id("a", "a")
    with pytest.raises(ApiError) as raised:
        check_cluster_id("a", "b")
    assert raised.value.error is Error.INCONSISTENT_CLUSTER_ID
    assert raised.value.message == "Expected cluster ID a, but got cluster ID b"


def test_controllers_register_from_the_version_that_stores_them():
    own = ControllerRegistration(3, bytes(16), True, {}, {"metadata.version": (7, 30)})
    image = commit(bootstrapped(15, elr=False), register_controller(bootstrapped(15, elr=False), own))
    assert image.controllers[3] == own._replace(zk_migration_ready=False)
    with pytest.raises(ApiError) as raised:
        register_controller(bootstrapped(14, elr=False), own)
    assert raised.value.error is Error.UNSUPPORTED_VERSION


def test_unfencing_a_broker_elects_leaders_of_all_partitions_without_one():
    """Unclean elections become possible while no in-sync replica is live: any broker's return triggers them."""
    before = with_topic(with_brokers(bootstrapped(elr=False), 1, 2, 3), "t", 1, 2)
    first, last = partition_of(before).replicas
    (outside,) = set(before.brokers) - {first, last}
    for broker_id in (outside, first, last):
        before = commit(before, fence_broker(before, broker_id))
    before = commit(before, unfence_broker(before, first))
    assert partition_of(before).leader == -1
    after = commit(before, unfence_broker(before, outside, ControllerSettings(unclean_leader_election=True)))
    assert (partition_of(after).leader, partition_of(after).leader_recovery_state) == (first, RECOVERING)


def test_cordoned_directories_are_recorded_once():
    unknown = registration()._replace(cordoned_log_dirs=None)
    before = commit(bootstrapped(), register_broker(bootstrapped(), unknown, -1))
    assert not cordon_directories(before, 1, None).records
    ((record, version),) = cordon_directories(before, 1, ()).records
    assert (record.cordoned_log_dirs, version) == ([], 3)
    after = commit(before, cordon_directories(before, 1, ()))
    assert after.brokers[1].cordoned_log_dirs == () and not cordon_directories(after, 1, ()).records
    assert cordon_directories(after, 1, (DIRECTORY,)).records
    assert not cordon_directories(after._replace(features={"metadata.version": 29}), 1, (DIRECTORY,)).records


def test_leadership_moves_to_the_others():
    before = with_topic(with_brokers(bootstrapped(), 1, 2, 3), "t", 1, 3)
    leader = partition_of(before).leader
    partition = partition_of(commit(before, begin_controlled_shutdown(before, leader)))
    assert partition.leader not in (leader, -1) and leader not in partition.isr and partition.elr == ()
    assert partition.leader_epoch == 1


def test_an_unregistered_broker_leads_nothing_and_is_unknown():
    before = image()
    after = commit(before, unregister_broker(before, 1))
    assert after.brokers == {} and partition_of(after).leader == -1
    with pytest.raises(ApiError) as raised:
        unregister_broker(after, 1)
    assert raised.value.error is Error.BROKER_ID_NOT_REGISTERED
    assert fence_broker(after, 1).records == []


def in_two_directories():
    """Returns an image with partition 0 in the first directory and partition 1 in the second."""
    before = bootstrapped()
    before = commit(before, register_broker(before, registration(1, DIRECTORIES), -1))
    before = with_topic(commit(before, unfence_broker(before, 1)), "t", partitions=2)
    topic_id = before.topics.by_name["t"].topic_id
    return commit(before, assign_directories(before, 1, {(topic_id, n): DIRECTORIES[n] for n in range(2)}))


def test_a_failed_directory_takes_its_partitions_offline():
    """Compares with the records of Apache Kafka 4.3 when one of two directories is full."""
    before = in_two_directories()
    topic_id = before.topics.by_name["t"].topic_id.hex()
    failed = take_directories_offline(before, 1, [DIRECTORIES[1]])
    after = commit(before, failed)
    assert encoded(failed, before) == [
        CLEAN_STOP.format(id=topic_id).replace("01050200000000", "01050200000001", 1),
        "01110200000001000000000000000b01021102" + DIRECTORIES[0].hex(),
    ]
    assert [partition.leader for partition in after.topics.by_name["t"].partitions.values()] == [1, -1]
    assert after.brokers[1].log_dirs == DIRECTORIES[:1]
    assert not take_directories_offline(after, 1, [DIRECTORIES[1]]).records


def test_a_partition_in_a_missing_directory_gets_no_leader_until_it_is_back():
    before = in_two_directories()
    before = commit(before, fence_broker(before, 1))
    for log_dirs, leaders in ((DIRECTORIES[:1], [1, -1]), (DIRECTORIES, [1, 1])):
        before = commit(before, fence_broker(before, 1))
        before = commit(before, register_broker(before, registration(1, log_dirs), -1))
        before = commit(before, unfence_broker(before, 1))
        assert [partition.leader for partition in before.topics.by_name["t"].partitions.values()] == leaders
