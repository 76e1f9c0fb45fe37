"""The operations on partitions: creation, leader election, reassignment, deletion of records, look-up of offsets."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkapy.client.offset_lookup import look_up_all
from kafkapy.compat.kafka.admin.cluster import ClusterOperations
from kafkapy.compat.kafka.admin.requests import AT_CONTROLLER, ResponseFields, as_dict, error_class, raise_error
from kafkapy.compat.kafka.errors import BrokerResponseError, for_code, translated
from kafkapy.compat.kafka.protocol.consumer import IsolationLevel, OffsetSpec, OffsetTimestamp
from kafkapy.compat.kafka.structs import OffsetAndTimestamp, TopicPartition
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkapy.types import TopicPartition as ClientPartition
from kafkapy.types import by_topic

__all__ = ["NewPartitions", "OffsetSpec", "OffsetTimestamp", "PartitionOperations"]


class NewPartitions:
    """The new number of a topic's partitions, and the brokers of each partition that is added."""

    def __init__(self, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None) -> None:
        self.total_count = total_count
        self.new_assignments = new_assignments


class PartitionOperations(ClusterOperations):
    """The methods of KafkaAdminClient for partitions."""

    def create_partitions(
        self,
        topic_partitions: Mapping[str, Any],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> ResponseFields:
        """Adds partitions to topics and returns the response.

        `topic_partitions` has for each topic the new number of partitions, a dict with `count` and `assignments`, or a
        NewPartitions. If `raise_errors`, raises the first error of a topic.
        """
        request = CreatePartitionsRequest(
            topics=[_more_partitions(name, each) for name, each in topic_partitions.items()],
            timeout_ms=self._timeout_ms(timeout_ms),
            validate_only=validate_only,
        )
        response = self._ask(ApiKey.CREATE_PARTITIONS, request, AT_CONTROLLER, timeout_ms)
        if raise_errors:
            for each in response.results:
                raise_error(each.error_code, f"{each.name}: {each.error_message}")
        return ResponseFields(response)

    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int],
        timeout_ms: float | None = None,
        partition_leader_id: int | None = None,
    ) -> dict[TopicPartition, dict[str, Any]]:
        """Deletes the records before the given offsets; returns the fields of each partition's response.

        The field `low_watermark` is the first offset that remains. The requests go to the leaders, or to the broker
        `partition_leader_id`. If one partition has failed, raises the exception of its error code. If several have
        failed, raises BrokerResponseError, whose text lists the errors.
        """
        wanted = list(records_to_delete)
        leaders = self._leaders(wanted) if partition_leader_id is None else {partition_leader_id: wanted}
        found: dict[TopicPartition, dict[str, Any]] = {}
        for node, led in leaders.items():
            response = self._ask(
                ApiKey.DELETE_RECORDS, self._deletion(led, records_to_delete, timeout_ms), node, timeout_ms
            )
            for topic in response.topics:
                for each in topic.partitions:
                    found[TopicPartition(topic.name, each.partition_index)] = as_dict(each)
        failed = {each: result["error_code"] for each, result in found.items() if result["error_code"]}
        if len(failed) == 1:
            ((partition, code),) = failed.items()
            raise_error(code, f"The records of {partition.topic}-{partition.partition} were not deleted")
        if failed:
            listed = ", ".join(
                f"{each.topic}-{each.partition}: {for_code(code).__name__}" for each, code in failed.items()
            )
            raise BrokerResponseError(f"The records of several partitions were not deleted: {listed}")
        return found

    def _deletion(
        self, led: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int], timeout_ms: float | None
    ) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsRequest.DeleteRecordsPartition(
                            partition_index=number, offset=offsets[TopicPartition(name, number)]
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(ClientPartition(*each) for each in led).items()
            ],
            timeout_ms=self._timeout_ms(timeout_ms),
        )

    def elect_leaders(
        self,
        election_type: int,
        topic_partitions: Any = None,
        timeout_ms: float | None = None,
        raise_errors: bool = True,
    ) -> ResponseFields:
        """Elects the leaders of partitions, and returns the response.

        `election_type` is 0 to elect the preferred replica, and 1 for an unclean election, which elects a replica that
        is not in sync if no in-sync replica is alive. `topic_partitions` is a dict of topics and partitions, a list of
        topics, or None for all partitions. If `raise_errors`, raises the first error; an election that was not needed
        is not an error.
        """
        kind = int(election_type)
        wanted = [
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=numbers)
            for name, numbers in self._partitions_by_topic(topic_partitions).items()
        ]

        def build(version: int) -> ElectLeadersRequest:
            request = ElectLeadersRequest(topic_partitions=wanted, timeout_ms=self._timeout_ms(timeout_ms))
            if version >= ElectLeadersRequest.FIRST_VERSION_WITH_ELECTION_TYPE:
                request.election_type = kind
            return request

        response = self._ask(ApiKey.ELECT_LEADERS, build, AT_CONTROLLER, timeout_ms)
        if raise_errors:
            raise_error(response.error_code, None)
            for topic in response.replica_election_results:
                for each in topic.partition_result:
                    if each.error_code != Error.ELECTION_NOT_NEEDED:
                        raise_error(each.error_code, f"{topic.topic}-{each.partition_id}: {each.error_message}")
        return ResponseFields(response)

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: float | None = None
    ) -> dict[TopicPartition, Any]:
        """Moves partitions to the brokers with the given ids, the first of which is the preferred leader.

        None instead of ids cancels a move. Returns the error class of each partition, None after a success.
        """
        topics: dict[str, Any] = {}
        for partition, replicas in reassignments.items():
            if replicas is not None and (not replicas or not all(isinstance(each, int) for each in replicas)):
                raise ValueError(f"The replicas of {partition} must be ids of brokers, or None to cancel")
            topic = topics.setdefault(
                partition.topic,
                AlterPartitionReassignmentsRequest.ReassignableTopic(name=partition.topic, partitions=[]),
            )
            topic.partitions.append(
                AlterPartitionReassignmentsRequest.ReassignablePartition(
                    partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
                )
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms(timeout_ms), topics=list(topics.values())
        )
        response = self._ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, AT_CONTROLLER, timeout_ms)
        raise_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): error_class(each.error_code) if each.error_code else None
            for topic in response.responses
            for each in topic.partitions
        }

    def list_partition_reassignments(
        self, topic_partitions: Any = None, timeout_ms: float | None = None
    ) -> dict[TopicPartition, dict[str, list[int]]]:
        """Returns the moves in progress: the `replicas`, `adding_replicas` and `removing_replicas` of each partition.

        `topic_partitions` is a dict of topics and partitions, a list of partitions, or None for all.
        """
        topics = None
        if topic_partitions is not None:
            wanted = (
                dict(topic_partitions)
                if isinstance(topic_partitions, Mapping)
                else by_topic(ClientPartition(*each) for each in topic_partitions)
            )
            topics = [
                ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                    name=name, partition_indexes=list(numbers)
                )
                for name, numbers in wanted.items()
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms(timeout_ms), topics=topics)
        response = self._ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request, AT_CONTROLLER, timeout_ms)
        raise_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): {
                "replicas": list(each.replicas),
                "adding_replicas": list(each.adding_replicas),
                "removing_replicas": list(each.removing_replicas),
            }
            for topic in response.topics
            for each in topic.partitions
        }

    def describe_topic_partitions(
        self, topics: Iterable[str], response_partition_limit: int = 2000, cursor: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Returns the partitions of topics, with their eligible leader replicas (KIP-966), as a dictionary.

        The item `topics` has the partitions of each topic, at most `response_partition_limit` in all. The item
        `next_cursor` is the argument `cursor` of the call for the next partitions, None after the last one.
        """
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in topics],
            response_partition_limit=response_partition_limit,
            cursor=None
            if cursor is None
            else DescribeTopicPartitionsRequest.Cursor(
                topic_name=cursor["topic_name"], partition_index=cursor["partition_index"]
            ),
        )
        found = as_dict(self._ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request))
        for topic in found["topics"]:
            topic["topic_id"] = None if topic["topic_id"] is None else uuid.UUID(topic["topic_id"])
            for each in topic["partitions"]:
                for name in ("eligible_leader_replicas", "last_known_elr"):
                    each[name] = each[name] or None
        return {"topics": found["topics"], "next_cursor": found["next_cursor"]}

    def list_partition_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, int],
        isolation_level: Any = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Looks up an offset of each partition, and returns it with the timestamp of its record.

        The values of `topic_partition_specs` are an OffsetSpec, or a time in ms since 1970, which selects the first
        record at or after this time. The offset is -1 if there is no such record.
        """
        level = IsolationLevel.build_from(isolation_level)
        for each in topic_partition_specs.values():
            if not isinstance(each, int):
                raise TypeError(f"Unsupported type {type(each)} of a time, expected int or OffsetSpec")
        wanted = {ClientPartition(*each): int(spec) for each, spec in topic_partition_specs.items()}
        self._leaders(topic_partition_specs)  # raises the error of an unknown partition at once
        with translated():
            found = look_up_all(self._connection.network, wanted, int(level), self._seconds(timeout_ms))
        return {TopicPartition(*each): _offset(offset) for each, offset in found.items()}


def _offset(found: Any) -> OffsetAndTimestamp:
    if found is None:
        return OffsetAndTimestamp(-1, -1, None)
    return OffsetAndTimestamp(found.offset, found.timestamp, None if found.leader_epoch < 0 else found.leader_epoch)


def _more_partitions(name: str, given: Any) -> Any:
    if isinstance(given, int):
        count, assignments = given, None
    elif isinstance(given, Mapping):
        count, assignments = given["count"], given.get("assignments")
    else:
        count, assignments = given.total_count, given.new_assignments
    return CreatePartitionsRequest.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments],
    )
