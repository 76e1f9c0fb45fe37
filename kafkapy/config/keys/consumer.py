"""Configuration keys of consumers."""

from kafkapy.config.row import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    STRING,
    client_key,
)
from kafkapy.config.validator import (
    ANY,
    AUTO_OFFSET_RESET,
    NON_EMPTY_STRING,
    at_least,
    one_of,
    one_of_any_case,
    one_of_ignoring_case,
)

ROWS = (
    client_key(
        "allow.auto.create.topics", BOOLEAN, True, ANY, MEDIUM,
        "Allow the broker to create missing topics when metadata is requested for them.",
    ),
    client_key(
        "auto.commit.interval.ms", INT, 5000, at_least(0), LOW,
        "Time between two automatic commits.",
    ),
    client_key(
        "auto.offset.reset", STRING, "latest", AUTO_OFFSET_RESET, MEDIUM,
        "Position without a committed offset, or with one that the log no longer has.",
    ),
    client_key(
        "bootstrap.servers", LIST, REQUIRED, ANY, HIGH,
        "Addresses (host:port) of the first connections to the cluster.",
    ),
    client_key(
        "check.crcs", BOOLEAN, True, ANY, LOW,
        "Verify the checksums of fetched batches.",
    ),
    client_key(
        "client.id", STRING, "", ANY, LOW,
        "Name of this client in its requests, for logs and quotas.",
    ),
    client_key(
        "client.rack", STRING, "", ANY, LOW,
        "Rack of this client, so that it may read from a near replica.",
    ),
    client_key(
        "connections.max.idle.ms", LONG, 540000, ANY, MEDIUM,
        "Time after which an idle connection is closed.",
    ),
    client_key(
        "default.api.timeout.ms", INT, 60000, at_least(0), MEDIUM,
        "Time-out of calls that have none of their own.",
    ),
    client_key(
        "enable.auto.commit", BOOLEAN, True, ANY, MEDIUM,
        "Commit positions automatically while polling.",
    ),
    client_key(
        "enable.metrics.push", BOOLEAN, True, ANY, LOW,
        "Push metrics to the broker if it requests them.",
    ),
    client_key(
        "exclude.internal.topics", BOOLEAN, True, ANY, MEDIUM,
        "Keep internal topics out of subscriptions by pattern.",
    ),
    client_key(
        "fetch.max.bytes", INT, 52428800, at_least(0), MEDIUM,
        "Largest number of bytes in one fetch, unless the first batch is larger.",
    ),
    client_key(
        "fetch.max.wait.ms", INT, 500, at_least(0), LOW,
        "Longest time that the broker waits for fetch.min.bytes.",
    ),
    client_key(
        "fetch.min.bytes", INT, 1, at_least(0), HIGH,
        "Bytes that the broker collects before it responds to a fetch.",
    ),
    client_key(
        "group.id", STRING, None, ANY, HIGH,
        "Name of the consumer group, which shares partitions and commits offsets.",
    ),
    client_key(
        "group.instance.id", STRING, None, NON_EMPTY_STRING, MEDIUM,
        "Name that makes this consumer a static member, which keeps its partitions over restarts.",
    ),
    client_key(
        "group.protocol", STRING, "classic", one_of_ignoring_case("CONSUMER", "CLASSIC"), HIGH,
        "Protocol of the group: classic, or consumer (KIP-848).",
    ),
    client_key(
        "group.remote.assignor", STRING, None, ANY, MEDIUM,
        "Name of the broker's assignor for the consumer protocol.",
    ),
    client_key(
        "heartbeat.interval.ms", INT, 3000, ANY, HIGH,
        "Time between two heartbeats to the group's coordinator.",
    ),
    client_key(
        "interceptor.classes", LIST, "", ANY, LOW,
        "Objects or classes that are called with each record.",
    ),
    client_key(
        "isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), MEDIUM,
        "Visibility of records of open and aborted transactions.",
    ),
    client_key(
        "key.deserializer", CLASS, REQUIRED, ANY, HIGH,
        "Deserializer of keys; without one they stay bytes.",
    ),
    client_key(
        "max.partition.fetch.bytes", INT, 1048576, at_least(0), HIGH,
        "Largest number of bytes of one partition in a fetch, unless its first batch is larger.",
    ),
    client_key(
        "max.poll.interval.ms", INT, 300000, at_least(1), MEDIUM,
        "Longest time between two polls before the member leaves its group.",
    ),
    client_key(
        "max.poll.records", INT, 500, at_least(1), MEDIUM,
        "Largest number of records that a poll returns.",
    ),
    client_key(
        "partition.assignment.strategy", LIST, "class org.apache.kafka.clients.consumer.RangeAssignor,class org.apache.kafka.clients.consumer.CooperativeStickyAssignor", ANY, MEDIUM,
        "Assignors that this member supports, the preferred one first.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 65536, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 means the system's default.",
    ),
    client_key(
        "session.timeout.ms", INT, 45000, ANY, HIGH,
        "Time without a heartbeat after which the member is removed from its group.",
    ),
    client_key(
        "share.acknowledgement.mode", STRING, "implicit", one_of("implicit", "explicit"), MEDIUM,
        "Acknowledgement of the records of share groups: implicit or explicit.",
    ),
    client_key(
        "share.acquire.mode", STRING, "BATCH_OPTIMIZED", one_of_any_case("batch_optimized", "record_limit"), MEDIUM,
        "Acquisition of the records of share groups: whole batches, or at most max.poll.records records.",
    ),
    client_key(
        "value.deserializer", CLASS, REQUIRED, ANY, HIGH,
        "Deserializer of values; without one they stay bytes.",
    ),
)
