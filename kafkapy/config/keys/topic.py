"""Configuration keys: topic configuration."""

from kafkapy.config.row import BOOLEAN, DOUBLE, INT, LIST, LONG, LONG_MAX, MEDIUM, STRING, topic_key
from kafkapy.config.validator import ANY, GZIP_LEVEL, THROTTLED_REPLICAS, at_least, between, list_of, one_of

ROWS = (
    topic_key(
        "cleanup.policy", LIST, "delete", list_of("compact", "delete"), MEDIUM,
        "Cleanup of old segments: delete, compact or both.",
    ),
    topic_key(
        "compression.type", STRING, "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), MEDIUM,
        "Compression of stored batches; producer keeps what the producer chose.",
    ),
    topic_key("compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM, "Level of gzip when the broker compresses."),
    topic_key("compression.lz4.level", INT, 9, between(1, 17), MEDIUM, "Level of lz4 when the broker compresses."),
    topic_key(
        "compression.zstd.level", INT, 3, between(-131072, 22), MEDIUM,
        "Level of zstd when the broker compresses.",
    ),
    topic_key("delete.retention.ms", LONG, 86400000, at_least(0), MEDIUM, "How long the cleaner keeps tombstones."),
    topic_key(
        "file.delete.delay.ms", LONG, 60000, at_least(0), MEDIUM,
        "Time between renaming a file to .deleted and removing it.",
    ),
    topic_key("flush.messages", LONG, LONG_MAX, at_least(1), MEDIUM, "Records after which the log is flushed to disk."),
    topic_key("flush.ms", LONG, LONG_MAX, at_least(0), MEDIUM, "Time after which the log is flushed to disk."),
    topic_key(
        "follower.replication.throttled.replicas", LIST, "", THROTTLED_REPLICAS, MEDIUM,
        "Replicas throttled while they follow, partition:broker, or * for all.",
    ),
    topic_key(
        "index.interval.bytes", INT, 4096, at_least(0), MEDIUM,
        "Bytes of records between two entries of the offset index.",
    ),
    topic_key(
        "leader.replication.throttled.replicas", LIST, "", THROTTLED_REPLICAS, MEDIUM,
        "Replicas throttled while they lead, partition:broker, or * for all.",
    ),
    topic_key(
        "local.retention.bytes", LONG, -2, at_least(-2), MEDIUM,
        "Local size kept when tiered; -2 is the value of retention.bytes.",
    ),
    topic_key(
        "local.retention.ms", LONG, -2, at_least(-2), MEDIUM,
        "Local age kept when tiered; -2 is the value of retention.ms.",
    ),
    topic_key(
        "max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), MEDIUM,
        "Time after which a record must have become eligible for compaction.",
    ),
    topic_key(
        "max.message.bytes", INT, 1048588, at_least(0), MEDIUM,
        "Largest record batch accepted, after compression.",
    ),
    topic_key(
        "message.timestamp.after.max.ms", LONG, 3600000, at_least(0), MEDIUM,
        "Largest time by which a record's timestamp may be in the future.",
    ),
    topic_key(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0), MEDIUM,
        "Largest time by which a record's timestamp may be in the past.",
    ),
    topic_key(
        "message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"), MEDIUM,
        "Timestamp of records: the creation time, or the time of the append.",
    ),
    topic_key(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), MEDIUM,
        "Share of uncleaned bytes from which on the log is cleaned.",
    ),
    topic_key("min.compaction.lag.ms", LONG, 0, at_least(0), MEDIUM, "Shortest time that a record stays uncompacted."),
    topic_key("min.insync.replicas", INT, 1, at_least(1), MEDIUM, "In-sync replicas that acks=all needs."),
    topic_key("preallocate", BOOLEAN, False, ANY, MEDIUM, "Allocate a new segment file at its full size."),
    topic_key("remote.log.copy.disable", BOOLEAN, False, ANY, MEDIUM, "Stop copying segments to tiered storage."),
    topic_key(
        "remote.log.delete.on.disable", BOOLEAN, False, ANY, MEDIUM,
        "Delete remote segments when tiered storage is disabled.",
    ),
    topic_key("remote.storage.enable", BOOLEAN, False, ANY, MEDIUM, "Enable tiered storage for the topic."),
    topic_key(
        "retention.bytes", LONG, -1, ANY, MEDIUM,
        "Size of a partition beyond which its oldest segments are deleted; -1 means no limit.",
    ),
    topic_key(
        "retention.ms", LONG, 604800000, at_least(-1), MEDIUM,
        "Age of a segment's newest record from which on the segment is deleted; -1 means never.",
    ),
    topic_key("segment.bytes", INT, 1073741824, at_least(1048576), MEDIUM, "Largest size of one segment file."),
    topic_key("segment.index.bytes", INT, 10485760, at_least(4), MEDIUM, "Largest size of an index file."),
    topic_key("segment.jitter.ms", LONG, 0, at_least(0), MEDIUM, "Largest random time subtracted from segment.ms, so that segments do not roll all at once."),
    topic_key(
        "segment.ms", LONG, 604800000, at_least(1), MEDIUM,
        "Roll to a new segment after this time, even if the old one is not full.",
    ),
    topic_key(
        "unclean.leader.election.enable", BOOLEAN, False, ANY, MEDIUM,
        "Elect a leader outside the in-sync replicas if none of them is alive; records may be lost.",
    ),
)
