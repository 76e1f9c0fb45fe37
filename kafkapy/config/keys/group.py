"""Configuration keys: group coordinator (offsets, classic and consumer groups)."""

from kafkapy.config.row import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    MEDIUM,
    READ_ONLY,
    SHORT,
    STRING,
    inert,
    key,
)
from kafkapy.config.validator import ANY, at_least, filled_list_of, one_of_ignoring_case

ROWS = (
    key("offset.metadata.max.bytes", INT, 4096, ANY, HIGH, READ_ONLY, "Largest metadata text of an offset commit."),
    key(
        "offsets.commit.timeout.ms", INT, 5000, at_least(1), HIGH, READ_ONLY,
        "Time that an offset commit may wait for its replicas.",
    ),
    key(
        "offsets.load.buffer.size", INT, 5242880, at_least(1), HIGH, READ_ONLY,
        "Bytes read at once when a coordinator loads its partition.",
    ),
    key(
        "offsets.retention.check.interval.ms", LONG, 600000, at_least(1), HIGH, READ_ONLY,
        "Interval of the check for expired offsets.",
    ),
    key(
        "offsets.retention.minutes", INT, 10080, at_least(1), HIGH, READ_ONLY,
        "Time that offsets are kept after their group became empty.",
    ),
    inert(
        "offsets.topic.compression.codec", INT, 0, ANY, HIGH, READ_ONLY,
        "Compression of the offsets topic, by codec id.",
    ),
    key(
        "offsets.topic.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY,
        "Partitions of the offsets topic; not to be changed later.",
    ),
    key("offsets.topic.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY, "Replicas of the offsets topic."),
    key(
        "offsets.topic.segment.bytes", INT, 104857600, at_least(1), HIGH, READ_ONLY,
        "Segment size of the offsets topic.",
    ),
    key(
        "group.initial.rebalance.delay.ms", INT, 3000, ANY, MEDIUM, READ_ONLY,
        "Time that a new classic group waits for further members before its first rebalance.",
    ),
    key(
        "group.min.session.timeout.ms", INT, 6000, ANY, MEDIUM, READ_ONLY,
        "Shortest session timeout of a classic member.",
    ),
    key(
        "group.max.session.timeout.ms", INT, 1800000, ANY, MEDIUM, READ_ONLY,
        "Longest session timeout of a classic member.",
    ),
    key("group.max.size", INT, INT_MAX, at_least(1), MEDIUM, READ_ONLY, "Largest number of members of a classic group."),
    key(
        "group.coordinator.rebalance.protocols", LIST, "classic,consumer,streams", filled_list_of("consumer", "classic", "share", "streams"), MEDIUM, READ_ONLY,
        "Rebalance protocols that are enabled.",
    ),
    inert(
        "group.coordinator.threads", INT, 4, at_least(1), HIGH, READ_ONLY,
        "Threads that run the group coordinator's events.",
    ),
    inert(
        "group.coordinator.background.threads", INT, 2, at_least(1), HIGH, READ_ONLY,
        "Threads for the group coordinator's long tasks.",
    ),
    inert(
        "group.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM, READ_ONLY,
        "Time that the group coordinator gathers records before it writes them; -1 adapts.",
    ),
    inert(
        "group.coordinator.cached.buffer.max.bytes", INT, 1048588, at_least(524288), MEDIUM, CLUSTER_WIDE,
        "Largest write buffer that the group coordinator keeps.",
    ),
    key(
        "group.consumer.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Shortest time between two assignments of a consumer group.",
    ),
    key(
        "group.consumer.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM, READ_ONLY,
        "Lower limit of a group's assignment interval.",
    ),
    key(
        "group.consumer.max.assignment.interval.ms", INT, 15000, at_least(0), MEDIUM, READ_ONLY,
        "Upper limit of a group's assignment interval.",
    ),
    key(
        "group.consumer.assignors", LIST, "uniform,range", filled_list_of(), MEDIUM, READ_ONLY,
        "Assignors that run on the broker; the first one is the default.",
    ),
    key(
        "group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Heartbeat interval given to members of consumer groups.",
    ),
    key(
        "group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a group's heartbeat interval.",
    ),
    key(
        "group.consumer.max.heartbeat.interval.ms", INT, 15000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a group's heartbeat interval.",
    ),
    key(
        "group.consumer.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Session timeout of members of consumer groups.",
    ),
    key(
        "group.consumer.min.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a group's session timeout.",
    ),
    key(
        "group.consumer.max.session.timeout.ms", INT, 60000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a group's session timeout.",
    ),
    key("group.consumer.max.size", INT, INT_MAX, at_least(1), MEDIUM, READ_ONLY, "Largest number of members of a consumer group."),
    key(
        "group.consumer.migration.policy", STRING, "bidirectional", one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), MEDIUM, READ_ONLY,
        "Which groups may change between the classic and the consumer protocol.",
    ),
)
