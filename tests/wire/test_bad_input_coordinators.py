"""Bad input to the coordinators of groups and transactions: each case is also sent to Apache Kafka, which must respond
in the same way.

A refused request changes nothing: group, offsets, transaction and log remain as they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.protocol.messages.end_txn import EndTxnRequest
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest
from kafkapy.protocol.messages.leave_group import LeaveGroupRequest
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.messages.sync_group import SyncGroupRequest
from kafkapy.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker_process import BrokerProcess
from tests.old_client import ask, create_topic
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess

TOPIC, GROUP, TRANSACTIONAL_ID = "topic", "group", "transactional"
PROPERTIES = {"offset.metadata.max.bytes": "100", "auto.create.topics.enable": "false"}
# Version 0: one topic, no user data. Apache Kafka 4.3 never completes the rebalance if it cannot read the metadata.
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x05topic\xff\xff\xff\xff"
DEADLINE_SECONDS = 60
NOW_MS = int(time.time() * 1000)
NOT_YET = (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]


class Harness:
    """One broker with a stable group, a committed offset, a transactional id at epoch 1 or later with an open
    transaction that includes the group, and a transactional id without a transaction (`idle`).

    `idempotent` is a producer that has written ten batches of one record to partition 0 of the topic `sequences`.
    """

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        for topic in (TOPIC, "sequences"):
            create_topic(server, topic)
        for key, kind in ((GROUP, 0), (TRANSACTIONAL_ID, 1)):
            request = FindCoordinatorRequest(key=key, key_type=kind)
            self.until_there(lambda request=request: self.ask(ApiKey.FIND_COORDINATOR, 2, request))  # type: ignore[misc]
        self.member_id = ""
        self.generation = -1
        self._join()
        self.commit(self.member_id, self.generation)
        self.init(TRANSACTIONAL_ID)
        self.producer_id, self.epoch = self.init(TRANSACTIONAL_ID)
        assert self.epoch > 0
        assert self.add_partitions(self.producer_id, self.epoch) == Error.NONE
        assert self.write(TOPIC, self.producer_id, self.epoch, 0, is_transactional=True) == Error.NONE
        assert self.add_offsets(self.producer_id, self.epoch, GROUP) == Error.NONE
        self.init("idle")
        self.idle = self.init("idle")
        self.idempotent = self.init(None)
        for sequence in range(10):
            assert self.write("sequences", *self.idempotent, sequence) == Error.NONE
        assert self.mark(self.idempotent[0], self.idempotent[1], 5) == Error.NONE

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self.server, key, version, request)

    def until_there(self, question: Callable[[], Any]) -> Any:
        """Sends the request again while the coordinator is loading."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (answer := question()).error_code in NOT_YET:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return answer

    # -- groups

    def join(self, **fields: Any) -> Any:
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
        values = {
            "group_id": GROUP,
            "session_timeout_ms": 300_000,
            "rebalance_timeout_ms": 300_000,
            "protocol_type": "consumer",
            "protocols": protocols,
        }
        return self.ask(ApiKey.JOIN_GROUP, 6, JoinGroupRequest(**{**values, **fields}))

    def _join(self) -> None:
        self.member_id = self.until_there(self.join).member_id
        joined = self.join(member_id=self.member_id)
        assert joined.error_code == Error.NONE
        self.generation = joined.generation_id
        given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"everything")
        assert self.sync(assignments=[given]) == Error.NONE

    def sync(self, **fields: Any) -> int:
        values = {
            "group_id": GROUP,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
        }
        error: int = self.ask(ApiKey.SYNC_GROUP, 5, SyncGroupRequest(**{**values, **fields})).error_code
        return error

    def heartbeat(self, **fields: Any) -> int:
        values = {"group_id": GROUP, "generation_id": self.generation, "member_id": self.member_id}
        error: int = self.ask(ApiKey.HEARTBEAT, 3, HeartbeatRequest(**{**values, **fields})).error_code
        return error

    def leave(self, group: str, member_id: str, instance: str | None = None) -> list[int]:
        identity = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance)
        answer = self.ask(ApiKey.LEAVE_GROUP, 4, LeaveGroupRequest(group_id=group, members=[identity]))
        return [answer.error_code, *(member.error_code for member in answer.members)]

    def commit(
        self,
        member_id: str,
        generation: int,
        *,
        group: str = GROUP,
        topic: str = TOPIC,
        index: int = 0,
        text: str = "m",
    ) -> int:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata=text
        )
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=generation, member_id=member_id, topics=topics
        )
        answer = self.ask(ApiKey.OFFSET_COMMIT, 8, request)
        error: int = answer.topics[0].partitions[0].error_code
        return error

    # -- transactions

    def init(self, transactional_id: str | None, **fields: Any) -> tuple[int, int]:
        answer = self.until_there(lambda: self.init_answer(transactional_id, **fields))
        assert answer.error_code == Error.NONE, answer
        return answer.producer_id, answer.producer_epoch

    def init_answer(self, transactional_id: str | None, **fields: Any) -> Any:
        values = {"transactional_id": transactional_id, "transaction_timeout_ms": 600_000, **fields}
        return self.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(**values))

    def add_partitions(
        self, producer_id: int, epoch: int, *, transactional_id: str = TRANSACTIONAL_ID, topic: str = TOPIC
    ) -> int:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        error: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return error

    def write(self, topic: str, producer_id: int, epoch: int, sequence: int, *, is_transactional: bool = False) -> int:
        builder = RecordBatchBuilder(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=is_transactional
        )
        builder.append(NOW_MS, b"key", b"value")
        data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        request = ProduceRequest(
            transactional_id=TRANSACTIONAL_ID if is_transactional else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        error: int = self.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0].error_code
        return error

    def end(self, producer_id: int, epoch: int, transactional_id: str = TRANSACTIONAL_ID) -> int:
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        error: int = self.ask(ApiKey.END_TXN, 3, request).error_code
        return error

    def add_offsets(self, producer_id: int, epoch: int, group: str = "other") -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=TRANSACTIONAL_ID, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        error: int = self.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, request).error_code
        return error

    def commit_offsets(self, **fields: Any) -> int:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9)
        topics = [TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
        values = {
            "transactional_id": TRANSACTIONAL_ID,
            "group_id": GROUP,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "topics": topics,
        }
        answer = self.ask(ApiKey.TXN_OFFSET_COMMIT, 3, TxnOffsetCommitRequest(**{**values, **fields}))
        error: int = answer.topics[0].partitions[0].error_code
        return error

    def mark(self, producer_id: int, epoch: int, coordinator_epoch: int, topic: str = "sequences") -> int:
        topics = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])]
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=coordinator_epoch,
        )
        answer = self.ask(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker]))
        error: int = answer.markers[0].topics[0].partitions[0].error_code
        return error

    def list_matching(self, pattern: str) -> int:
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        error: int = self.ask(ApiKey.LIST_TRANSACTIONS, 2, request).error_code
        return error

    # -- state that must not change

    def state(self) -> list[Any]:
        (group,) = self.ask(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=[GROUP])).groups
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        (offsets,) = self.ask(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[asked])).groups
        request = DescribeTransactionsRequest(transactional_ids=[TRANSACTIONAL_ID])
        (transaction,) = self.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
        return [group, offsets, transaction, self.heartbeat(), self.log_end(TOPIC), self.log_end("sequences")]

    def log_end(self, topic: str) -> int:
        partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])]
        answer = self.ask(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=topics))
        offset: int = answer.topics[0].partitions[0].offset
        return offset


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), PROPERTIES) as server:
        yield Harness(server)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, kafka_43: Any) -> Iterator[Harness]:
    directory = tmp_path_factory.mktemp("kafka")
    with ApacheKafka(kafka_43, directory, heap=("-Xmx512M",), properties=PROPERTIES) as server:
        yield Harness(server)


