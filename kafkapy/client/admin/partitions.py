"""Operations on partitions: elections, reassignments, and their active producers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from kafkapy.client.admin.calls import Found
from kafkapy.client.admin.lookups import AdminLookups, as_partition_keys, as_partitions
from kafkapy.client.admin.requests import AdminRequest, constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkapy.types import TopicPartition, by_topic


class ElectionType(IntEnum):
    """The kinds of leader elections.

    PREFERRED elects the first replica if it is in sync. UNCLEAN elects any live replica if none is in sync, which may
    lose records.
    """

    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """An ongoing reassignment: the broker ids of all replicas, of those being added and of those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ProducerState(NamedTuple):
    """The state of an active producer in one partition.

    `transaction_start_offset` is None without an open transaction. `coordinator_epoch` is -1 if no transaction of the
    producer has ended in the partition. `last_timestamp` is in ms since 1970.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int | None


class PartitionOperations(AdminLookups):
    """Operations on partitions."""

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Elects leaders of partitions (None: all). Blocks.

        The error is ELECTION_NOT_NEEDED for a partition whose leader is already the one that the election would choose.
        """
        deadline_ms = self._deadline_ms(timeout)
        wanted = None
        if partitions is not None:
            wanted = [
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(as_partitions(partitions)).items()
            ]

        def build(version: int) -> ElectLeadersRequest:
            if version < 1 and election_type != ElectionType.PREFERRED:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker elects preferred leaders only.")
            return ElectLeadersRequest(
                election_type=election_type, topic_partitions=wanted, timeout_ms=self._left_ms(deadline_ms)
            )

        response = self._request(
            self._controller, ApiKey.ELECT_LEADERS, build, top_level_error, deadline_ms=deadline_ms
        )
        results: Results[TopicPartition, None] = Results()
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                results.put(TopicPartition(topic.topic, result.partition_id), error_of(result))
        return results

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Starts to move each partition to the given brokers; None instead of brokers cancels an ongoing move. Blocks.

        The first broker of a partition becomes its preferred leader. Without `allow_replication_factor_change` a
        partition whose number of replicas would change has an error.
        """
        deadline_ms = self._deadline_ms(timeout)
        wanted = as_partition_keys(reassignments)
        topics = []
        for topic, numbers in by_topic(wanted).items():
            partitions = []
            for number in numbers:
                replicas = wanted[TopicPartition(topic, number)]
                partitions.append(
                    AlterPartitionReassignmentsRequest.ReassignablePartition(
                        partition_index=number, replicas=None if replicas is None else list(replicas)
                    )
                )
            topics.append(AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=partitions))

        def build(version: int) -> AlterPartitionReassignmentsRequest:
            if version < 1 and not allow_replication_factor_change:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot keep the replication factor.")
            return AlterPartitionReassignmentsRequest(
                timeout_ms=self._left_ms(deadline_ms),
                allow_replication_factor_change=allow_replication_factor_change,
                topics=topics,
            )

        response = self._request(
            self._controller, ApiKey.ALTER_PARTITION_REASSIGNMENTS, build, top_level_error, deadline_ms=deadline_ms
        )
        results: Results[TopicPartition, None] = Results()
        for told_topic in response.responses:
            for result in told_topic.partitions:
                results.put(TopicPartition(told_topic.name, result.partition_index), error_of(result))
        return results

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Returns the ongoing reassignments of partitions (None: all). Blocks."""
        deadline_ms = self._deadline_ms(timeout)
        wanted = None
        if partitions is not None:
            wanted = [
                ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                    name=topic, partition_indexes=numbers
                )
                for topic, numbers in by_topic(as_partitions(partitions)).items()
            ]
        response = self._request(
            self._controller,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            lambda version: ListPartitionReassignmentsRequest(timeout_ms=self._left_ms(deadline_ms), topics=wanted),
            top_level_error,
            deadline_ms=deadline_ms,
        )
        return {
            TopicPartition(topic.name, result.partition_index): Reassignment(
                tuple(result.replicas), tuple(result.adding_replicas), tuple(result.removing_replicas)
            )
            for topic in response.topics
            for result in topic.partitions
        }

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker: int | None = None, timeout: float | None = None
    ) -> Results[TopicPartition, list[ProducerState]]:
        """Returns the active producers of each partition. Blocks.

        The partition's leader reports them. If `broker` is given, the replica on this broker reports them instead.
        """

        def find(keys: Collection[TopicPartition], deadline_ms: int) -> Found:
            if broker is None:
                return self._find_leaders(keys, deadline_ms)
            return Found(dict.fromkeys(keys, broker), {})

        def make_request(node_id: int, keys: list[TopicPartition]) -> AdminRequest:
            topics = [
                DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(keys).items()
            ]
            request = DescribeProducersRequest(topics=topics)
            return AdminRequest(self._broker(node_id), ApiKey.DESCRIBE_PRODUCERS, constant(request))

        def read_response(
            response: Any, keys: Collection[TopicPartition]
        ) -> Results[TopicPartition, list[ProducerState]]:
            results: Results[TopicPartition, list[ProducerState]] = Results()
            for topic in response.topics:
                for result in topic.partitions:
                    states = [_producer(each) for each in result.active_producers]
                    results.put(TopicPartition(topic.name, result.partition_index), error_of(result) or states)
            return results

        return self._request_by_key(
            as_partitions(partitions), find, make_request, read_response, self._deadline_ms(timeout)
        )


def _producer(result: Any) -> ProducerState:
    start = result.current_txn_start_offset
    return ProducerState(
        result.producer_id,
        result.producer_epoch,
        result.last_sequence,
        result.last_timestamp,
        result.coordinator_epoch,
        None if start < 0 else start,
    )
