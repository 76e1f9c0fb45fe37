"""Configuration keys: share groups and streams groups."""

from kafkapy.config.row import CLUSTER_WIDE, HIGH, INT, INT_MAX, LIST, MEDIUM, READ_ONLY, SHORT, inert, key
from kafkapy.config.validator import ANY, at_least, between, filled_list_of

ROWS = (
    key(
        "group.share.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Shortest time between two assignments of a share group.",
    ),
    key(
        "group.share.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM, READ_ONLY,
        "Lower limit of a share group's assignment interval.",
    ),
    key(
        "group.share.max.assignment.interval.ms", INT, 15000, at_least(0), MEDIUM, READ_ONLY,
        "Upper limit of a share group's assignment interval.",
    ),
    inert("group.share.assignors", LIST, "simple", filled_list_of(), MEDIUM, READ_ONLY, "Assignors of share groups."),
    key(
        "group.share.delivery.count.limit", INT, 5, between(2, 10), MEDIUM, READ_ONLY,
        "Largest number of deliveries of a record; afterwards the record is archived.",
    ),
    key(
        "group.share.min.delivery.count.limit", INT, 2, between(2, 5), MEDIUM, READ_ONLY,
        "Lower limit of a group's delivery count limit.",
    ),
    key(
        "group.share.max.delivery.count.limit", INT, 10, between(5, 25), MEDIUM, READ_ONLY,
        "Upper limit of a group's delivery count limit.",
    ),
    key(
        "group.share.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Heartbeat interval given to members of share groups.",
    ),
    key(
        "group.share.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a share group's heartbeat interval.",
    ),
    key(
        "group.share.max.heartbeat.interval.ms", INT, 15000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a share group's heartbeat interval.",
    ),
    key(
        "group.share.partition.max.record.locks", INT, 2000, between(100, 10000), MEDIUM, READ_ONLY,
        "Largest number of records of a partition that a group may have locked at a time.",
    ),
    key(
        "group.share.min.partition.max.record.locks", INT, 100, between(100, 2000), MEDIUM, READ_ONLY,
        "Lower limit of a group's record locks.",
    ),
    key(
        "group.share.max.partition.max.record.locks", INT, 4000, between(2000, 10000), MEDIUM, READ_ONLY,
        "Upper limit of a group's record locks.",
    ),
    key(
        "group.share.record.lock.duration.ms", INT, 30000, between(1000, 3600000), MEDIUM, READ_ONLY,
        "Time that a record stays locked for its member.",
    ),
    key(
        "group.share.min.record.lock.duration.ms", INT, 15000, between(1000, 30000), MEDIUM, READ_ONLY,
        "Lower limit of a group's lock duration.",
    ),
    key(
        "group.share.max.record.lock.duration.ms", INT, 60000, between(30000, 3600000), MEDIUM, READ_ONLY,
        "Upper limit of a group's lock duration.",
    ),
    key(
        "group.share.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Session timeout of members of share groups.",
    ),
    key(
        "group.share.min.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a share group's session timeout.",
    ),
    key(
        "group.share.max.session.timeout.ms", INT, 60000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a share group's session timeout.",
    ),
    key(
        "group.share.max.share.sessions", INT, 2000, at_least(1), MEDIUM, READ_ONLY,
        "Largest number of share sessions of this broker.",
    ),
    key("group.share.max.size", INT, 200, between(1, 1000), MEDIUM, READ_ONLY, "Largest number of members of a share group."),
    inert(
        "share.coordinator.append.linger.ms", INT, -1, at_least(-1), MEDIUM, READ_ONLY,
        "Time that the share coordinator gathers records before it writes them; -1 adapts.",
    ),
    inert(
        "share.coordinator.cached.buffer.max.bytes", INT, 1048588, at_least(524288), MEDIUM, CLUSTER_WIDE,
        "Largest write buffer that the share coordinator keeps.",
    ),
    key(
        "share.coordinator.load.buffer.size", INT, 5242880, at_least(1), HIGH, READ_ONLY,
        "Bytes read at once when the share coordinator loads its partition.",
    ),
    key(
        "share.coordinator.snapshot.update.records.per.snapshot", INT, 500, between(0, 500), MEDIUM, READ_ONLY,
        "Update records between two snapshots of a share partition.",
    ),
    inert(
        "share.coordinator.state.topic.compression.codec", INT, 0, ANY, HIGH, READ_ONLY,
        "Compression of the share state topic, by codec id.",
    ),
    key(
        "share.coordinator.state.topic.min.isr", SHORT, 2, at_least(1), HIGH, READ_ONLY,
        "min.insync.replicas of the share state topic.",
    ),
    key(
        "share.coordinator.state.topic.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY,
        "Partitions of the share state topic.",
    ),
    key(
        "share.coordinator.state.topic.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY,
        "Replicas of the share state topic.",
    ),
    key(
        "share.coordinator.state.topic.segment.bytes", INT, 104857600, at_least(1), HIGH, READ_ONLY,
        "Segment size of the share state topic.",
    ),
    inert("share.coordinator.threads", INT, 1, at_least(1), MEDIUM, READ_ONLY, "Threads of the share coordinator."),
    key(
        "share.coordinator.write.timeout.ms", INT, 5000, at_least(1), HIGH, READ_ONLY,
        "Time that the share coordinator waits for a write.",
    ),
    inert(
        "share.fetch.purgatory.purge.interval.requests", INT, 1000, ANY, MEDIUM, READ_ONLY,
        "Completed delayed share fetches kept before they are purged.",
    ),
    key(
        "group.streams.assignment.interval.ms", INT, 1000, at_least(0), MEDIUM, CLUSTER_WIDE,
        "Shortest time between two assignments of a streams group.",
    ),
    key(
        "group.streams.min.assignment.interval.ms", INT, 0, at_least(0), MEDIUM, READ_ONLY,
        "Lower limit of a streams group's assignment interval.",
    ),
    key(
        "group.streams.max.assignment.interval.ms", INT, 15000, at_least(0), MEDIUM, READ_ONLY,
        "Upper limit of a streams group's assignment interval.",
    ),
    key(
        "group.streams.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Heartbeat interval given to members of streams groups.",
    ),
    key(
        "group.streams.min.heartbeat.interval.ms", INT, 5000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a streams group's heartbeat interval.",
    ),
    key(
        "group.streams.max.heartbeat.interval.ms", INT, 15000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a streams group's heartbeat interval.",
    ),
    key(
        "group.streams.initial.rebalance.delay.ms", INT, 3000, at_least(0), MEDIUM, READ_ONLY,
        "Time that a new streams group waits for further members.",
    ),
    key(
        "group.streams.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Session timeout of members of streams groups.",
    ),
    key(
        "group.streams.min.session.timeout.ms", INT, 45000, at_least(1), MEDIUM, READ_ONLY,
        "Lower limit of a streams group's session timeout.",
    ),
    key(
        "group.streams.max.session.timeout.ms", INT, 60000, at_least(1), MEDIUM, READ_ONLY,
        "Upper limit of a streams group's session timeout.",
    ),
    key("group.streams.max.size", INT, INT_MAX, at_least(1), MEDIUM, READ_ONLY, "Largest number of members of a streams group."),
    key(
        "group.streams.num.standby.replicas", INT, 0, at_least(0), MEDIUM, READ_ONLY,
        "Standby replicas of each task.",
    ),
    key(
        "group.streams.max.standby.replicas", INT, 2, at_least(0), MEDIUM, READ_ONLY,
        "Upper limit of a group's standby replicas.",
    ),
)
