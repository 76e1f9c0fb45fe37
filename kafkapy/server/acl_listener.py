"""Passes the ACLs of the metadata to the authorizer (Kafka's AclPublisher)."""

from __future__ import annotations

import logging

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.security.standard_authorizer import StandardAuthorizer

logger = logging.getLogger("kafka.metadata.publisher.AclPublisher")


class AclListener:
    """Passes the ACLs of each new metadata image to an authorizer.

    The controller loop (`ControllerLoop`), which replays the committed metadata, calls the methods on its thread, the
    quorum thread. No other thread may call them. The authorizer does nothing if no record has changed the ACLs since
    the previous image.
    """

    def __init__(self, authorizer: StandardAuthorizer, node_id: int) -> None:
        self._authorizer = authorizer
        self._node_id = node_id

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._authorizer.load(image.acls)

    def begin(self, image: MetadataImage) -> None:
        """Loads the ACLs of the first image that contains everything that the cluster has committed.

        Before this call the authorizer decides only about requests of super users, and refuses to decide about the
        requests of other users.
        """
        self._authorizer.load(image.acls)
        self._authorizer.set_loaded()
        logger.info("[StandardAuthorizer %d] Completed initial ACL load process.", self._node_id)
