"""Checks of the arguments of AdminClient, with the exceptions that confluent-kafka raises."""

from __future__ import annotations

from typing import Any

from kafkapy.compat.confluent_kafka._constants import OFFSET_INVALID
from kafkapy.compat.confluent_kafka._model import ConsumerGroupTopicPartitions, ElectionType, IsolationLevel
from kafkapy.compat.confluent_kafka._records import TopicPartition
from kafkapy.compat.confluent_kafka.admin._values import (
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)


def check_members(name: str, values: Any, kind: type) -> None:
    """Raises TypeError unless `values` is None or a set of members of the enumeration `kind`.

    `name` is the name of the argument in the error message.
    """
    if values is None:
        return
    if not isinstance(values, set):
        raise TypeError(f"'{name}' must be a set")
    if not all(isinstance(each, kind) for each in values):
        raise TypeError(f"All elements of {name} must be of type {kind.__name__}")


def check_groups(groups: Any, verb: str) -> None:
    """Raises TypeError unless `groups` is a list, and ValueError if it is empty.

    `verb` is the operation in the message, such as "deleted".
    """
    if not isinstance(groups, list):
        raise TypeError(f"Expected input to be list of group ids to be {verb}")
    if not groups:
        raise ValueError(f"Expected at least one group to be {verb}")


def check_group_offsets(request: Any, verb: str, *, alters: bool) -> None:
    """Raises TypeError or ValueError unless `request` is a list with one valid ConsumerGroupTopicPartitions.

    `verb` is the operation in the message, such as "listing". If `alters`, the request must name partitions.
    """
    if request is None:
        raise TypeError("request cannot be None")
    if not isinstance(request, list):
        raise TypeError("request must be a list")
    if len(request) != 1:
        raise ValueError(f"Currently we support {verb} offsets for a single consumer group only")
    [group] = request
    if not isinstance(group, ConsumerGroupTopicPartitions):
        raise TypeError("Expected list of 'ConsumerGroupTopicPartitions'")
    if group.group_id is None:
        raise TypeError("'group_id' cannot be None")
    if not isinstance(group.group_id, str):
        raise TypeError("'group_id' must be a string")
    if not group.group_id:
        raise ValueError("'group_id' cannot be empty")
    if group.topic_partitions is None:
        if alters:
            raise ValueError("'topic_partitions' cannot be null")
        return
    if not isinstance(group.topic_partitions, list):
        raise TypeError("'topic_partitions' must be a list" + ("" if alters else " or None"))
    if not group.topic_partitions:
        raise ValueError("'topic_partitions' cannot be empty")
    for each in group.topic_partitions:
        _check_group_partition(each, alters=alters)


def _check_group_partition(partition: Any, *, alters: bool) -> None:
    if partition is None:
        raise ValueError("Element of 'topic_partitions' cannot be None")
    if not isinstance(partition, TopicPartition):
        raise TypeError("Element of 'topic_partitions' must be of type TopicPartition")
    if not partition.topic:
        raise ValueError("Element of 'topic_partitions' must not have 'topic' attribute as Empty")
    if partition.partition < 0:
        raise ValueError(
            "Element of 'topic_partitions' must not have negative value for 'partition' field"
            if alters
            else "Element of 'topic_partitions' must not have negative 'partition' value"
        )
    if alters and partition.offset < 0:
        raise ValueError("Element of 'topic_partitions' must not have negative value for 'offset' field")
    if not alters and partition.offset != OFFSET_INVALID:
        raise ValueError("Element of 'topic_partitions' must not have 'offset' value")


def check_users(users: Any) -> None:
    """Raises TypeError or ValueError unless `users` is None or a list of names."""
    if users is None:
        return
    if not isinstance(users, list):
        raise TypeError("Expected input to be list of String")
    for each in users:
        if not isinstance(each, str):
            raise TypeError("Each value should be a string")
        if not each:
            raise ValueError("'user' cannot be empty")


