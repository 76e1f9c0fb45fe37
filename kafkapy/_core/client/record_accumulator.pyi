from collections.abc import Callable, Iterable, Mapping
from typing import Any

class RecordMetadata:
    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

OnDelivery = Callable[[RecordMetadata | None, BaseException | None], object]
Headers = Iterable[tuple[str, Any]] | Mapping[str, Any]

class ProducerBatch:
    accumulator: RecordAccumulator
    queue: PartitionQueue
    created_ms: int
    reserved_bytes: int
    retry_at_ms: int
    sent_ms: int
    attempts: int
    is_done: bool
    assigned_offset: int
    log_append_time: int
    error: BaseException | None
    record_count: int
    largest_record: int
    compression_ratio: float
    def set_producer(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None: ...
    @property
    def has_sequence(self) -> bool: ...
    @property
    def sequence(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def is_part(self) -> bool: ...
    @property
    def size_estimate(self) -> int: ...
    def encode(self) -> bytes | memoryview: ...
    def complete(self, base_offset: int, log_append_time: int) -> None: ...
    def fail(self, error: BaseException) -> None: ...
    def take_callbacks(self) -> Iterable[DeliveryFuture]: ...
    def outcomes(self) -> list[tuple[int, int, BaseException | None]]: ...
    def split(self) -> list[ProducerBatch]: ...

class DeliveryFuture:
    batch: ProducerBatch
    index: int
    key_size: int
    value_size: int
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> RecordMetadata: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def add_done_callback(self, callback: OnDelivery) -> None: ...
    def notify(self) -> None: ...

class PartitionQueue:
    topic: str
    partition: int
    state: Any
    def __init__(self, topic: str, partition: int) -> None: ...
    @property
    def open_since_ms(self) -> int: ...
    @property
    def batch_count(self) -> int: ...
    @property
    def closed_count(self) -> int: ...
    def first(self) -> ProducerBatch | None: ...
    def take(self) -> ProducerBatch | None: ...
    def put_back(self, batch: ProducerBatch) -> None: ...
    def all_batches(self) -> list[ProducerBatch]: ...

class TopicQueues:
    topic: str
    queues: list[PartitionQueue]
    sticky: int
    sticky_bytes: int
    def __init__(self, topic: str, partition_count: int) -> None: ...
    def grow(self, partition_count: int) -> None: ...
    def count(self, future: DeliveryFuture) -> None: ...

class RecordAccumulator:
    memory_limit: int
    memory_used: int
    batch_size: int
    max_record_bytes: int
    takes_plain_records: bool
    topics: dict[str, TopicQueues]
    active: dict[PartitionQueue, None]
    closed_batches: int
    records_appended: int
    def __init__(
        self,
        *,
        memory_limit: int,
        batch_size: int,
        max_record_bytes: int,
        codec: int = 0,
        level: int | None = None,
        ignore_keys: bool = False,
        monotonic_ms: Callable[[], int] | None = None,
    ) -> None: ...
    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture: ...
    def send_many(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> list[DeliveryFuture]: ...
    def partition_of(self, queues: TopicQueues, key: Any) -> int: ...
    def append(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: Any,
        value: Any,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture | None: ...
    def retire(self, queue: PartitionQueue) -> None: ...
    def add_topic(self, topic: str, partition_count: int) -> TopicQueues: ...
