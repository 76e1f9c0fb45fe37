"""The topic configuration that a log reads on every append, as plain attributes."""

from typing import TYPE_CHECKING

from kafkapy._core.broker_state.log_state import LogLimits
from kafkapy.storage.retention import RetentionLimits

if TYPE_CHECKING:
    from kafkapy.config import TopicConfig

LOG_APPEND_TIME = "LogAppendTime"
# compression.type -> codec; "producer" keeps the codec of the client.
CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LEVELS = {1: "compression.gzip.level", 3: "compression.lz4.level", 4: "compression.zstd.level"}
KEEP_CODEC = -1
DECOMPRESSED_FLOOR = 16 << 20
DECOMPRESSED_FACTOR = 64

# The attributes that LogLimits defines, which the gate reads too.
_SHARED_WITH_THE_GATE = (
    "codec",
    "flush_messages",
    "index_interval_bytes",
    "is_compacted",
    "max_message_bytes",
    "segment_bytes",
    "segment_ms",
    "stamps_append_time",
    "timestamp_after_max_ms",
    "timestamp_before_max_ms",
)


class LogConfig(LogLimits):
    """The configuration of a topic's logs. The object does not change, so that all logs with equal configurations share
    it.

    Sizes in bytes, times in milliseconds; a retention limit of -1 means no limit.
    """

    __slots__ = (
        "compression_level",
        "delete_retention_ms",
        "file_delete_delay_ms",
        "flush_ms",
        "max_compaction_lag_ms",
        "min_cleanable_ratio",
        "min_compaction_lag_ms",
        "preallocate",
        "retention",
        "segment_index_bytes",
        "segment_jitter_ms",
    )

    def __init__(self, topic_config: "TopicConfig") -> None:
        policy = topic_config.cleanup_policy
        self.codec = CODECS.get(topic_config.compression_type, KEEP_CODEC)
        self.compression_level: int | None = topic_config[LEVELS[self.codec]] if self.codec in LEVELS else None
        self.segment_bytes = topic_config.segment_bytes
        self.segment_ms = topic_config.segment_ms
        self.segment_jitter_ms: int = topic_config.segment_jitter_ms
        self.segment_index_bytes: int = topic_config.segment_index_bytes
        self.index_interval_bytes = topic_config.index_interval_bytes
        self.retention = RetentionLimits(
            topic_config.retention_ms, topic_config.retention_bytes, delete="delete" in policy
        )
        self.flush_messages = topic_config.flush_messages
        self.flush_ms: int = topic_config.flush_ms
        self.max_message_bytes = topic_config.max_message_bytes
        self.stamps_append_time = topic_config.message_timestamp_type == LOG_APPEND_TIME
        self.timestamp_before_max_ms = topic_config.message_timestamp_before_max_ms
        self.timestamp_after_max_ms = topic_config.message_timestamp_after_max_ms
        self.is_compacted = "compact" in policy
        self.delete_retention_ms: int = topic_config.delete_retention_ms
        self.min_cleanable_ratio: float = topic_config.min_cleanable_dirty_ratio
        self.min_compaction_lag_ms: int = topic_config.min_compaction_lag_ms
        self.max_compaction_lag_ms: int = topic_config.max_compaction_lag_ms
        if self.is_compacted:  # the active segment is never cleaned, so that it must be rolled in time
            self.segment_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        self.file_delete_delay_ms: int = topic_config.file_delete_delay_ms
        self.preallocate: bool = topic_config.preallocate

    @property
    def max_decompressed_bytes(self) -> int:
        """The greatest size in memory of one batch whose records are converted to another format."""
        return max(DECOMPRESSED_FLOOR, self.max_message_bytes * DECOMPRESSED_FACTOR)

    def values(self) -> tuple[object, ...]:
        """Returns all values, by which configurations are compared."""
        return tuple(getattr(self, name) for name in (*self.__slots__, *_SHARED_WITH_THE_GATE))
