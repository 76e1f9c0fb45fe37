"""Validation of AlterPartition, and the directories of replicas."""

import pytest

from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    fence_broker,
    register_broker,
    unfence_broker,
    unregister_broker,
)
from kafkapy.controller.partitions import (
    AlterPartition,
    DirectoryAssignment,
    alter_partition,
    alter_partitions,
    assign_directories,
    assign_replicas_to_directories,
    partitions_to_assign,
)
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import DIRECTORY_LOST, RECOVERED, RECOVERING
from kafkapy.protocol.record_frame import encode_metadata_record
from kafkapy.types import TopicPartition
from tests.harness.metadata import (
    DIRECTORY,
    OTHER_DIRECTORY,
    bootstrapped,
    commit,
    registration,
    with_brokers,
    with_topic,
)

IMAGE = with_topic(with_brokers(bootstrapped(), 1, 2), "t", 1, 2)
TOPIC_ID = IMAGE.topics.by_name["t"].topic_id
PARTITION = IMAGE.topics.by_name["t"].partitions[0]
LEADER = PARTITION.leader
GOOD = AlterPartition(TOPIC_ID, 0, 0, 0, (LEADER,), 0)


def test_isr_shrinks_and_grows():
    shrunk = commit(IMAGE, alter_partition(IMAGE, LEADER, GOOD))
    partition = shrunk.topics.by_name["t"].partitions[0]
    assert (partition.isr, partition.partition_epoch, partition.leader_epoch) == ((LEADER,), 1, 0)
    grow = GOOD._replace(isr=(1, 2), partition_epoch=1)
    assert commit(shrunk, alter_partition(shrunk, LEADER, grow)).topics.by_name["t"].partitions[0].isr == (1, 2)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"topic_id": DIRECTORY}, Error.UNKNOWN_TOPIC_ID),
        ({"partition": 5}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": -1}, Error.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 1}, Error.NOT_CONTROLLER),
        ({"partition_epoch": -1}, Error.INVALID_UPDATE_VERSION),
        ({"partition_epoch": 1}, Error.NOT_CONTROLLER),
        ({"isr": (3 - LEADER,)}, Error.INVALID_REQUEST),
        ({"isr": (LEADER, 7)}, Error.INVALID_REQUEST),
        ({"isr": (1, 2), "leader_recovery_state": 1}, Error.INVALID_REQUEST),
        ({"isr": (LEADER, LEADER)}, Error.INVALID_REQUEST),
        ({"leader_recovery_state": RECOVERING}, Error.INVALID_REQUEST),
        ({"isr": (1, 2), "isr_epochs": (IMAGE.brokers[1].epoch, 7)}, Error.INELIGIBLE_REPLICA),
    ],
)
def test_invalid_requests_to_change_the_isr_are_refused(change, error):
    with pytest.raises(ApiError) as raised:
        alter_partition(IMAGE, LEADER, GOOD._replace(**change))
    assert raised.value.error is error


def test_only_the_leader_asks_and_fenced_brokers_stay_out():
    with pytest.raises(ApiError) as raised:
        alter_partition(IMAGE, 3 - LEADER, GOOD)
    assert raised.value.error is Error.INVALID_REQUEST
    fenced = commit(IMAGE, fence_broker(IMAGE, 3 - LEADER))
    partition = fenced.topics.by_name["t"].partitions[0]
    with pytest.raises(ApiError) as raised:
        alter_partition(fenced, LEADER, GOOD._replace(isr=(1, 2), partition_epoch=partition.partition_epoch))
    assert raised.value.error is Error.INELIGIBLE_REPLICA


def test_a_directory_is_recorded_as_apache_kafka_records_it():
    image = bootstrapped()
    image = commit(image, register_broker(image, registration(1, (DIRECTORY, OTHER_DIRECTORY)), -1))
    image = with_topic(commit(image, unfence_broker(image, 1)), "t")
    topic_id = image.topics.by_name["t"].topic_id
    found = {(topic_id, 0): OTHER_DIRECTORY, (DIRECTORY, 0): OTHER_DIRECTORY}
    assert partitions_to_assign(image, 1, found) == {(topic_id, 0): OTHER_DIRECTORY}
    result = assign_directories(image, 1, found)
    assert [encode_metadata_record(*record).hex() for record in result.records] == [
        f"01050200000000{topic_id.hex()}01081102{OTHER_DIRECTORY.hex()}"
    ]
    after = commit(image, result)
    assert partitions_to_assign(after, 1, found) == {}
    assert not assign_directories(after, 1, found).records


def test_old_metadata_versions_have_no_directories():
    image = with_topic(with_brokers(bootstrapped(14, elr=False), 1), "t")
    found = {(image.topics.by_name["t"].topic_id, 0): OTHER_DIRECTORY}
    assert not assign_directories(image, 1, found).records


def partition_of(image):
    return image.topics.by_name["t"].partitions[0]


def request_for(image, *isr, **fields):
    partition = partition_of(image)
    topic_id = image.topics.by_name["t"].topic_id
    return AlterPartition(
        topic_id, 0, partition.leader_epoch, partition.partition_epoch, isr, partition.leader_recovery_state
    )._replace(**fields)


def test_members_with_the_registered_broker_epoch_or_an_unknown_one_may_enter_the_isr():
    shrunk = commit(IMAGE, alter_partition(IMAGE, LEADER, GOOD))
    for epochs in ((-1, -1), (IMAGE.brokers[1].epoch, -1), (IMAGE.brokers[1].epoch, IMAGE.brokers[2].epoch)):
        grow = request_for(shrunk, 1, 2, isr_epochs=epochs)
        assert alter_partition(shrunk, LEADER, grow).response.isr == (1, 2)


