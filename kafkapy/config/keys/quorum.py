"""Configuration keys: the metadata log and its controller."""

from kafkapy.config.controller_addresses import BOOTSTRAP_SERVER_LIST, VOTER_LIST
from kafkapy.config.row import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, READ_ONLY, STRING, inert, key
from kafkapy.config.validator import ANY, at_least

ROWS = (
    key(
        "controller.quorum.voters", LIST, "", VOTER_LIST, HIGH, READ_ONLY,
        "Voters of a static quorum, id@host:port.",
    ),
    key(
        "controller.quorum.bootstrap.servers", LIST, "", BOOTSTRAP_SERVER_LIST, HIGH, READ_ONLY,
        "Addresses of controllers of a dynamic quorum.",
    ),
    inert(
        "controller.quorum.append.linger.ms", INT, 25, at_least(0), MEDIUM, READ_ONLY,
        "Time that the controller gathers records before it writes them.",
    ),
    key(
        "controller.quorum.auto.join.enable", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Let a controller add itself to the voters.",
    ),
    key(
        "controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0), HIGH, READ_ONLY,
        "Upper limit of the pause between elections.",
    ),
    key(
        "controller.quorum.election.timeout.ms", INT, 1000, at_least(0), HIGH, READ_ONLY,
        "Time without votes after which a candidate tries again.",
    ),
    key(
        "controller.quorum.fetch.max.bytes", INT, 1048576, at_least(1), LOW, READ_ONLY,
        "Bytes of one fetch of the metadata log.",
    ),
    key(
        "controller.quorum.fetch.snapshot.max.bytes", INT, 1048576, at_least(1), LOW, READ_ONLY,
        "Bytes of one fetch of a metadata snapshot.",
    ),
    key(
        "controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0), HIGH, READ_ONLY,
        "Time without a successful fetch after which a voter becomes a candidate.",
    ),
    key(
        "controller.quorum.request.timeout.ms", INT, 2000, at_least(0), MEDIUM, READ_ONLY,
        "Timeout of requests in the quorum.",
    ),
    key(
        "controller.quorum.retry.backoff.ms", INT, 20, at_least(0), LOW, READ_ONLY,
        "Pause before a request in the quorum is tried again.",
    ),
    key(
        "controller.quota.window.num", INT, 11, at_least(1), LOW, READ_ONLY,
        "Samples kept for the quota of controller mutations.",
    ),
    key(
        "controller.quota.window.size.seconds", INT, 1, at_least(1), LOW, READ_ONLY,
        "Length of a sample for the quota of controller mutations.",
    ),
    key(
        "controller.socket.timeout.ms", INT, 30000, ANY, MEDIUM, READ_ONLY,
        "Timeout of requests between controller and brokers.",
    ),
    key(
        "broker.heartbeat.interval.ms", INT, 2000, ANY, MEDIUM, READ_ONLY,
        "Interval of a broker's heartbeats to the controller.",
    ),
    key(
        "broker.session.timeout.ms", INT, 9000, ANY, MEDIUM, READ_ONLY,
        "Fence a broker that has not sent a heartbeat for this long.",
    ),
    key(
        "initial.broker.registration.timeout.ms", INT, 60000, ANY, MEDIUM, READ_ONLY,
        "Time within which the broker has to register; otherwise it stops.",
    ),
    key(
        "metadata.log.dir", STRING, None, ANY, HIGH, READ_ONLY,
        "Directory of the metadata log; unset: the first of log.dirs.",
    ),
    key(
        "metadata.log.segment.bytes", INT, 1073741824, at_least(8388608), HIGH, READ_ONLY,
        "Largest size of a segment of the metadata log.",
    ),
    inert("metadata.log.segment.ms", LONG, 604800000, ANY, HIGH, READ_ONLY, "Roll the metadata log after this time."),
    key(
        "metadata.log.max.record.bytes.between.snapshots", LONG, 20971520, at_least(1), HIGH, READ_ONLY,
        "Bytes of metadata records after which a snapshot is written.",
    ),
    key(
        "metadata.log.max.snapshot.interval.ms", LONG, 3600000, at_least(0), HIGH, READ_ONLY,
        "Time after which a snapshot is written; 0 means never.",
    ),
    inert(
        "metadata.max.idle.interval.ms", INT, 500, at_least(0), LOW, READ_ONLY,
        "Interval of no-op records on an idle metadata log; kafkapy needs none and writes none.",
    ),
    key(
        "metadata.max.retention.bytes", LONG, 104857600, ANY, HIGH, READ_ONLY,
        "Size of metadata log and snapshots from which on old ones are deleted.",
    ),
    key(
        "metadata.max.retention.ms", LONG, 604800000, ANY, HIGH, READ_ONLY,
        "Age from which on old metadata segments and snapshots are deleted.",
    ),
)
