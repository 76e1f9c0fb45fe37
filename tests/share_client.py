"""Raw requests of share groups to one server; the responses become lines that can be compared."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.client import Producer
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest
from kafkapy.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.api_client import ask

GROUP_RESOURCE = 32
WAIT_S = 60
# (first offset, last offset, types)
Ack = tuple[int, int, Sequence[int]]


class ShareClient:
    """Owns a connection, a topic with one partition, and the share group `group` that reads it from its start.

    The methods add a line about each response to `said`. The epochs of the members' sessions are counted here, unless a
    call gives another.
    """

    def __init__(self, port: int, topic: str, *, partitions: int = 1) -> None:
        self._port = port
        self._connection = socket.create_connection(("localhost", port), timeout=30)
        self.topic, self.group = topic, f"group-{topic}"
        self.said: list[str] = []
        self.epochs: dict[str, int] = {}
        self.topic_id = self._create_topic(partitions)
        self._configure({"share.auto.offset.reset": "earliest"})

    def close(self) -> None:
        self._connection.close()

    def reconnect(self) -> None:
        self._connection = socket.create_connection(("localhost", self._port), timeout=30)

    # -- preparation

    def _create_topic(self, partitions: int) -> bytes:
        wanted = CreateTopicsRequest.CreatableTopic(name=self.topic, num_partitions=partitions, replication_factor=1)
        self._ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wanted], timeout_ms=30000))
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=self.topic)])
        found = self._until(
            lambda: self._ask(ApiKey.METADATA, 12, asked).topics[0],
            lambda topic: (
                not topic.error_code
                and len(topic.partitions) == partitions
                and all(each.leader_id >= 0 for each in topic.partitions)
            ),
        )
        return bytes(found.topic_id)

    def _configure(self, values: dict[str, str]) -> None:
        kind = IncrementalAlterConfigsRequest
        configs = [kind.AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
        resource = kind.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=self.group, configs=configs)
        self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, kind(resources=[resource]))

    def configure(self, **values: str) -> None:
        """Sets keys of the group; a name has underscores instead of points."""
        self._configure({name.replace("_", "."): value for name, value in values.items()})

    def produce(self, *values: bytes) -> None:
        """Appends one batch."""
        builder = RecordBatchBuilder()
        for value in values:
            builder.append(1_790_000_000_000, None, value)
        data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])
        answer = self._ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer.error_code

    def produce_in_transaction(self, *values: bytes, is_aborted: bool = False) -> None:
        """Appends one batch, and the marker of the transaction."""
        with self._producer() as producer:
            self._send(producer, values)
            if is_aborted:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        self._await_marker()

    @contextmanager
    def open_transaction(self, *values: bytes) -> Iterator[None]:
        """Appends one batch of a transaction that is committed at the end of the block."""
        with self._producer() as producer:
            self._send(producer, values)
            yield
            producer.commit_transaction()
        self._await_marker()

    def _await_marker(self) -> None:
        """Waits until no transaction is open: its marker may be written after the producer got its answer."""

        def end_offset(isolation_level: int) -> int:
            kind = ListOffsetsRequest
            partition = kind.ListOffsetsPartition(partition_index=0, timestamp=-1)
            topic = kind.ListOffsetsTopic(name=self.topic, partitions=[partition])
            request = kind(replica_id=-1, isolation_level=isolation_level, topics=[topic])
            return int(self._ask(ApiKey.LIST_OFFSETS, 6, request).topics[0].partitions[0].offset)

        self._until(lambda: (end_offset(0), end_offset(1)), lambda offsets: offsets[0] == offsets[1] >= 0)

    def _producer(self) -> Producer:
        server = f"localhost:{self._port}"
        return Producer({"bootstrap.servers": server, "transactional.id": self.topic, "linger.ms": 1000})

    def _send(self, producer: Producer, values: Sequence[bytes]) -> None:
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(self.topic, value)
        producer.flush()

    def delete_records(self, offset: int) -> None:
        """Deletes the records below the offset."""
        kind = DeleteRecordsRequest
        partition = kind.DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = kind.DeleteRecordsTopic(name=self.topic, partitions=[partition])
        answer = self._ask(ApiKey.DELETE_RECORDS, 2, kind(topics=[topic], timeout_ms=30000))
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def alter_offset(self, title: str, offset: int) -> None:
        """Sets the group's start offset of the partition, and adds a line with `title` and the errors to `said`."""
        kind = AlterShareGroupOffsetsRequest
        partition = kind.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
        topic = kind.AlterShareGroupOffsetsRequestTopic(topic_name=self.topic, partitions=[partition])
        answer = self._ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, kind(group_id=self.group, topics=[topic]))
        results = [each.error_code for topic in answer.responses for each in topic.partitions]
        self.said.append(f"{title}: {answer.error_code} {results}")

    def join(self, member: str = "m1") -> None:
        """Heartbeats until the member has a partition."""
        not_yet = (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR)
        self._until(
            lambda: self._ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[self.group])),
            lambda answer: answer.coordinators[0].error_code == 0,
        )
        epoch = 0

        def heartbeat() -> bool:
            nonlocal epoch
            answer = self.heartbeat(member, epoch, [self.topic] if epoch == 0 else None)
            if answer.error_code in not_yet:
                return False
            assert answer.error_code == 0, (answer.error_code, answer.error_message)
            epoch = answer.member_epoch
            return bool(answer.assignment is not None and answer.assignment.topic_partitions)

        self._until(heartbeat, bool)

    def heartbeat(self, member: str, epoch: int, topics: list[str] | None = None) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        return self._ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)

    # -- fetching and acknowledging

    def fetch(
        self, title: str, member: str = "m1", *acks: Ack, epoch: int | None = None, wait_ms: int = 5000,
        max_records: int = 500, exact: bool = False, is_renewal: bool = False,
    ) -> Any:  # fmt: skip
        """Sends ShareFetch with the acknowledgements `acks`, and returns the response.

        A line with `title` and the response is added to `said`. The broker waits up to `wait_ms` for records. With
        `exact` it acquires `max_records` at most. `is_renewal` says that the acknowledgements renew locks; nothing is
        fetched then.
        """
        used = self._epoch(member, epoch)
        kind = ShareFetchRequest
        partition = kind.FetchPartition(partition_index=0, acknowledgement_batches=_batches(kind, acks))
        request = ShareFetchRequest(
            group_id=self.group,
            member_id=member,
            share_session_epoch=used,
            max_wait_ms=0 if is_renewal else wait_ms,
            min_bytes=0 if is_renewal else 1,
            max_bytes=0 if is_renewal else 1 << 20,
            max_records=0 if is_renewal else max_records,
            batch_size=500,
            share_acquire_mode=int(exact),
            is_renew_ack=is_renewal,
            topics=[ShareFetchRequest.FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        answer = self._ask(ApiKey.SHARE_FETCH, 2, request)
        self._advance(member, used, answer.error_code)
        self.said.append(f"{title}: {self._fetched(answer)}")
        return answer

    def first_fetch(self, title: str, member: str = "m1", **options: Any) -> Any:
        """Opens a session and fetches until the share partition is loaded and has records."""
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self.fetch(title, member, epoch=None if member in self.epochs else 0, **options)
            if any(each.acquired_records for topic in answer.responses for each in topic.partitions):
                return answer
            assert time.monotonic() < deadline, self.said[-1]
            del self.said[-1]

    def acknowledge(
        self, title: str, member: str, *acks: Ack, epoch: int | None = None, is_renewal: bool = False
    ) -> Any:
        used = self._epoch(member, epoch)
        kind = ShareAcknowledgeRequest
        partition = kind.AcknowledgePartition(partition_index=0, acknowledgement_batches=_batches(kind, acks))
        request = kind(
            group_id=self.group,
            member_id=member,
            share_session_epoch=used,
            is_renew_ack=is_renewal,
            topics=[kind.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
        )
        answer = self._ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
        self._advance(member, used, answer.error_code)
        results = [
            (each.partition_index, each.error_code, _text(each.error_code, each.error_message))
            for topic in answer.responses
            for each in topic.partitions
        ]
        self.said.append(f"{title}: {answer.error_code} {results}")
        return answer

    def offsets(self, title: str) -> None:
        """Adds a line with the start offset and the lag of the partition to `said`."""
        kind = DescribeShareGroupOffsetsRequest
        topic = kind.DescribeShareGroupOffsetsRequestTopic(topic_name=self.topic, partitions=[0])
        group = kind.DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=[topic])
        found = self._ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, kind(groups=[group])).groups[0]
        parts = [(each.start_offset, each.lag, each.error_code) for topic in found.topics for each in topic.partitions]
        self.said.append(f"{title}: {found.error_code} {parts}")

    def delete_group(self, title: str) -> None:
        answer = self._ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[self.group]))
        self.said.append(f"{title}: {[each.error_code for each in answer.results]}")

    def _fetched(self, answer: Any) -> str:
        parts = []
        for topic in answer.responses:
            for each in topic.partitions:
                acquired = [(a.first_offset, a.last_offset, a.delivery_count) for a in each.acquired_records]
                offsets = [record.offset for batch in iterate_batches(each.records or b"") for record in batch]
                found = f"{offsets[0]}..{offsets[-1]}" if offsets else "none"
                parts.append(
                    f"{each.error_code} acks {each.acknowledge_error_code} "
                    f"{_text(each.acknowledge_error_code, each.acknowledge_error_message)} "
                    f"acquired {joined(acquired)} records {found}"
                )
        return f"{answer.error_code} {parts}"

    def _epoch(self, member: str, epoch: int | None) -> int:
        return self.epochs.get(member, 0) if epoch is None else epoch

    def _advance(self, member: str, used: int, error: int) -> None:
        if error == 0 and used >= 0:
            self.epochs[member] = used + 1
        elif error == 0:
            self.epochs.pop(member, None)

    def _ask(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self._connection, key, version, request, response_class(key))

    def _until(self, attempt: Callable[[], Any], is_done: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + WAIT_S
        while True:
            found = attempt()
            if is_done(found):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


def _batches(request_class: Any, acks: Sequence[Ack]) -> list[Any]:
    return [
        request_class.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in acks
    ]


def _text(error: int, text: str | None) -> str | None:
    """Returns the message, but not that of INVALID_RECORD_STATE, which depends on the broker's data structures."""
    return None if error == Error.INVALID_RECORD_STATE else text


def joined(acquired: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Returns the ranges with neighbours of the same delivery count joined: brokers may cut them differently."""
    result: list[tuple[int, int, int]] = []
    for first, last, count in acquired:
        if result and result[-1][1] + 1 == first and result[-1][2] == count:
            result[-1] = result[-1][0], last, count
        else:
            result.append((first, last, count))
    return result
