"""Validation of AlterPartition, and the directories of replicas."""

import pytest

from kafkapy.controller.broker_registration import fence_broker
from kafkapy.controller.partitions import AlterPartition, alter_partition, assign_directories, partitions_to_assign
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.record_frame import encode_metadata_record
from tests.harness.metadata import DIRECTORY, OTHER_DIRECTORY, bootstrapped, commit, with_brokers, with_topic

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
    image = with_topic(with_brokers(bootstrapped(), 1), "t")
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
