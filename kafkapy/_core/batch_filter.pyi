from collections.abc import Iterable

from typing_extensions import Buffer

from kafkapy._core.log_state import SegmentState
from kafkapy._core.offset_map import OffsetMap

DONE: int
SPECIAL: int
CORRUPT: int
FULL: int

class MalformedRecords(ValueError): ...

def collect_keys(
    offsets: OffsetMap, chunk: Buffer, position: int, end: int, start_offset: int, end_offset: int
) -> tuple[int, int]: ...
def collect_batch(
    offsets: OffsetMap, chunk: Buffer, position: int, records: Buffer, start_offset: int
) -> bool: ...

class BatchFilter:
    def __init__(
        self,
        offsets: OffsetMap,
        *,
        now_ms: int,
        delete_retention_ms: int,
        round_end: int,
        last_data_offsets: Iterable[tuple[int, int]] = (),
    ) -> None: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def delete_retention_ms(self) -> int: ...
    @property
    def round_end(self) -> int: ...
    @property
    def output_length(self) -> int: ...
    @property
    def records_read(self) -> int: ...
    @property
    def records_kept(self) -> int: ...
    @property
    def keyless_records(self) -> int: ...
    def filter_plain(self, chunk: Buffer, position: int, end: int) -> tuple[int, int]: ...
    def filter_batch(
        self,
        chunk: Buffer,
        position: int,
        records: Buffer,
        *,
        discard: bool,
        keep_empty: bool,
        begin_horizon: bool,
    ) -> None: ...
    def keeps_empty(self, chunk: Buffer, position: int) -> bool: ...
    def retains_old(self, offset: int, key: bytes | None, has_value: bool, keeps_tombstones: bool) -> bool: ...
    def put(self, batch: bytes) -> None: ...
    def take_output(self) -> bytes: ...
    def write_to(self, segment: SegmentState, index_interval_bytes: int) -> int: ...
