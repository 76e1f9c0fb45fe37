"""The transactional handlers on real coordinators with real logs, which this broker leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.coordinator.producer_id_manager import ProducerIdManager
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.errors import Error
from kafkapy.metadata.internal_topics import TRANSACTION_STATE_TOPIC
from kafkapy.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkapy.protocol.messages.end_txn import EndTxnRequest
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.handlers.produce import handle_produce
from kafkapy.server.handlers.producer_ids import handle_init_producer_id
from kafkapy.server.handlers.transactions import handle_add_partitions_to_txn, handle_end_txn
from kafkapy.server.transaction_markers import LocalMarkerWriter
from kafkapy.server.transaction_verification import TransactionVerification
from tests.harness.group_handler import GroupHandlerHarness
from tests.harness.replica import partition_image

Producer = tuple[int, int]


class TransactionHandlerHarness(GroupHandlerHarness):
    """Owns the topic `t` with two partitions and the transactional id "tx"; `verifies` turns verification on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.verifies = True
        services = self.services
        services.producer_ids = ProducerIdManager(lambda on_block: on_block(ProducerIdsBlock(1000, 1000)))
        services.local_marker_writer = LocalMarkerWriter(self.manager, self.coordinator, self.clock, 5000)
        self.transactions = TransactionCoordinator(
            TransactionConfig.from_broker_config(self.config),
            log=ReplicatedCoordinatorLog(self.manager, 5000),
            schedule=self.scheduler.schedule,
            clock=self.clock,
            producer_ids=services.producer_ids,
            marker_writer=services.local_marker_writer,
            transaction_version=lambda: 2,
            partition_count=lambda: 1,
        )
        services.transaction_coordinator = self.transactions
        services.transaction_verification = TransactionVerification(
            self.transactions,
            self.manager,
            self.scheduler.schedule,
            self.clock,
            lambda: self.verifies,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
        )
        self.put_topic(TRANSACTION_STATE_TOPIC, [partition_image()])
        for led, followed in self.leadership:
            self.transactions.on_leadership(led, followed)
        self.leadership.clear()

    def init(self, version: int = 5, **fields: Any) -> Any:
        request = InitProducerIdRequest(**{"transactional_id": "tx", "transaction_timeout_ms": 60000, **fields})
        return self.send(handle_init_producer_id, request, version).response

    def producer(self) -> Producer:
        found = self.init()
        assert found.error_code == 0
        return found.producer_id, found.producer_epoch

    def add(self, producer: Producer, *partitions: int, version: int = 3, topic: str = "t") -> list[Error]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
            ],
        )
        (found,) = self.send(handle_add_partitions_to_txn, request, version).response.results_by_topic_v3_and_below
        return [Error(each.partition_error_code) for each in found.results_by_partition]

    def end(self, producer: Producer, *, commit: bool, version: int = 5) -> Any:
        request = EndTxnRequest(
            transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        return self.send(handle_end_txn, request, version).response

    def produce(
        self,
        producer: Producer,
        *partitions: int,
        version: int = 12,
        sequence: int = 0,
        transactional_id: str | None = "tx",
        is_transactional: bool = True,
        compression: int = 0,
        value: bytes = b"value",
    ) -> Any:
        """Sends a Produce request; returns the pending answer."""
        data = []
        for index in partitions:
            builder = RecordBatchBuilder(
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=sequence,
                is_transactional=is_transactional,
                compression=compression,
            )
            builder.append(self.clock.wall_ms(), None, value)
            data.append(ProduceRequest.PartitionProduceData(index=index, records=builder.build()))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[topic])
        return self.send(handle_produce, request, version)

    def produced(self, producer: Producer, *partitions: int, **fields: Any) -> list[Error]:
        (topic,) = self.produce(producer, *partitions, **fields).response.responses
        return [Error(each.error_code) for each in topic.partition_responses]
