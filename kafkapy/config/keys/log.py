"""Configuration keys: logs on disk (segments, indexes, flushing, retention, cleaning)."""

from kafkapy.config.row import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    DOUBLE_MAX,
    HIGH,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    STRING,
    key,
)
from kafkapy.config.validator import ANY, GZIP_LEVEL, at_least, between, filled_list_of, list_of, one_of

ROWS = (
    key(
        "log.dir", LIST, "/tmp/kafka-logs", filled_list_of(), HIGH, READ_ONLY,
        "Directory of the logs, used when log.dirs is not set.",
    ),
    key("log.dirs", LIST, None, filled_list_of(), HIGH, READ_ONLY, "Directories of the logs."),
    key(
        "cordoned.log.dirs", LIST, "", list_of(), MEDIUM, PER_BROKER,
        "Directories that get no new partitions; * means all of them.",
    ),
    key(
        "log.dir.failure.timeout.ms", LONG, 30000, at_least(1), LOW, READ_ONLY,
        "Stop the broker if a failed directory could not be reported to the controller within this time.",
    ),
    key(
        "num.recovery.threads.per.data.dir", INT, 2, at_least(1), HIGH, CLUSTER_WIDE,
        "Threads per directory that load logs at start and flush them at stop.",
    ),
    key(
        "log.segment.bytes", INT, 1073741824, at_least(1048576), HIGH, CLUSTER_WIDE,
        "Largest size of one segment file.",
    ),
    key(
        "log.roll.ms", LONG, None, ANY, HIGH, CLUSTER_WIDE,
        "Roll to a new segment after this time, even if the old one is not full.",
    ),
    key("log.roll.hours", INT, 168, at_least(1), HIGH, READ_ONLY, "log.roll.ms in hours, used when that is not set."),
    key(
        "log.roll.jitter.ms", LONG, None, ANY, HIGH, CLUSTER_WIDE,
        "Largest random time subtracted from log.roll.ms, so that segments do not roll all at once.",
    ),
    key(
        "log.roll.jitter.hours", INT, 0, at_least(0), HIGH, READ_ONLY,
        "log.roll.jitter.ms in hours, used when that is not set.",
    ),
    key(
        "log.retention.ms", LONG, None, ANY, HIGH, CLUSTER_WIDE,
        "Age of a segment's newest record from which on the segment is deleted; -1 means never.",
    ),
    key(
        "log.retention.minutes", INT, None, ANY, HIGH, READ_ONLY,
        "log.retention.ms in minutes, used when that is not set.",
    ),
    key(
        "log.retention.hours", INT, 168, ANY, HIGH, READ_ONLY,
        "log.retention.ms in hours, used when the finer keys are not set.",
    ),
    key(
        "log.retention.bytes", LONG, -1, ANY, HIGH, CLUSTER_WIDE,
        "Size of a partition beyond which its oldest segments are deleted; -1 means no limit.",
    ),
    key(
        "log.retention.check.interval.ms", LONG, 300000, at_least(1), MEDIUM, READ_ONLY,
        "Interval of the check for segments to delete.",
    ),
    key(
        "log.cleanup.policy", LIST, "delete", list_of("compact", "delete"), MEDIUM, CLUSTER_WIDE,
        "Cleanup of old segments: delete, compact or both.",
    ),
    key(
        "log.index.interval.bytes", INT, 4096, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Bytes of records between two entries of the offset index.",
    ),
    key("log.index.size.max.bytes", INT, 10485760, at_least(4), MEDIUM, CLUSTER_WIDE, "Largest size of an index file."),
    key("log.preallocate", BOOLEAN, False, ANY, MEDIUM, CLUSTER_WIDE, "Allocate a new segment file at its full size."),
    key(
        "log.segment.delete.delay.ms", LONG, 60000, at_least(0), HIGH, CLUSTER_WIDE,
        "Time between renaming a file to .deleted and removing it.",
    ),
    key(
        "log.flush.interval.messages", LONG, LONG_MAX, at_least(1), HIGH, CLUSTER_WIDE,
        "Records after which a partition is flushed to disk.",
    ),
    key(
        "log.flush.interval.ms", LONG, None, ANY, HIGH, CLUSTER_WIDE,
        "Time after which a partition is flushed to disk; unset: the scheduler's interval.",
    ),
    key(
        "log.flush.scheduler.interval.ms", LONG, LONG_MAX, ANY, HIGH, READ_ONLY,
        "Interval of the check for logs to flush.",
    ),
    key(
        "log.flush.offset.checkpoint.interval.ms", INT, 60000, at_least(0), HIGH, READ_ONLY,
        "Interval of writing the recovery points.",
    ),
    key(
        "log.flush.start.offset.checkpoint.interval.ms", INT, 60000, at_least(0), HIGH, READ_ONLY,
        "Interval of writing the log start offsets.",
    ),
    key(
        "log.message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"), MEDIUM, CLUSTER_WIDE,
        "Timestamp of records: the creation time, or the time of the append.",
    ),
    key(
        "log.message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Largest time by which a record's timestamp may be in the past.",
    ),
    key(
        "log.message.timestamp.after.max.ms", LONG, 3600000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Largest time by which a record's timestamp may be in the future.",
    ),
    key(
        "compression.type", STRING, "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), HIGH, CLUSTER_WIDE,
        "Compression of stored batches; producer keeps what the producer chose.",
    ),
    key(
        "compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM, CLUSTER_WIDE,
        "Level of gzip when the broker compresses.",
    ),
    key(
        "compression.lz4.level", INT, 9, between(1, 17), MEDIUM, CLUSTER_WIDE,
        "Level of lz4 when the broker compresses.",
    ),
    key(
        "compression.zstd.level", INT, 3, between(-131072, 22), MEDIUM, CLUSTER_WIDE,
        "Level of zstd when the broker compresses.",
    ),
    key(
        "log.cleaner.enable", BOOLEAN, True, ANY, MEDIUM, READ_ONLY,
        "Run the log cleaner for topics with the policy compact.",
    ),
    key("log.cleaner.threads", INT, 1, at_least(0), MEDIUM, CLUSTER_WIDE, "Threads of the log cleaner."),
    key(
        "log.cleaner.backoff.ms", LONG, 15000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Pause of the log cleaner when there is nothing to clean.",
    ),
    key(
        "log.cleaner.dedupe.buffer.size", LONG, 134217728, ANY, MEDIUM, CLUSTER_WIDE,
        "Memory of all cleaner threads for the map of keys.",
    ),
    key(
        "log.cleaner.io.buffer.size", INT, 524288, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Memory of all cleaner threads for reading and writing.",
    ),
    key(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, ANY, MEDIUM, CLUSTER_WIDE,
        "Load factor of the map of keys.",
    ),
    key(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, DOUBLE_MAX, ANY, MEDIUM, CLUSTER_WIDE,
        "Largest number of bytes that the cleaner reads and writes per second.",
    ),
    key(
        "log.cleaner.delete.retention.ms", LONG, 86400000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Time for which the cleaner retains tombstones.",
    ),
    key(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM, CLUSTER_WIDE,
        "Share of uncleaned bytes from which on a log is cleaned.",
    ),
    key(
        "log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Shortest time that a record stays uncompacted.",
    ),
    key(
        "log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Time after which a record must have become eligible for compaction.",
    ),
    key(
        "producer.id.expiration.ms", INT, 86400000, at_least(1), LOW, CLUSTER_WIDE,
        "Time after which the state of an idle producer in a partition is removed.",
    ),
    key(
        "transaction.partition.verification.enable", BOOLEAN, True, ANY, LOW, CLUSTER_WIDE,
        "Ask the transaction coordinator before a partition takes a transaction's first batch.",
    ),
)
