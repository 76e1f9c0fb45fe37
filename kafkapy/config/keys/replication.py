"""Configuration keys: replicas (acknowledgement, fetching from leaders, throttling)."""

from kafkapy.config.row import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    READ_ONLY,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, at_least

ROWS = (
    key("min.insync.replicas", INT, 1, at_least(1), HIGH, CLUSTER_WIDE, "In-sync replicas that a write with acks=all needs."),
    key(
        "replica.lag.time.max.ms", LONG, 30000, ANY, HIGH, READ_ONLY,
        "Time without catching up after which a follower is removed from the in-sync replicas.",
    ),
    key(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5000, ANY, HIGH, READ_ONLY,
        "Interval at which the high watermarks are written to disk.",
    ),
    key("num.replica.fetchers", INT, 1, at_least(1), HIGH, CLUSTER_WIDE, "Connections to each leader for replication, over which its partitions are divided."),
    key(
        "num.replica.alter.log.dirs.threads", INT, None, ANY, HIGH, READ_ONLY,
        "Number of threads that move replicas between log directories; unset means one per directory.",
    ),
    key(
        "replica.fetch.backoff.ms", INT, 1000, at_least(0), MEDIUM, READ_ONLY,
        "Pause after a failed fetch from a leader; shorter at first after errors that an election causes.",
    ),
    key(
        "replica.fetch.max.bytes", INT, 1048576, at_least(0), MEDIUM, READ_ONLY,
        "Largest number of bytes that a follower requests of one partition.",
    ),
    key("replica.fetch.min.bytes", INT, 1, ANY, HIGH, READ_ONLY, "Number of bytes that a follower waits for."),
    key(
        "replica.fetch.response.max.bytes", INT, 10485760, at_least(0), MEDIUM, READ_ONLY,
        "Largest number of bytes that a follower requests in one fetch.",
    ),
    key(
        "replica.fetch.wait.max.ms", INT, 500, ANY, HIGH, READ_ONLY,
        "Time that a follower's fetch may wait at the leader.",
    ),
    inert(
        "replica.socket.receive.buffer.bytes", INT, 65536, ANY, HIGH, READ_ONLY,
        "SO_RCVBUF of a follower's connection.",
    ),
    key("replica.socket.timeout.ms", INT, 30000, ANY, HIGH, READ_ONLY, "Timeout of a follower's requests."),
    key(
        "replica.selector.class", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Class that chooses the replica a consumer reads from.",
    ),
    inert(
        "follower.fetch.last.tiered.offset.enable", BOOLEAN, False, ANY, MEDIUM, CLUSTER_WIDE,
        "Let a follower start at the earliest offset that is not in tiered storage.",
    ),
    key("replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY, "Samples kept for replication quotas."),
    key(
        "replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY,
        "Length of a sample for replication quotas.",
    ),
    key(
        "alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY,
        "Samples kept for the byte rate of moves between directories.",
    ),
    key(
        "alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY,
        "Length of a sample for the byte rate of moves between directories.",
    ),
)

# Set while the broker runs, by kafka-configs or kafka-reassign-partitions; never in its file.
DYNAMIC_ONLY_ROWS = (
    key(
        "leader.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Bytes per second that throttled replicas may read from this leader.",
    ),
    key(
        "follower.replication.throttled.rate", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Bytes per second that throttled replicas of this broker may fetch.",
    ),
    key(
        "replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Bytes per second that may be copied by moves between log directories.",
    ),
)