OTHER = [JoinGroupRequest.JoinGroupRequestProtocol(name="other", metadata=SUBSCRIPTION)]
CASES: dict[str, Callable[[Harness], Any]] = {
    "heartbeat of an unknown member": lambda on: on.heartbeat(member_id="nobody"),
    "heartbeat of an unknown instance": lambda on: on.heartbeat(group_instance_id="nobody"),
    "heartbeat of a stale generation": lambda on: on.heartbeat(generation_id=on.generation - 1),
    "heartbeat of a generation to come": lambda on: on.heartbeat(generation_id=on.generation + 1),
    "heartbeat to no group": lambda on: on.heartbeat(group_id=""),
    "heartbeat to an unknown group": lambda on: on.heartbeat(group_id="unknown"),
    "sync of an unknown member": lambda on: on.sync(member_id="nobody"),
    "sync of a stale generation": lambda on: on.sync(generation_id=on.generation - 1),
    "sync of a wrong protocol type": lambda on: on.sync(protocol_type="connect", protocol_name="range"),
    "sync of a wrong protocol": lambda on: on.sync(protocol_type="consumer", protocol_name="sticky"),
    "sync to no group": lambda on: on.sync(group_id=""),
    "join of an unknown member": lambda on: on.join(member_id="nobody").error_code,
    "join of a wrong protocol type": lambda on: on.join(protocol_type="connect").error_code,
    "join without a protocol type": lambda on: on.join(protocol_type="").error_code,
    "join of a new group without a type": lambda on: on.join(group_id="new", protocol_type="").error_code,
    "join of a new group without protocols": lambda on: on.join(group_id="new", protocols=[]).error_code,
    "join of an unknown member of a new group": lambda on: on.join(group_id="new", member_id="nobody").error_code,
    "join with another protocol": lambda on: on.join(protocols=OTHER).error_code,
    "join without protocols": lambda on: on.join(protocols=[]).error_code,
    "join with a session too short": lambda on: on.join(session_timeout_ms=1).error_code,
    "join with a session too long": lambda on: on.join(session_timeout_ms=2**31 - 1).error_code,
    "join with a negative session": lambda on: on.join(session_timeout_ms=-1).error_code,
    "join of no group": lambda on: on.join(group_id="").error_code,
    "leave of an unknown member": lambda on: on.leave(GROUP, "nobody"),
    "leave of an unknown instance": lambda on: on.leave(GROUP, "", "nobody"),
    "leave of an unknown group": lambda on: on.leave("unknown", "nobody"),
    "leave of no group": lambda on: on.leave("", "nobody"),
    "commit of an unknown member": lambda on: on.commit("nobody", on.generation),
    "commit of a stale generation": lambda on: on.commit(on.member_id, on.generation - 1),
    "commit from outside of a stable group": lambda on: on.commit("", -1),
    "commit of a member of an unknown group": lambda on: on.commit("nobody", 3, group="unknown"),
    "commit to an unknown topic": lambda on: on.commit(on.member_id, on.generation, topic="unknown"),
    "commit to an unknown partition": lambda on: on.commit(on.member_id, on.generation, index=99),
    "commit to a negative partition": lambda on: on.commit(on.member_id, on.generation, index=-1),
    "commit of long metadata": lambda on: on.commit(on.member_id, on.generation, text="x" * 101),
    "initialisation without an id": lambda on: on.init_answer("").error_code,
    "initialisation with a timeout too long": lambda on: on.init_answer("new", transaction_timeout_ms=10**9).error_code,
    "initialisation with no timeout": lambda on: on.init_answer("new", transaction_timeout_ms=0).error_code,
    "initialisation of an older epoch": lambda on: (
        on.init_answer("idle", producer_id=on.idle[0], producer_epoch=on.idle[1] - 1).error_code
    ),
    "initialisation of another producer": lambda on: (
        on.init_answer(TRANSACTIONAL_ID, producer_id=on.producer_id + 999, producer_epoch=0).error_code
    ),
    "initialisation with an epoch alone": lambda on: on.init_answer(TRANSACTIONAL_ID, producer_epoch=1).error_code,
    "partitions of an older epoch": lambda on: on.add_partitions(on.producer_id, on.epoch - 1),
    "partitions of a newer epoch": lambda on: on.add_partitions(on.producer_id, on.epoch + 1),
    "partitions of another producer": lambda on: on.add_partitions(on.producer_id + 999, on.epoch),
    "partitions of an unknown id": lambda on: on.add_partitions(1, 0, transactional_id="unknown"),
    "partitions of no id": lambda on: on.add_partitions(1, 0, transactional_id=""),
    "partitions of an unknown topic": lambda on: on.add_partitions(on.producer_id, on.epoch, topic="unknown"),
    "offsets of an older epoch": lambda on: on.add_offsets(on.producer_id, on.epoch - 1),
    "offsets of another producer": lambda on: on.add_offsets(on.producer_id + 999, on.epoch),
    "end of an older epoch": lambda on: on.end(on.producer_id, on.epoch - 1),
    "end of a newer epoch": lambda on: on.end(on.producer_id, on.epoch + 1),
    "end of another producer": lambda on: on.end(on.producer_id + 999, on.epoch),
    "end of an unknown id": lambda on: on.end(1, 0, "unknown"),
    "end of no id": lambda on: on.end(1, 0, ""),
    "transactional commit of an unknown member": lambda on: on.commit_offsets(
        member_id="nobody", generation_id=on.generation
    ),
    "transactional commit of a stale generation": lambda on: on.commit_offsets(
        member_id=on.member_id, generation_id=on.generation - 1
    ),
    "transactional commit of no group": lambda on: on.commit_offsets(group_id=""),
    "write of an older epoch": lambda on: on.write(TOPIC, on.producer_id, on.epoch - 1, 1, is_transactional=True),
    "a sequence number too high": lambda on: on.write("sequences", *on.idempotent, 12),
    "a sequence number long past": lambda on: on.write("sequences", *on.idempotent, 2),
    "an older idempotent epoch": lambda on: on.write("sequences", on.idempotent[0], on.idempotent[1] - 1, 10),
    "marker of an older coordinator": lambda on: on.mark(*on.idempotent, 4),
    "marker of an older producer": lambda on: on.mark(on.producer_id, on.epoch - 1, 6, TOPIC),
    "marker for an unknown topic": lambda on: on.mark(*on.idempotent, 6, topic="unknown"),
    "a pattern that is none": lambda on: on.list_matching("("),
}


