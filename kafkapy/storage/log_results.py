"""The results of a log's methods: of an append, of a read, and of the search for an offset or a timestamp."""

from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.named_tuple import NamedTuple

UNKNOWN_POSITION = -1


class LogOffsetMetadata(NamedTuple):
    """An offset and the position of its batch: the segment's base offset, and the position in that segment's file in
    bytes. Both are -1 if unknown."""

    offset: int
    segment_base_offset: int = UNKNOWN_POSITION
    position: int = UNKNOWN_POSITION


class AppendInfo:
    """The result of an append. The last offset is inclusive; times are in ms, -1 for none.

    If `duplicate` is True, nothing was written, and the offsets are those of the same batch in an earlier append.
    """

    __slots__ = (
        "duplicate",
        "first_offset",
        "last_offset",
        "log_append_time",
        "log_start_offset",
        "max_timestamp",
        "record_count",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        max_timestamp: int,
        record_count: int,
        duplicate: bool = False,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.max_timestamp = max_timestamp
        self.record_count = record_count
        self.duplicate = duplicate

    def __repr__(self) -> str:
        return f"AppendInfo({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


class FetchData(NamedTuple):
    """The result of a read. `records` may end with an incomplete batch, as in Kafka.

    A FileRange in `records` keeps the segment's file readable after the segment is closed or deleted.

    `first_entry_incomplete` is True if the first batch is larger than max_bytes, and min_one_message was False.
    """

    records: FileRange | bytes
    offset_metadata: LogOffsetMetadata
    first_entry_incomplete: bool = False


class TimestampAndOffset(NamedTuple):
    """The timestamp (ms) and offset of the record that was found, and the leader epoch of its batch. The leader epoch
    is -1 if the batch has an old format, which stores no leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int
