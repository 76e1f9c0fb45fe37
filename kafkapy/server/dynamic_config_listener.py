"""Applies the dynamic configuration of brokers in the metadata to this node (Kafka's DynamicConfigPublisher)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage

logger = logging.getLogger("kafka.server.DynamicBrokerConfig")


class DynamicConfigListener:
    """A listener of the metadata, which keeps the dynamic values of a node's configuration equal to the newest image.

    A node, also a controller, uses the values for all brokers and the values for its own node id. The methods are
    called by one thread at a time.
    """

    def __init__(self, config: BrokerConfig, node_id: int, on_applied: Callable[[], object]) -> None:
        """`on_applied` is called when a request has set keys of brokers, even to the same values."""
        self._config = config
        self._node_id = node_id
        self._on_applied = on_applied

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies the values of the image if the change concerns the configuration of a broker."""
        if any(resource_type == BROKER_RESOURCE for resource_type, _ in delta.changed_configs):
            self.apply(image)

    def apply(self, image: MetadataImage) -> None:
        """Applies the values of the image. A value that the node cannot use is logged, and has no effect."""
        default = image.config(BROKER_RESOURCE, "")
        own = image.config(BROKER_RESOURCE, str(self._node_id))
        changed, complaints = self._config.apply_dynamic(default, own)
        for complaint in complaints:
            logger.error("%s", complaint)
        if changed:
            logger.info("Dynamic configuration changed: %s", ", ".join(sorted(changed)))
        self._on_applied()
