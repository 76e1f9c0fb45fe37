"""Sends the markers that end transactions to the brokers that lead the partitions (WriteTxnMarkers)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from kafkapy.coordinator.transaction.transaction_requests import TransactionMarker
from kafkapy.errors import Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkapy.server.broker_requests import BrokerRequests
from kafkapy.types import TopicPartition, by_topic

OnWritten = Callable[[Mapping[TopicPartition, Error]], None]


class _Write(NamedTuple):
    marker: TransactionMarker
    partitions: Collection[TopicPartition]
    on_written: OnWritten


class RemoteMarkers:
    """Sends markers to the brokers that lead the partitions. Only the reactor's thread may use it.

    Each broker has at most one request in flight; markers that are written before its response are sent together in the
    next request. A request has at most one marker of a producer, because the response identifies a marker by its
    producer.
    """

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._unsent: dict[int, list[_Write]] = {}
        self._in_flight: set[int] = set()  # brokers

    def write(
        self, broker_id: int, marker: TransactionMarker, partitions: Collection[TopicPartition], on_written: OnWritten
    ) -> None:
        """Sends a marker to the broker for these partitions; calls `on_written` once, with the error of each partition.

        UNKNOWN_TOPIC_OR_PARTITION in the response becomes NOT_LEADER_OR_FOLLOWER, because this broker's metadata
        decides whether the partition exists.
        """
        self._unsent.setdefault(broker_id, []).append(_Write(marker, partitions, on_written))
        self._send(broker_id)

    def _send(self, broker_id: int) -> None:
        if broker_id in self._in_flight or broker_id not in self._unsent:
            return
        writes: dict[int, _Write] = {}  # by producer
        left: list[_Write] = []
        for write in self._unsent.pop(broker_id):
            if write.marker.producer_id in writes:
                left.append(write)
            else:
                writes[write.marker.producer_id] = write
        if left:
            self._unsent[broker_id] = left
        self._in_flight.add(broker_id)
        request = WriteTxnMarkersRequest(markers=[_on_wire(write) for write in writes.values()])

        def answered(response: WriteTxnMarkersResponse | None, error: Error) -> None:
            self._in_flight.discard(broker_id)
            found = {} if response is None else dict(_results(response))
            for producer_id, write in writes.items():
                missing = error or Error.UNKNOWN_SERVER_ERROR
                write.on_written({each: found.get((producer_id, each), missing) for each in write.partitions})
            self._send(broker_id)

        self._requests.send(broker_id, request, ApiKey.WRITE_TXN_MARKERS, answered)


def _on_wire(write: _Write) -> WriteTxnMarkersRequest.WritableTxnMarker:
    marker = write.marker
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(write.partitions).items()
        ],
    )


def _results(response: WriteTxnMarkersResponse) -> Iterator[tuple[tuple[int, TopicPartition], Error]]:
    """Yields ((producer id, partition), error) of each partition in the response."""
    for marker in response.markers:
        for topic in marker.topics:
            for each in topic.partitions:
                error = Error.of(each.error_code)
                if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                    error = Error.NOT_LEADER_OR_FOLLOWER
                yield (marker.producer_id, TopicPartition(topic.name, each.partition_index)), error
