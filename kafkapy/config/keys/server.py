"""Configuration keys: broker identity, topic defaults, request handling."""

from kafkapy.config.row import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    READ_ONLY,
    REQUIRED,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, at_least, filled_list_of, list_of

ROWS = (
    key(
        "node.id", INT, REQUIRED, at_least(0), HIGH, READ_ONLY,
        "Id of this node; recorded in meta.properties and in every replica list.",
    ),
    key("broker.id", INT, -1, ANY, HIGH, READ_ONLY, "Older name of node.id; if both are given they must agree."),
    key(
        "process.roles", LIST, REQUIRED, filled_list_of("broker", "controller"), HIGH, READ_ONLY,
        "Roles of this process: broker, controller, or both.",
    ),
    key(
        "broker.rack", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Rack of this broker, for placement across racks and for clients that fetch from the closest replica.",
    ),
    key(
        "auto.create.topics.enable", BOOLEAN, True, ANY, HIGH, READ_ONLY,
        "Create a topic that a client asks metadata for or produces to, with the defaults of the broker.",
    ),
    key("delete.topic.enable", BOOLEAN, True, ANY, HIGH, READ_ONLY, "Allow DeleteTopics."),
    key("num.partitions", INT, 1, at_least(1), MEDIUM, READ_ONLY, "Partitions of a topic created without a count."),
    key(
        "default.replication.factor", INT, 1, ANY, MEDIUM, READ_ONLY,
        "Replicas of a topic created without a replication factor.",
    ),
    key(
        "create.topic.policy.class.name", CLASS, None, ANY, LOW, READ_ONLY,
        "Python class that may refuse new topics (docs/policies.md); Java classes are refused at start.",
    ),
    key(
        "alter.config.policy.class.name", CLASS, None, ANY, LOW, READ_ONLY,
        "Python class that may refuse changes of configuration (docs/policies.md); Java classes are refused at start.",
    ),
    key(
        "num.io.threads", INT, 8, at_least(1), HIGH, CLUSTER_WIDE,
        "Threads of the handler pool, for requests that may block.",
    ),
    inert(
        "background.threads", INT, 10, at_least(1), HIGH, CLUSTER_WIDE,
        "Threads for background work; kafkapy's background tasks share one thread.",
    ),
    key(
        "request.timeout.ms", INT, 30000, ANY, HIGH, READ_ONLY,
        "How long the transaction coordinator waits for the append of a marker or of a change of a transaction.",
    ),
    key(
        "queued.max.requests", INT, 500, at_least(1), HIGH, READ_ONLY,
        "Requests that may wait for the handler pool before connections are muted.",
    ),
    key(
        "queued.max.request.bytes", LONG, -1, ANY, MEDIUM, READ_ONLY,
        "Bytes of requests that may wait before connections are muted; -1 is no limit.",
    ),
    key(
        "message.max.bytes", INT, 1048588, at_least(0), HIGH, CLUSTER_WIDE,
        "Largest record batch accepted, after compression; topics override it with max.message.bytes.",
    ),
    key(
        "fetch.max.bytes", INT, 57671680, at_least(1024), MEDIUM, READ_ONLY,
        "Largest number of bytes in the response to a fetch, whatever the client requests.",
    ),
    key(
        "max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), MEDIUM, READ_ONLY,
        "Largest number of incremental fetch sessions (KIP-227).",
    ),
    key(
        "max.request.partition.size.limit", INT, 2000, at_least(1), MEDIUM, READ_ONLY,
        "Largest number of partitions in a response to DescribeTopicPartitions.",
    ),
    inert(
        "delete.records.purgatory.purge.interval.requests", INT, 1, ANY, MEDIUM, READ_ONLY,
        "Completed delayed deletions kept before they are purged.",
    ),
    inert(
        "fetch.purgatory.purge.interval.requests", INT, 1000, ANY, MEDIUM, READ_ONLY,
        "Completed delayed fetches kept before they are purged.",
    ),
    inert(
        "producer.purgatory.purge.interval.requests", INT, 1000, ANY, MEDIUM, READ_ONLY,
        "Completed delayed produces kept before they are purged.",
    ),
    key("controlled.shutdown.enable", BOOLEAN, True, ANY, MEDIUM, READ_ONLY, "Hand over leadership before stopping."),
    key(
        "auto.leader.rebalance.enable", BOOLEAN, True, ANY, HIGH, READ_ONLY,
        "Move leadership back to preferred replicas in the background.",
    ),
    key(
        "leader.imbalance.check.interval.seconds", LONG, 300, at_least(1), HIGH, READ_ONLY,
        "Interval of the check for leaders away from their preferred replica.",
    ),
    key(
        "unclean.leader.election.enable", BOOLEAN, False, ANY, HIGH, CLUSTER_WIDE,
        "Elect a leader outside the in-sync replicas if none of them is alive; records may be lost.",
    ),
    inert(
        "config.providers", LIST, "", list_of(), LOW, CLUSTER_WIDE,
        "Names of providers that resolve variables in configuration values.",
    ),
    key(
        "telemetry.max.bytes", INT, 1048576, at_least(1), LOW, READ_ONLY,
        "Largest client telemetry push accepted, compressed.",
    ),
    inert(
        "socket.connection.setup.timeout.ms", LONG, 10000, ANY, MEDIUM, READ_ONLY,
        "Time to set up an outbound connection before it counts as failed.",
    ),
    inert(
        "socket.connection.setup.timeout.max.ms", LONG, 30000, ANY, MEDIUM, READ_ONLY,
        "Upper limit of the setup time after repeated failures.",
    ),
)
