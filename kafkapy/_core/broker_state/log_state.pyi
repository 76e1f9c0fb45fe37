from typing import Any

from kafkapy._core.broker_state.producer_table import ProducerTable
from kafkapy._core.bytes.offset_index import OffsetIndex
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy._core.bytes.time_index import TimeIndex

class DirectoryState:
    is_online: bool

class LogLimits:
    segment_bytes: int
    segment_ms: int
    index_interval_bytes: int
    flush_messages: int
    max_message_bytes: int
    stamps_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    is_compacted: bool
    codec: int

class SegmentState:
    base_offset: int
    size: int
    bytes_since_last_index_entry: int
    created_ms: int
    roll_jitter_ms: int
    is_open_for_append: bool
    is_free_of_aborted: bool
    _first_timestamp: int
    _max_timestamp: int
    _offset_of_max_timestamp: int
    _file: SegmentFile | None
    _offset_index: OffsetIndex | None
    _time_index: TimeIndex | None

class SegmentsState:
    def _set_segments(self, segments: list[Any]) -> None: ...

class ProducersState:
    map_end_offset: int
    may_have_transactions: bool
    @property
    def entries(self) -> ProducerTable: ...
    def set_transactions(self, first_ongoing: int, ended: dict[int, int]) -> None: ...

class EpochsState:
    @property
    def latest_epoch(self) -> int: ...
    def _set_epochs(self, entries: list[tuple[int, int]]) -> None: ...

class LogState:
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    recovery_point: int
