"""Configuration keys of producers."""

from kafkapy.config.row import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    REQUIRED,
    STRING,
    client_key,
    inert_client_key,
)
from kafkapy.config.validator import ANY, GZIP_LEVEL, NON_EMPTY_STRING, at_least, between, one_of

ROWS = (
    client_key(
        "acks", STRING, "all", one_of("all", "-1", "0", "1"), LOW,
        "Acknowledgements that a write waits for: all in-sync replicas, the leader (1), or none (0).",
    ),
    client_key(
        "batch.size", INT, 16384, at_least(0), MEDIUM,
        "Largest size of a batch of records for one partition.",
    ),
    client_key(
        "bootstrap.servers", LIST, REQUIRED, ANY, HIGH,
        "Addresses (host:port) of the first connections to the cluster.",
    ),
    client_key(
        "buffer.memory", LONG, 33554432, at_least(0), HIGH,
        "Bytes of records that may wait to be sent; beyond them, sending waits for at most max.block.ms.",
    ),
    client_key(
        "client.id", STRING, "", ANY, MEDIUM,
        "Name of this client in its requests, for logs and quotas.",
    ),
    client_key(
        "compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM,
        "Level of gzip; -1 means the library's default.",
    ),
    client_key(
        "compression.lz4.level", INT, 9, between(1, 17), MEDIUM,
        "Level of lz4; 9 is the fast mode.",
    ),
    client_key(
        "compression.type", STRING, "none", one_of("none", "gzip", "snappy", "lz4", "zstd"), HIGH,
        "Codec of the batches.",
    ),
    client_key(
        "compression.zstd.level", INT, 3, between(-131072, 22), MEDIUM,
        "Level of zstd.",
    ),
    client_key(
        "connections.max.idle.ms", LONG, 540000, ANY, MEDIUM,
        "Time after which an idle connection is closed.",
    ),
    client_key(
        "delivery.timeout.ms", INT, 120000, at_least(0), MEDIUM,
        "Longest time from sending a record until it is acknowledged or has failed, including retries.",
    ),
    client_key(
        "enable.idempotence", BOOLEAN, True, ANY, LOW,
        "Write each record once and in order, even if requests are sent again.",
    ),
    client_key(
        "enable.metrics.push", BOOLEAN, True, ANY, LOW,
        "Push metrics to the broker if it requests them.",
    ),
    client_key(
        "interceptor.classes", LIST, "", ANY, LOW,
        "Objects or classes that are called with each record.",
    ),
    client_key(
        "key.serializer", CLASS, REQUIRED, ANY, HIGH,
        "Serializer of keys; without one keys are bytes or text.",
    ),
    client_key(
        "linger.ms", LONG, 5, at_least(0), MEDIUM,
        "Longest time that a record waits for others to share its batch.",
    ),
    client_key(
        "max.block.ms", LONG, 60000, at_least(0), MEDIUM,
        "Longest time that sending waits for metadata and for memory.",
    ),
    client_key(
        "max.in.flight.requests.per.connection", INT, 5, at_least(1), LOW,
        "Requests to one broker that may wait for their response at the same time.",
    ),
    client_key(
        "max.request.size", INT, 1048576, at_least(0), MEDIUM,
        "Largest record, and largest request, in bytes.",
    ),
    client_key(
        "metadata.max.idle.ms", LONG, 300000, at_least(5000), LOW,
        "Time after which the metadata of a topic without writes is dropped.",
    ),
    inert_client_key(
        "partitioner.adaptive.partitioning.enable", BOOLEAN, True, ANY, LOW,
        "Prefer partitions of faster brokers for records without a key.",
    ),
    inert_client_key(
        "partitioner.availability.timeout.ms", LONG, 0, at_least(0), LOW,
        "Time after which a partition that does not take batches gets no more records without a key; 0 means never.",
    ),
    client_key(
        "partitioner.class", CLASS, None, ANY, MEDIUM,
        "Partitioner of records that name no partition.",
    ),
    client_key(
        "partitioner.ignore.keys", BOOLEAN, False, ANY, MEDIUM,
        "Choose partitions without regard to keys.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 32768, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 means the system's default.",
    ),
    client_key(
        "retries", INT, INT_MAX, between(0, INT_MAX), HIGH,
        "Largest number of retries of a failed request.",
    ),
    client_key(
        "transaction.timeout.ms", INT, 60000, ANY, LOW,
        "Time after which the coordinator aborts an open transaction.",
    ),
    inert_client_key(
        "transaction.two.phase.commit.enable", BOOLEAN, False, ANY, LOW,
        "Take part in two-phase commits, in which transactions never time out.",
    ),
    client_key(
        "transactional.id", STRING, None, NON_EMPTY_STRING, LOW,
        "Name of a transactional producer, which stays the same over restarts.",
    ),
    client_key(
        "value.serializer", CLASS, REQUIRED, ANY, HIGH,
        "Serializer of values; without one values are bytes or text.",
    ),
)