@pytest.mark.parametrize("name", CASES)
def test_the_code_is_kafkas_and_nothing_changes(name: str, ours: Harness, theirs: Harness) -> None:
    before = ours.state()
    answers = [CASES[name](harness) for harness in (ours, theirs)]
    assert answers[0] == answers[1]
    assert answers[0] not in (Error.NONE, [Error.NONE, Error.NONE])
    assert ours.state() == before


def test_a_sequence_number_that_was_is_acknowledged_and_not_written(ours: Harness, theirs: Harness) -> None:
    for harness in (ours, theirs):
        before = harness.log_end("sequences")
        assert harness.write("sequences", *harness.idempotent, 9) == Error.NONE
        assert harness.log_end("sequences") == before


def test_an_older_epoch_is_fenced_after_the_open_transaction_is_aborted(ours: Harness, theirs: Harness) -> None:
    """InitProducerId with a producer id first aborts the open transaction, as it does for a new instance; only then is
    the epoch compared."""
    for harness in (ours, theirs):
        producer_id, epoch = harness.init("aborted")
        producer_id, epoch = harness.init("aborted")
        assert harness.add_partitions(producer_id, epoch, transactional_id="aborted") == Error.NONE
        codes = []
        while not codes or codes[-1] == Error.CONCURRENT_TRANSACTIONS:
            codes.append(harness.init_answer("aborted", producer_id=producer_id, producer_epoch=epoch - 1).error_code)
        assert codes[0] == Error.CONCURRENT_TRANSACTIONS
        assert codes[-1] == Error.PRODUCER_FENCED