def check_alterations(alterations: Any) -> None:
    """Raises TypeError or ValueError unless `alterations` is a list of valid changes of credentials."""
    if not isinstance(alterations, list):
        raise TypeError("Expected input to be list")
    if not alterations:
        raise ValueError("Expected at least one alteration")
    for each in alterations:
        user = getattr(each, "user", None)
        if user is None:
            raise TypeError("'user' cannot be None")
        if not isinstance(user, str):
            raise TypeError("'user' must be a string")
        if not user:
            raise ValueError("'user' cannot be empty")
        if isinstance(each, UserScramCredentialUpsertion):
            _check_upsertion(each)
        elif isinstance(each, UserScramCredentialDeletion):
            if not isinstance(each.mechanism, ScramMechanism):
                raise TypeError("Expected the mechanism to be ScramMechanism Type")
        else:
            raise TypeError(
                "Expected each element of list 'alterations' to be either a UserScramCredentialUpsertion or a "
                "UserScramCredentialDeletion"
            )


def _check_upsertion(upsertion: UserScramCredentialUpsertion) -> None:
    if upsertion.password is None:
        raise TypeError("'password' cannot be None")
    if not isinstance(upsertion.password, bytes):
        raise TypeError("'password' must be bytes")
    if not upsertion.password:
        raise ValueError("'password' cannot be empty")
    if upsertion.salt is not None and not isinstance(upsertion.salt, bytes):
        raise TypeError("'salt' must be bytes")
    if upsertion.salt is not None and not upsertion.salt:
        raise ValueError("'salt' cannot be empty")
    if not isinstance(upsertion.scram_credential_info, ScramCredentialInfo):
        raise TypeError("Expected credential_info to be ScramCredentialInfo Type")
    if upsertion.scram_credential_info.iterations < 1:
        raise ValueError("Iterations should be positive")
    if not isinstance(upsertion.scram_credential_info.mechanism, ScramMechanism):
        raise TypeError("Expected the mechanism to be ScramMechanism Type")


def check_offset_specs(wanted: Any, isolation_level: Any) -> None:
    """Raises TypeError or ValueError unless `wanted` maps partitions to OffsetSpecs.

    Raises TypeError unless `isolation_level` is an IsolationLevel.
    """
    if not isinstance(wanted, dict):
        raise TypeError(
            "Expected topic_partition_offsets to be dict of [TopicPartitions,OffsetSpec] for list offsets request"
        )
    for partition, spec in wanted.items():
        if partition is None:
            raise TypeError("partition cannot be None")
        if not isinstance(partition, TopicPartition):
            raise TypeError("partition must be a TopicPartition")
        if not partition.topic:
            raise ValueError("partition topic name cannot be empty")
        if partition.partition < 0:
            raise ValueError("partition index must be non-negative")
        if spec is None:
            raise TypeError("OffsetSpec cannot be None")
        if not isinstance(spec, OffsetSpec):
            raise TypeError("Value must be a OffsetSpec")
    if not isinstance(isolation_level, IsolationLevel):
        raise TypeError("isolation_level argument should be an IsolationLevel")


def check_partitions_to_delete(request: Any) -> None:
    """Raises TypeError or ValueError unless `request` is a list of partitions."""
    if not isinstance(request, list):
        raise TypeError(f"Expected Request to be a list, got '{type(request).__name__}' ")
    for each in request:
        if not isinstance(each, TopicPartition):
            kind = type(each).__name__
            raise TypeError(f"Element of the request list must be of type 'TopicPartition' got '{kind}' ")
        if each.partition < 0:
            raise ValueError("'partition' cannot be negative")


def check_election(election_type: Any, partitions: Any) -> None:
    """Raises TypeError unless `election_type` is an ElectionType and `partitions` is None or a list of TopicPartition.

    Raises ValueError if a partition number is negative.
    """
    if not isinstance(election_type, ElectionType):
        raise TypeError("Expected 'election_type' to be of type 'ElectionType'")
    if partitions is None:
        return
    if not isinstance(partitions, list):
        raise TypeError(f"Expected 'partitions' to be a list, got '{type(partitions).__name__}'")
    for each in partitions:
        if not isinstance(each, TopicPartition):
            kind = type(each).__name__
            raise TypeError(f"Element of the 'partitions' list must be of type 'TopicPartition' got '{kind}' ")
        if each.partition < 0:
            raise ValueError("Elements of the 'partitions' list must not have negative value for 'partition' field")
