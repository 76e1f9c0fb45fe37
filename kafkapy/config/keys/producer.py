"""Configuration keys of clients: those of producers."""

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
        "Bytes up to which records of a partition are put together in one batch.",
    ),
    client_key(
        "bootstrap.servers", LIST, REQUIRED, ANY, HIGH,
        "Addresses (host:port) that the cluster is first found by.",
    ),
    client_key(
        "buffer.memory", LONG, 33554432, at_least(0), HIGH,
        "Bytes of records that may wait to be sent; then sending waits for max.block.ms.",
    ),
    client_key(
        "client.id", STRING, "", ANY, MEDIUM,
        "Name that requests carry, for logs and quotas.",
    ),
    client_key(
        "compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM,
        "Level of gzip; -1 is the library's own.",
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
        "Longest time from sending a record until it is known what became of it, retries included.",
    ),
    client_key(
        "enable.idempotence", BOOLEAN, True, ANY, LOW,
        "Write each record once and in order, whatever has to be sent again.",
    ),
    inert_client_key(
        "enable.metrics.push", BOOLEAN, True, ANY, LOW,
        "Send metrics to the broker if it asks for them.",
    ),
    client_key(
        "interceptor.classes", LIST, "", ANY, LOW,
        "Objects or classes that see each record on its way.",
    ),
    client_key(
        "key.serializer", CLASS, REQUIRED, ANY, HIGH,
        "What makes bytes of keys; without one keys are bytes or text.",
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
        "Requests on their way at once to one broker.",
    ),
    client_key(
        "max.request.size", INT, 1048576, at_least(0), MEDIUM,
        "Largest record, and largest request, in bytes.",
    ),
    inert_client_key(
        "metadata.max.idle.ms", LONG, 300000, at_least(5000), LOW,
        "Time after which a topic that nobody writes to is forgotten.",
    ),
    inert_client_key(
        "partitioner.adaptive.partitioning.enable", BOOLEAN, True, ANY, LOW,
        "Give more records without a key to partitions whose broker is quicker.",
    ),
    inert_client_key(
        "partitioner.availability.timeout.ms", LONG, 0, at_least(0), LOW,
        "Time after which a partition that does not take batches gets no more records without a key; 0 is never.",
    ),
    client_key(
        "partitioner.class", CLASS, None, ANY, MEDIUM,
        "What chooses the partition of a record that names none.",
    ),
    client_key(
        "partitioner.ignore.keys", BOOLEAN, False, ANY, MEDIUM,
        "Choose the partition as if there were no keys.",
    ),
    client_key(
        "receive.buffer.bytes", INT, 32768, at_least(-1), MEDIUM,
        "Size of the socket's receive buffer; -1 is the system's own.",
    ),
    client_key(
        "retries", INT, INT_MAX, between(0, INT_MAX), HIGH,
        "How often a failed request is sent again.",
    ),
    client_key(
        "transaction.timeout.ms", INT, 60000, ANY, LOW,
        "Time after which the coordinator aborts a transaction that does not end.",
    ),
    inert_client_key(
        "transaction.two.phase.commit.enable", BOOLEAN, False, ANY, LOW,
        "Take part in two-phase commits, where transactions never time out.",
    ),
    client_key(
        "transactional.id", STRING, None, NON_EMPTY_STRING, LOW,
        "Name that transactions of one producer are known by over restarts.",
    ),
    client_key(
        "value.serializer", CLASS, REQUIRED, ANY, HIGH,
        "What makes bytes of values; without one values are bytes or text.",
    ),
)
