"""Registration of brokers: the records that Apache Kafka 4.3 and 3.9 wrote, byte for byte."""

import pytest

from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    fence_broker,
    register_broker,
    take_directories_offline,
    unfence_broker,
    unregister_broker,
)
from kafkapy.controller.partitions import assign_directories
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import RECOVERING
from kafkapy.protocol.record_frame import encode_metadata_record
from tests.harness.metadata import bootstrapped, commit, registration, with_brokers, with_topic

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


def test_an_unfenced_registration_is_not_taken_over():
    before = image()
    with pytest.raises(ApiError) as raised:
        register_broker(before, registration(), -1)
    assert raised.value.error is Error.DUPLICATE_BROKER_REGISTRATION


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
