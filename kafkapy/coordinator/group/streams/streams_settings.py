"""The settings of streams groups: the broker's settings, and the overrides of single groups (resource type GROUP)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group_settings import group_setting
from kafkapy.metadata.image import MetadataImage

STREAMS_VERSION = "streams.version"
STANDBY_REPLICAS = "num.standby.replicas"


class StreamsGroupSettings:
    """The settings of streams groups. Only the reactor's thread may use it."""

    def __init__(self, settings: ConsumerGroupSettings) -> None:
        self._settings = settings

    @property
    def image(self) -> Callable[[], MetadataImage]:
        return self._settings.image

    @property
    def is_enabled(self) -> bool:
        """True if streams groups are served: group.coordinator.rebalance.protocols contains `streams`, and the
        finalized streams.version is at least 1."""
        return self._settings.serves("streams", STREAMS_VERSION)

    @property
    def max_group_size(self) -> int:
        return int(self._settings.config.group_streams_max_size)

    def session_timeout_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.streams.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.streams.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.streams.assignment.interval.ms")

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.streams.initial.rebalance.delay.ms")

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Returns the settings on which the task assignment of the group depends, by key, in the form in which the
        group-epoch record stores them."""
        return {STANDBY_REPLICAS: str(self._of_group(group_id, "group.streams.num.standby.replicas"))}

    def _of_group(self, group_id: str, name: str) -> int:
        return int(group_setting(self._settings.config, self.image(), group_id, name))
