"""Configuration keys: tiered storage."""

from kafkapy.config.row import BOOLEAN, CLUSTER_WIDE, INT, LONG, LONG_MAX, LOW, MEDIUM, READ_ONLY, STRING, inert
from kafkapy.config.validator import ANY, NON_EMPTY_STRING, at_least

ROWS = (
    inert(
        "remote.log.storage.system.enable", BOOLEAN, False, ANY, MEDIUM, READ_ONLY,
        "Enable tiered storage; kafkapy has none and refuses to start.",
    ),
    inert(
        "remote.log.storage.manager.class.name", STRING, None, NON_EMPTY_STRING, MEDIUM, READ_ONLY,
        "Java class that stores segments remotely.",
    ),
    inert(
        "remote.log.storage.manager.class.path", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Class path of the remote storage manager.",
    ),
    inert(
        "remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NON_EMPTY_STRING, MEDIUM, READ_ONLY,
        "Prefix of the keys handed to the remote storage manager.",
    ),
    inert(
        "remote.log.metadata.manager.class.name", STRING, "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", NON_EMPTY_STRING, MEDIUM, READ_ONLY,
        "Java class that keeps the metadata of remote segments.",
    ),
    inert(
        "remote.log.metadata.manager.class.path", STRING, None, ANY, MEDIUM, READ_ONLY,
        "Class path of the remote metadata manager.",
    ),
    inert(
        "remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NON_EMPTY_STRING, MEDIUM, READ_ONLY,
        "Prefix of the keys handed to the remote metadata manager.",
    ),
    inert(
        "remote.log.metadata.manager.listener.name", STRING, None, NON_EMPTY_STRING, MEDIUM, READ_ONLY,
        "Listener that the remote metadata manager connects to.",
    ),
    inert(
        "remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0), LOW, READ_ONLY,
        "Largest custom metadata of a remote segment.",
    ),
    inert(
        "remote.log.index.file.cache.total.size.bytes", LONG, 1073741824, at_least(1), LOW, CLUSTER_WIDE,
        "Disk space for cached indexes of remote segments.",
    ),
    inert(
        "remote.log.manager.thread.pool.size", INT, 2, at_least(1), MEDIUM, READ_ONLY,
        "Older key for the pools that copy and expire remote segments.",
    ),
    inert(
        "remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Threads that copy segments to remote storage.",
    ),
    inert(
        "remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Threads that delete expired remote segments.",
    ),
    inert(
        "remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Threads of followers that read remote metadata.",
    ),
    inert(
        "remote.log.manager.task.interval.ms", LONG, 30000, at_least(1), LOW, READ_ONLY,
        "Interval of the remote log tasks.",
    ),
    inert(
        "remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Rate of copying to remote storage.",
    ),
    inert(
        "remote.log.manager.copy.quota.window.num", INT, 11, at_least(1), MEDIUM, READ_ONLY,
        "Samples kept for the copy quota.",
    ),
    inert(
        "remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM, READ_ONLY,
        "Length of a sample for the copy quota.",
    ),
    inert(
        "remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Rate of reading from remote storage.",
    ),
    inert(
        "remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1), MEDIUM, READ_ONLY,
        "Samples kept for the fetch quota.",
    ),
    inert(
        "remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1), MEDIUM, READ_ONLY,
        "Length of a sample for the fetch quota.",
    ),
    inert(
        "remote.log.reader.threads", INT, 10, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Threads that read remote segments for consumers.",
    ),
    inert(
        "remote.log.reader.max.pending.tasks", INT, 100, at_least(1), MEDIUM, READ_ONLY,
        "Reads of remote segments that may wait.",
    ),
    inert(
        "remote.fetch.max.wait.ms", INT, 500, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Time that a fetch of remote data may wait.",
    ),
    inert(
        "remote.list.offsets.request.timeout.ms", LONG, 30000, at_least(1), MEDIUM, CLUSTER_WIDE,
        "Timeout of looking up offsets in remote segments.",
    ),
    inert(
        "log.local.retention.bytes", LONG, -2, at_least(-2), MEDIUM, CLUSTER_WIDE,
        "Local size kept of a tiered partition; -2 is the value of log.retention.bytes.",
    ),
    inert(
        "log.local.retention.ms", LONG, -2, at_least(-2), MEDIUM, CLUSTER_WIDE,
        "Local age kept of a tiered partition; -2 is the value of log.retention.ms.",
    ),
)
