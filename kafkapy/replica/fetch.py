"""The parameters of a fetch and its results, one object for each partition.

These types have similar names:

    FetchRequest.FetchPartition   a partition in a decoded request (protocol)
    FetchPartition                a partition of a fetch that is served in Python
    FetchPartitionState           its base class in Cython, with the fields that the gate reads
    CachedPartition               a FetchPartition that a fetch session stores
    FetchPlace                    the C struct of the client's position in a partition
    FetchedPartition              the C struct of a partition that the gate reads in one request

The gate is the compiled code that serves usual Produce and Fetch requests without the interpreter lock.
"""

from __future__ import annotations

from enum import IntEnum

from kafkapy._core.broker_state.fetch_session_state import FetchPartitionState
from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.errors import Error
from kafkapy.storage.log_results import LogOffsetMetadata
from kafkapy.storage.transaction_index import AbortedTransaction
from kafkapy.types import ZERO_UUID, OffsetAndEpoch, TopicPartition

CONSUMER_REPLICA_ID = -1
NO_REPLICA = -1
FUTURE_LOCAL_REPLICA_ID = -3

Records = FileRange | bytes


class FetchIsolation(IntEnum):
    """The limit up to which a fetch may read."""

    HIGH_WATERMARK = 0
    LAST_STABLE_OFFSET = 1
    LOG_END_OFFSET = 2

    @classmethod
    def of(cls, replica_id: int, isolation_level: int) -> FetchIsolation:
        """Returns the limit for a fetch.

        The limit is the log end for followers, and for the copy of a log to another directory. For consumers it is the
        last stable offset if `isolation_level` is 1 (read_committed), otherwise the high watermark.
        """
        if replica_id >= 0 or replica_id == FUTURE_LOCAL_REPLICA_ID:
            return cls.LOG_END_OFFSET
        return cls.LAST_STABLE_OFFSET if isolation_level == 1 else cls.HIGH_WATERMARK


class FetchParams:
    """The parameters of a whole fetch request. The object does not change after its construction.

    `is_recorded` is True if compiled code has already recorded the positions of the follower that sent the request.
    `only_leader` is False for consumers that may read from a follower (KIP-392). `client_rack` is the consumer's rack,
    "" if unknown; `listener` is the name of the listener on which the request arrived.
    """

    __slots__ = (
        "client_rack",
        "is_from_follower",
        "is_recorded",
        "isolation",
        "listener",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "only_leader",
        "replica_epoch",
        "replica_id",
    )

    def __init__(
        self,
        *,
        replica_id: int = CONSUMER_REPLICA_ID,
        replica_epoch: int = -1,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int = 0,
        only_leader: bool = True,
        is_recorded: bool = False,
        client_rack: str = "",
        listener: str = "",
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = FetchIsolation.of(replica_id, isolation_level)
        self.is_from_follower = replica_id >= 0
        self.only_leader = only_leader or self.is_from_follower
        self.client_rack = "" if self.is_from_follower else client_rack
        self.listener = listener
        self.is_recorded = is_recorded


class FetchPartition(FetchPartitionState):
    """One partition of a fetch request. Epochs of -1 and a topic id of zero mean "not given".

    `topic` is None while the topic id is not known to this broker.
    """

    __slots__ = ("partition", "topic", "topic_id", "topic_partition")

    def __init__(
        self,
        topic: str | None,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        *,
        topic_id: bytes = ZERO_UUID,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.move(fetch_offset, max_bytes, current_leader_epoch, last_fetched_epoch, log_start_offset)
        self.topic: str | None = None
        self.topic_partition = TopicPartition("", partition)
        if topic is not None:
            self.resolve(topic)

    def resolve(self, topic: str) -> None:
        """Sets the name of the topic, once its id is known."""
        self.topic = topic
        self.topic_partition = TopicPartition(topic, self.partition)


class FetchResult:
    """The result of a fetch for one partition. Offsets are -1 if they are unknown because of an error."""

    __slots__ = (
        "aborted_transactions",
        "diverging_epoch",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        error: Error = Error.NONE,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: Records = b"",
        aborted_transactions: list[AbortedTransaction] | None = None,
        diverging_epoch: OffsetAndEpoch | None = None,
        preferred_read_replica: int = NO_REPLICA,
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted_transactions = aborted_transactions
        self.diverging_epoch = diverging_epoch
        self.preferred_read_replica = preferred_read_replica


class LogRead:
    """The results of reading each partition of a fetch once. `results` has a FetchResult for each partition. `places`
    has the position of the fetch offset in the log for each partition that was read.
    """

    __slots__ = ("bytes_readable", "must_answer", "places", "results")

    def __init__(self) -> None:
        self.results: list[tuple[FetchPartition, FetchResult]] = []
        self.places: list[tuple[FetchPartition, LogOffsetMetadata]] = []
        self.bytes_readable = 0
        # Set by an error or a diverging epoch, which end a wait.
        self.must_answer = False
