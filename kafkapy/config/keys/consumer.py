"""Configuration keys of clients: those of consumers."""

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
    inert_client_key,
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
        "Let the broker create topics that are asked for, if it does so.",
    ),
    client_key(
        "auto.commit.interval.ms", INT, 5000, at_least(0), LOW,
        "Time between two commits of their own accord.",
    ),
    client_key(
        "auto.offset.reset", STRING, "latest", AUTO_OFFSET_RESET, MEDIUM,
        "Where to begin without a committed offset, or with one that the log no longer has.",
    ),
    client_key(
        "bootstrap.servers", LIST, REQUIRED, ANY, HIGH,
        "Addresses (host:port) that the cluster is first found by.",
    ),
    client_key(
        "check.crcs", BOOLEAN, True, ANY, LOW,
        "Check the checksum of what is fetched.",
    ),
    client_key(
        "client.id", STRING, "", ANY, LOW,
        "Name that requests carry, for logs and quotas.",
    ),
    client_key(
        "client.rack", STRING, "", ANY, LOW,
        "Where this client is, so that it may read from a replica near by.",
    ),
    client_key(
        "connections.max.idle.ms", LONG, 540000, ANY, MEDIUM,
        "Time after which an idle connection is closed.",
    ),
    client_key(
        "default.api.timeout.ms", INT, 60000, at_least(0), MEDIUM,
        "Longest time that a call without a timeout of its own takes.",
    ),
    client_key(
        "enable.auto.commit", BOOLEAN, True, ANY, MEDIUM,
        "Commit positions from time to time while polling.",
    ),
    inert_client_key(
        "enable.metrics.push", BOOLEAN, True, ANY, LOW,
        "Send metrics to the broker if it asks for them.",
    ),
    client_key(
        "exclude.internal.topics", BOOLEAN, True, ANY, MEDIUM,
        "Keep internal topics out of subscriptions by pattern.",
    ),
    client_key(
        "fetch.max.bytes", INT, 52428800, at_least(0), MEDIUM,
        "Most bytes in one fetch, unless the first batch is larger.",
    ),
    client_key(
        "fetch.max.wait.ms", INT, 500, at_least(0), LOW,
        "Longest time that the broker waits for fetch.min.bytes.",
    ),
    client_key(
        "fetch.min.bytes", INT, 1, at_least(0), HIGH,
        "Bytes that a fetch waits for.",
    ),
    client_key(
        "group.id", STRING, None, ANY, HIGH,
        "Name of the group that partitions are shared and offsets committed in.",
    ),
    client_key(
        "group.instance.id", STRING, None, NON_EMPTY_STRING, MEDIUM,
        "Name of this member over restarts: a static member.",
    ),
    client_key(
        "group.protocol", STRING, "classic", one_of_ignoring_case("CONSUMER", "CLASSIC"), HIGH,
        "How the group shares partitions: classic, or consumer (KIP-848).",
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
        "Objects or classes that see each record on its way.",
    ),
    client_key(
        "isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), MEDIUM,
        "Whether records of open and aborted transactions are seen.",
    ),
    client_key(
        "key.deserializer", CLASS, REQUIRED, ANY, HIGH,
        "What makes objects of keys; without one they stay bytes.",
    ),
    client_key(
        "max.partition.fetch.bytes", INT, 1048576, at_least(0), HIGH,
        "Most bytes of one partition in a fetch, unless its first batch is larger.",
    ),
    client_key(
        "max.poll.interval.ms", INT, 300000, at_least(1), MEDIUM,
        "Longest time between two polls before the member leaves its group.",
    ),
    client_key(
        "max.poll.records", INT, 500, at_least(1), MEDIUM,
        "Most records that a poll returns.",
    ),
    client_key(
        "partition.assignment.strategy", LIST, "class org.apache.kafka.clients.consumer.RangeAssignor,class org.apache.kafka.clients.consumer.CooperativeStickyAssignor", ANY, MEDIUM,
        "Assignors that this member supports, the preferred one first.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 65536, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 is the system's own.",
    ),
    client_key(
        "session.timeout.ms", INT, 45000, ANY, HIGH,
        "Time without a heartbeat after which a member is taken for gone.",
    ),
    inert_client_key(
        "share.acknowledgement.mode", STRING, "implicit", one_of("implicit", "explicit"), MEDIUM,
        "How records of share groups are acknowledged.",
    ),
    inert_client_key(
        "share.acquire.mode", STRING, "BATCH_OPTIMIZED", one_of_any_case("batch_optimized", "record_limit"), MEDIUM,
        "How records of share groups are acquired.",
    ),
    client_key(
        "value.deserializer", CLASS, REQUIRED, ANY, HIGH,
        "What makes objects of values; without one they stay bytes.",
    ),
)
