"""The registration of a controller that is not the active one (KIP-919).

Each incarnation of a controller registers its listeners and features with the active controller, as soon as the
metadata version allows it. The active controller registers itself when it becomes active.
"""

from __future__ import annotations

import logging

from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import ControllerRegistration
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.features import supports_controller_registration
from kafkapy.metadata.image import MetadataImage
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_thread import NodeThread, Timer
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

logger = logging.getLogger("kafka.server.ControllerRegistrationManager")

RETRY_MS = 100
MAX_RETRY_MS = 120_000


class ControllerRegistrar:
    """Sends the registration of this controller to the active controller until the metadata contain it. Called as a
    listener of the metadata.

    `on_metadata` and `take_over` are called on the quorum thread, which runs Raft and replays the metadata. Everything
    else happens on the node thread, which runs the connections to other nodes.
    """

    def __init__(self, thread: NodeThread, channel: ControllerChannel, registration: ControllerRegistration) -> None:
        self._thread = thread
        self._channel = channel
        self._registration = registration
        self._backoff = ExponentialBackoff(RETRY_MS, MAX_RETRY_MS)
        self._was_needed = False  # as the last image shows it; quorum thread
        self._is_needed = False
        self._is_in_flight = False
        self._failures = 0
        self._timer: Timer | None = None

    def take_over(self, image: MetadataImage) -> None:
        """Receives the first metadata image after the start. Begins to register this controller unless the image
        contains its registration."""
        self._check(image)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._check(image)

    def _check(self, image: MetadataImage) -> None:
        own = self._registration
        known = image.controllers.get(own.controller_id)
        is_registered = known is not None and known._replace(zk_migration_ready=own.zk_migration_ready) == own
        is_needed = supports_controller_registration(image.metadata_version) and not is_registered
        if is_needed != self._was_needed:
            self._was_needed = is_needed
            self._thread.post(lambda: self._follow(is_needed))

    # -- node thread

    def _follow(self, is_needed: bool) -> None:
        self._is_needed = is_needed
        self._failures = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._send()

    def _send(self) -> None:
        if not self._is_needed or self._is_in_flight:
            return
        self._is_in_flight = True
        own = self._registration
        request = ControllerRegistrationRequest(
            controller_id=own.controller_id,
            incarnation_id=own.incarnation_id,
            zk_migration_ready=own.zk_migration_ready,
            listeners=[
                ControllerRegistrationRequest.Listener(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in own.endpoints.values()
            ],
            features=[
                ControllerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in own.features.items()
            ],
        )
        self._channel.send(request, ApiKey.CONTROLLER_REGISTRATION, self._on_done)

    def _on_done(self, response: ControllerRegistrationResponse | None, version: int, error: Exception | None) -> None:
        self._is_in_flight = False
        if response is not None and response.error_code:
            error = ApiError(Error.of(response.error_code), response.error_message)
        if error is None:
            logger.info("controller %d has registered", self._registration.controller_id)
            return  # the registration arrives with the metadata
        if not self._is_needed or self._thread.is_stopped:
            return
        logger.info("controller %d could not register: %s", self._registration.controller_id, error)
        self._timer = self._thread.schedule(self._backoff.pause_ms(self._failures), self._send)
        self._failures += 1
