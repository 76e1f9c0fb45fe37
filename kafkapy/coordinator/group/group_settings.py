"""The value of a configuration key for one group: the group's own value or, if it has none, the broker's value."""

from __future__ import annotations

from typing import Any

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.metadata.image import GROUP_RESOURCE, MetadataImage

# The broker's key -> the keys with the lowest and the highest value that a group may have; None means no limit.
_LIMITS: dict[str, tuple[str | None, str | None]] = {
    "group.consumer.session.timeout.ms": (
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    "group.consumer.heartbeat.interval.ms": (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "group.consumer.assignment.interval.ms": (
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    "group.share.session.timeout.ms": ("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
    "group.share.heartbeat.interval.ms": (
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    "group.share.assignment.interval.ms": (
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    "group.share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "group.share.delivery.count.limit": (
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    "group.share.partition.max.record.locks": (
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    "group.streams.session.timeout.ms": (
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    "group.streams.heartbeat.interval.ms": (
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    "group.streams.assignment.interval.ms": (
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    "group.streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}


def group_setting(config: BrokerKeys, image: MetadataImage, group_id: str, broker_name: str) -> Any:
    """Returns the group's own value of a key, limited to the range that the broker's configuration sets, or the
    broker's value if the group has none. `broker_name` is the group's key with the prefix "group."."""
    override = image.config(GROUP_RESOURCE, group_id).get(broker_name.removeprefix("group."))
    if override is None:
        return config[broker_name]
    value = int(override)
    lowest, highest = _LIMITS.get(broker_name, (None, None))
    value = value if lowest is None else max(value, config[lowest])
    return value if highest is None else min(value, config[highest])
