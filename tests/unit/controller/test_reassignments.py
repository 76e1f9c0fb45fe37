"""AlterPartitionReassignments on one node: the current assignment is accepted, everything else is refused."""

import pytest

from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.errors import Error
from kafkapy.types import TopicPartition
from tests.harness.metadata import bootstrapped, with_brokers, with_topic

T0 = TopicPartition("t", 0)


@pytest.fixture
def image():
    return with_topic(with_brokers(bootstrapped(elr=True), 1, 2), "t", 1, 1)


@pytest.mark.parametrize(
    ("partition", "replicas", "error"),
    [
        (T0, [1], Error.NONE),
        (T0, [2], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, [7], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, [1, 1], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, [], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, None, Error.NO_REASSIGNMENT_IN_PROGRESS),
        (TopicPartition("t", 9), [1], Error.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("u", 0), None, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_only_the_current_assignment_is_accepted(image, partition, replicas, error):
    own = image.topics.by_name["t"].partitions[0].replicas
    wanted = list(own) if replicas == [1] else list(set(image.brokers) - set(own)) if replicas == [2] else replicas
    result = alter_partition_reassignments(image, [(partition, wanted)])
    ((answered, found),) = result.response
    assert answered == partition and found.error == error and not result.records
    assert (found.message is None) == (error in (Error.NONE, Error.NO_REASSIGNMENT_IN_PROGRESS))
