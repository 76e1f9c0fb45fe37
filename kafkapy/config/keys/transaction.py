"""Configuration keys: transaction coordinator."""

from kafkapy.config.row import BOOLEAN, HIGH, INT, LOW, READ_ONLY, SHORT, inert, key
from kafkapy.config.validator import ANY, at_least

ROWS = (
    key(
        "transactional.id.expiration.ms", INT, 604800000, at_least(1), HIGH, READ_ONLY,
        "Forget an idle transactional id after this time.",
    ),
    key(
        "transaction.max.timeout.ms", INT, 900000, at_least(1), HIGH, READ_ONLY,
        "Longest transaction timeout that a producer may ask for.",
    ),
    key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, at_least(1), LOW, READ_ONLY,
        "Interval of the check for timed-out transactions.",
    ),
    key(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3600000, at_least(1), LOW, READ_ONLY,
        "Interval of the check for expired transactional ids.",
    ),
    key(
        "transaction.state.log.load.buffer.size", INT, 5242880, at_least(1), HIGH, READ_ONLY,
        "Bytes read at once when a coordinator loads its partition.",
    ),
    key(
        "transaction.state.log.min.isr", INT, 2, at_least(1), HIGH, READ_ONLY,
        "min.insync.replicas of the transaction topic.",
    ),
    key(
        "transaction.state.log.num.partitions", INT, 50, at_least(1), HIGH, READ_ONLY,
        "Partitions of the transaction topic; not to be changed later.",
    ),
    key(
        "transaction.state.log.replication.factor", SHORT, 3, at_least(1), HIGH, READ_ONLY,
        "Replicas of the transaction topic.",
    ),
    key(
        "transaction.state.log.segment.bytes", INT, 104857600, at_least(1), HIGH, READ_ONLY,
        "Segment size of the transaction topic.",
    ),
    inert(
        "transaction.two.phase.commit.enable", BOOLEAN, False, ANY, LOW, READ_ONLY,
        "Allow producers to take part in an external two-phase commit.",
    ),
    key(
        "add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), HIGH, READ_ONLY,
        "First pause before the verification of a transaction's partition is repeated.",
    ),
    key(
        "add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), HIGH, READ_ONLY,
        "Longest pause before the verification of a transaction's partition is repeated.",
    ),
)
