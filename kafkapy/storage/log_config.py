"""The topic configuration values that a log looks at on every append, as plain attributes."""

from typing import TYPE_CHECKING, Any

from kafkapy._core.broker_state.log_state import LogLimits
from kafkapy.storage.retention import RetentionLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_APPEND_TIME = "LogAppendTime"
# compression.type -> codec; "producer" keeps what was sent.
CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LEVELS = {1: "compression.gzip.level", 3: "compression.lz4.level", 4: "compression.zstd.level"}
KEEP_CODEC = -1
DECOMPRESSED_FLOOR = 16 << 20
DECOMPRESSED_FACTOR = 64

# The fields of LogLimits.
_SHARED_WITH_THE_GATE = (
    "codec",
    "flush_messages",
    "index_interval_bytes",
    "is_compacted",
    "max_message_bytes",
    "message_timestamp_type",
    "segment_bytes",
    "segment_ms",
    "timestamp_after_max_ms",
    "timestamp_before_max_ms",
)


class LogConfig(LogLimits):
    """The configuration of a topic's logs; immutable, shared by all logs that have the same one.

    Sizes in bytes, times in milliseconds; -1 in a retention limit means none.
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

    def __init__(self, topic_config: "Mapping[str, Any] | Any") -> None:
        """`topic_config["segment.bytes"]` and so on answer typed values (config.TopicConfig)."""
        policy = topic_config["cleanup.policy"]
        self.codec = CODECS.get(topic_config["compression.type"], KEEP_CODEC)
        self.compression_level: int | None = topic_config[LEVELS[self.codec]] if self.codec in LEVELS else None
        self.segment_bytes = topic_config["segment.bytes"]
        self.segment_ms = topic_config["segment.ms"]
        self.segment_jitter_ms: int = topic_config["segment.jitter.ms"]
        self.segment_index_bytes: int = topic_config["segment.index.bytes"]
        self.index_interval_bytes = topic_config["index.interval.bytes"]
        self.retention = RetentionLimits(
            topic_config["retention.ms"], topic_config["retention.bytes"], delete="delete" in policy
        )
        self.flush_messages = topic_config["flush.messages"]
        self.flush_ms: int = topic_config["flush.ms"]
        self.max_message_bytes = topic_config["max.message.bytes"]
        self.message_timestamp_type = 1 if topic_config["message.timestamp.type"] == LOG_APPEND_TIME else 0
        self.timestamp_before_max_ms = topic_config["message.timestamp.before.max.ms"]
        self.timestamp_after_max_ms = topic_config["message.timestamp.after.max.ms"]
        self.is_compacted = "compact" in policy
        self.delete_retention_ms: int = topic_config["delete.retention.ms"]
        self.min_cleanable_ratio: float = topic_config["min.cleanable.dirty.ratio"]
        self.min_compaction_lag_ms: int = topic_config["min.compaction.lag.ms"]
        self.max_compaction_lag_ms: int = topic_config["max.compaction.lag.ms"]
        if self.is_compacted:  # a segment that is never rolled is never cleaned
            self.segment_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        self.file_delete_delay_ms: int = topic_config["file.delete.delay.ms"]
        self.preallocate: bool = topic_config["preallocate"]

    @property
    def max_decompressed_bytes(self) -> int:
        """What one batch may become in memory, at most, when its records are written anew in another format."""
        return max(DECOMPRESSED_FLOOR, self.max_message_bytes * DECOMPRESSED_FACTOR)

    def values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in (*self.__slots__, *_SHARED_WITH_THE_GATE))
