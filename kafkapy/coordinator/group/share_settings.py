"""The settings of share groups: the broker's settings, and the overrides of single groups (resource type GROUP)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.config.group_config import GROUP_ROWS
from kafkapy.coordinator.group.group_settings import group_setting
from kafkapy.metadata.features import SHARE_VERSION
from kafkapy.metadata.image import GROUP_RESOURCE, MetadataImage


class ShareGroupSettings:
    """The settings of share groups. Only the reactor's thread may use it.

    The configuration is read at each use, because some of it is dynamic. `image` returns the newest metadata.
    """

    def __init__(self, config: BrokerKeys, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self.image = image

    @property
    def is_enabled(self) -> bool:
        """True if share groups are served: the finalized share.version is at least 1."""
        return self.image().features.get(SHARE_VERSION, 0) > 0

    @property
    def max_group_size(self) -> int:
        return int(self._config.group_share_max_size)

    @property
    def max_sessions(self) -> int:
        """The largest number of share sessions that this broker stores at a time."""
        return int(self._config.group_share_max_share_sessions)

    def session_timeout_ms(self, group_id: str) -> int:
        return self._number(group_id, "group.share.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._number(group_id, "group.share.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._number(group_id, "group.share.assignment.interval.ms")

    # -- delivery

    def record_lock_duration_ms(self, group_id: str) -> int:
        return self._number(group_id, "group.share.record.lock.duration.ms")

    def delivery_count_limit(self, group_id: str) -> int:
        return self._number(group_id, "group.share.delivery.count.limit")

    def max_record_locks(self, group_id: str) -> int:
        """The largest number of records of a partition that the group may have in flight."""
        return self._number(group_id, "group.share.partition.max.record.locks")

    def offset_reset(self, group_id: str) -> str:
        """Returns where the group begins to read a partition: latest, earliest, or by_duration:D.

        D is a duration before now in ISO 8601 form.
        """
        return self._text(group_id, "share.auto.offset.reset")

    def reads_committed(self, group_id: str) -> bool:
        """Returns True if the group receives only records of committed transactions and records without a
        transaction."""
        return self._text(group_id, "share.isolation.level").lower() == "read_committed"

    def may_renew(self, group_id: str) -> bool:
        """Returns True if members of the group may extend the time for which a record is locked (KIP-1222)."""
        return self._text(group_id, "share.renew.acknowledge.enable").lower() == "true"

    def _number(self, group_id: str, name: str) -> int:
        return int(group_setting(self._config, self.image(), group_id, name))

    def _text(self, group_id: str, name: str) -> str:
        value = self.image().config(GROUP_RESOURCE, group_id).get(name)
        return str(GROUP_ROWS[name].default) if value is None else value
