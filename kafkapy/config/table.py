"""The configuration table: every row by name, and the broker keys that topic keys default to."""

from __future__ import annotations

from itertools import chain

from kafkapy.config.keys import (
    group,
    internal,
    log,
    metrics,
    network,
    own,
    quorum,
    remote_storage,
    replication,
    sasl,
    security,
    server,
    share_and_streams,
    topic,
    transaction,
)
from kafkapy.config.row import Row

BROKER_MODULES = (
    server,
    network,
    log,
    replication,
    quorum,
    group,
    share_and_streams,
    transaction,
    metrics,
    remote_storage,
    security,
    sasl,
)

BROKER_ROWS: dict[str, Row] = {row.name: row for row in chain.from_iterable(module.ROWS for module in BROKER_MODULES)}
# Keys that Kafka reads but does not describe.
INTERNAL_ROWS: dict[str, Row] = {row.name: row for row in internal.ROWS}
# Keys of kafkapy's own, which DescribeConfigs describes only if they are set.
OWN_ROWS: dict[str, Row] = {row.name: row for row in own.ROWS}
# Every key that a broker's file may hold.
STATIC_ROWS: dict[str, Row] = {**BROKER_ROWS, **INTERNAL_ROWS, **OWN_ROWS}
# Keys that a broker has only while it runs: never in its file.
DYNAMIC_ONLY_ROWS: dict[str, Row] = {row.name: row for row in replication.DYNAMIC_ONLY_ROWS}
TOPIC_ROWS: dict[str, Row] = {row.name: row for row in topic.ROWS}

# Topic key -> the broker keys that supply its default: the value of the first one that is set, multiplied by the
# factor (milliseconds of a minute, of an hour).
_MINUTE = 60_000
_HOUR = 3_600_000
TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE), ("log.retention.hours", _HOUR)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}

_CHAINS = tuple(tuple(name for name, _ in chained) for chained in TOPIC_SYNONYMS.values() if len(chained) > 1)


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Returns the broker keys that set the same value as `name`; an earlier key in the result overrides a later one.

    If `name` has a listener's prefix, the result is `name`, followed by the keys without the prefix.
    """
    if name.startswith("listener.name."):
        _, _, plain = name.removeprefix("listener.name.").partition(".")
        return (name, *broker_synonyms(plain))
    for chained in _CHAINS:
        if name in chained:
            return chained
    return (name,)
