"""The settings of consumer groups: the broker's settings, and the overrides of single groups (resource type GROUP)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.config.broker_keys import BrokerKeys
from kafkapy.config.table import BROKER_ROWS
from kafkapy.config.value import default_value
from kafkapy.coordinator.group.group_settings import group_setting
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage

GROUP_VERSION = "group.version"


class _Defaults(BrokerKeys):
    def __init__(self) -> None:
        self._values = {name: default_value(row) for name, row in BROKER_ROWS.items()}


class ConsumerGroupSettings:
    """The settings of consumer groups. Only the reactor's thread may use it.

    The broker's configuration is read at each use, because some of it is dynamic. `image` returns the newest metadata:
    topics, racks, feature levels and the overrides of groups.
    """

    def __init__(
        self,
        config: BrokerKeys | None = None,
        image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE,
    ) -> None:
        self.config = _Defaults() if config is None else config
        self.image = image

    @property
    def is_enabled(self) -> bool:
        """True if consumer groups are served: group.coordinator.rebalance.protocols contains `consumer`, and the
        finalized group.version is at least 1."""
        return self.serves("consumer", GROUP_VERSION)

    @property
    def assignors(self) -> list[str]:
        """The names of the assignors, the default first."""
        return list(self.config.group_consumer_assignors)

    @property
    def max_group_size(self) -> int:
        return int(self.config.group_consumer_max_size)

    @property
    def can_upgrade(self) -> bool:
        """True if a classic group becomes a consumer group when the first member of the consumer protocol joins."""
        return self._policy in ("UPGRADE", "BIDIRECTIONAL")

    @property
    def can_downgrade(self) -> bool:
        """True if a consumer group becomes a classic group when the last member of the consumer protocol leaves."""
        return self._policy in ("DOWNGRADE", "BIDIRECTIONAL")

    @property
    def _policy(self) -> str:
        return str(self.config.group_consumer_migration_policy).upper()

    def session_timeout_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.consumer.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.consumer.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "group.consumer.assignment.interval.ms")

    def _of_group(self, group_id: str, name: str) -> int:
        return int(group_setting(self.config, self.image(), group_id, name))

    # -- groups of every kind

    def serves(self, protocol: str, feature: str) -> bool:
        """Returns True if group.coordinator.rebalance.protocols contains `protocol`, and the finalized level of
        `feature`, such as group.version, is at least 1."""
        is_configured = protocol in self.config.group_coordinator_rebalance_protocols
        return is_configured and self.image().features.get(feature, 0) > 0