@pytest.mark.parametrize("leave", [fence_broker, begin_controlled_shutdown, unregister_broker])
def test_a_leader_that_is_not_active_any_more_changes_no_isr(leave):
    """The change of the broker has moved the leadership; the leader epoch already tells the old leader so."""
    image = commit(IMAGE, leave(IMAGE, LEADER))
    with pytest.raises(ApiError) as raised:
        alter_partition(image, LEADER, GOOD)
    assert raised.value.error is Error.FENCED_LEADER_EPOCH
    # The same with the old leader still recorded, as it is when no replica could take over.
    topic = image.topics.by_name["t"]
    topic.partitions[0] = PARTITION
    with pytest.raises(ApiError) as raised:
        alter_partition(image, LEADER, GOOD)
    assert raised.value.error is Error.INELIGIBLE_REPLICA


def test_a_request_with_another_broker_epoch_is_refused_as_a_whole():
    epoch = IMAGE.brokers[LEADER].epoch
    for broker_id, broker_epoch in ((LEADER, epoch + 1), (9, epoch)):
        with pytest.raises(ApiError) as raised:
            alter_partitions(IMAGE, broker_id, broker_epoch, [GOOD])
        assert raised.value.error is Error.STALE_BROKER_EPOCH
    result = alter_partitions(IMAGE, LEADER, epoch, [GOOD._replace(partition=9), GOOD])
    assert [each.error for each in result.response] == [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE]
    changed = result.response[1]
    assert (changed.leader, changed.isr, changed.leader_epoch, changed.partition_epoch) == (LEADER, (LEADER,), 0, 1)
    assert len(result.records) == 1


def test_the_same_isr_again_changes_nothing_and_succeeds():
    result = alter_partition(IMAGE, LEADER, request_for(IMAGE, *PARTITION.isr))
    assert not result.records and result.response.partition_epoch == 0


def test_a_new_leader_reports_the_end_of_its_recovery():
    image = with_topic(with_brokers(bootstrapped(), 1, 2), "t", 1, 2)
    recovering = partition_of(image)._replace(leader_recovery_state=RECOVERING, isr=(1,), leader=1)
    image.topics.by_name["t"].partitions[0] = recovering
    assert alter_partition(image, 1, request_for(image, 1)).response.leader_recovery_state == RECOVERING
    recovered = alter_partition(image, 1, request_for(image, 1, 2, leader_recovery_state=RECOVERED))
    assert recovered.response.leader_recovery_state == RECOVERED and recovered.records[0][0].leader == -2


def test_an_isr_that_completes_a_reassignment_may_move_the_leader():
    image = with_topic(with_brokers(bootstrapped(), 1, 2, 3), "t", 1, 1)
    (old,) = partition_of(image).replicas
    new = next(broker for broker in image.brokers if broker != old)
    image = commit(image, alter_partition_reassignments(image, [(TopicPartition("t", 0), [new])]))
    assert partition_of(image).adding_replicas == (new,) and partition_of(image).leader == old
    result = alter_partition(image, old, request_for(image, old, new))
    assert result.response.error is Error.NEW_LEADER_ELECTED
    partition = partition_of(commit(image, result))
    assert (partition.leader, partition.isr, partition.replicas) == (new, (new,), (new,))
    assert partition.adding_replicas == partition.removing_replicas == ()


# -- directories


def in_two_directories():
    """Returns an image with two brokers; broker 1 has two log directories, of which none is chosen yet."""
    image = bootstrapped()
    image = commit(image, register_broker(image, registration(1, (DIRECTORY, OTHER_DIRECTORY)), -1))
    image = commit(image, unfence_broker(image, 1))
    return with_topic(with_brokers(image, 2), "t", 1, 2)


def assign(image, *assignments, broker_id=1):
    wanted = [DirectoryAssignment(*each) for each in assignments]
    return assign_replicas_to_directories(image, broker_id, image.brokers[broker_id].epoch, wanted)


def test_every_assignment_of_a_directory_has_its_own_error():
    image = with_brokers(in_two_directories(), 3)
    topic_id = image.topics.by_name["t"].topic_id
    wanted = [(DIRECTORY, 0, DIRECTORY), (topic_id, 9, DIRECTORY), (topic_id, 0, DIRECTORY)]
    result = assign(image, *wanted)
    assert result.response == [Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE]
    assert partition_of(commit(image, result)).directory_of(1) == DIRECTORY
    assert assign(image, wanted[2], broker_id=3).response == [Error.NOT_LEADER_OR_FOLLOWER]
    with pytest.raises(ApiError) as raised:
        assign_replicas_to_directories(image, 1, 77, [])
    assert raised.value.error is Error.STALE_BROKER_EPOCH
    with pytest.raises(ApiError) as raised:
        assign_replicas_to_directories(image._replace(features={"metadata.version": 16}), 1, 77, [])
    assert raised.value.error is Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize("directory_id", [DIRECTORY_LOST, b"\x77" * 16])
def test_a_replica_in_an_offline_directory_leaves_the_isr_and_the_leadership(directory_id):
    image = in_two_directories()
    topic_id = image.topics.by_name["t"].topic_id
    image.topics.by_name["t"].partitions[0] = partition_of(image)._replace(leader=1)
    partition = partition_of(commit(image, assign(image, (topic_id, 0, directory_id))))
    assert (partition.leader, partition.isr, partition.directory_of(1)) == (2, (2,), directory_id)
