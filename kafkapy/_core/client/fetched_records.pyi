from collections.abc import Iterable
from typing import Any, TypeVar

from typing_extensions import Buffer

from kafkapy._core.bytes.arrow_batch import ArrowBatch

_View = TypeVar("_View", bound="RecordView")

class ConsumerRecord:
    topic: str
    partition: int
    leader_epoch: int
    offset: int
    timestamp: int
    timestamp_type: int
    delivery_count: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    def with_content(self, key: Any, value: Any) -> ConsumerRecord: ...

class RecordView:
    _record: Any
    _error: Any
    _latency: Any
    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def error(self) -> Any: ...

def record_view(view: type[_View], record: ConsumerRecord) -> _View: ...
def record_views(view: type[_View], records: list[Any], last_offsets: dict[str, dict[int, int]]) -> list[_View]: ...

class AcquiredOffsets:
    gaps: list[tuple[int, int]]
    def __init__(self, ranges: Iterable[tuple[int, int, int]]) -> None: ...
    @property
    def first_offset(self) -> int | None: ...
    def skip_rest(self) -> list[tuple[int, int]]: ...

class FetchedRecords:
    topic: str
    partition: int
    next_offset: int
    until_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    leader_epoch: int
    is_exhausted: bool
    end_offset: int
    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        fetch_offset: int,
        *,
        until_offset: int | None = None,
        aborted: Iterable[tuple[int, int]] = (),
        read_committed: bool = False,
        check_crcs: bool = True,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def take(self, limit: int) -> list[ConsumerRecord]: ...
    def take_acquired(self, limit: int, acquired: AcquiredOffsets) -> list[ConsumerRecord]: ...
    def skip_batch(self, acquired: AcquiredOffsets) -> list[tuple[int, int]]: ...
    def fill(self, batch: ArrowBatch) -> int: ...
