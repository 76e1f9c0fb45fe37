"""The registration of the only broker of a cluster with the controller in its own process, from its start to its stop.

    start 1    fence the broker, which a crash may have left unfenced
    start 2    register the broker, as fenced
    start 3    unfence the broker and elect leaders for its partitions
    stop 1     begin the controlled shutdown, which moves the leaderships
    stop 2     fence the broker, after all connections are closed

Each step is one durable append to the metadata log. A crash between two steps is an unclean stop, which the next start
handles.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    cordon_directories,
    fence_broker,
    register_broker,
    take_directories_offline,
    unfence_broker,
)
from kafkapy.controller.port import Controller
from kafkapy.controller.settings import ControllerSettings
from kafkapy.metadata.cluster_image import SECURITY_PROTOCOL_IDS, BrokerRegistration, Endpoint
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.types import random_uuid

logger = logging.getLogger("kafka.server.BrokerLifecycleManager")


class BrokerLifecycle:
    """Owns this broker's registration. Used by the thread that starts and stops the broker."""

    def __init__(
        self, loop: Controller, config: BrokerConfig, cordoned_directories: Callable[[], tuple[bytes, ...]]
    ) -> None:
        """Creates the lifecycle of a broker that is not registered yet. `loop` is the controller in the same process.

        `cordoned_directories` returns the ids of the log directories that get no new partitions.
        """
        self.broker_epoch = -1
        self._loop = loop
        self._config = config
        self._cordoned_directories = cordoned_directories
        self._node_id = config.node_id
        self._settings = ControllerSettings.from_config(config)

    def register(
        self,
        directory_ids: Sequence[bytes],
        clean_broker_epoch: int,
        advertised: Sequence[Listener] | None = None,
    ) -> int:
        """Registers the broker, fenced, and returns its epoch.

        `advertised` are the listeners as clients reach them, if they differ from the configuration (a listener with
        port 0). `directory_ids` are the ids of all online log directories; `clean_broker_epoch` is the epoch in their
        clean-shutdown markers, -1 if a directory had no marker. Raises ApiError if the controller refuses the
        registration, or if its records cannot be written to the metadata log.
        """
        self._loop.submit(lambda image: fence_broker(image, self._node_id, self._settings)).result()
        registration = self._registration(
            directory_ids, self._config.advertised_listeners if advertised is None else advertised
        )
        self.broker_epoch = self._loop.submit(
            lambda image: register_broker(image, registration, clean_broker_epoch, self._settings)
        ).result()
        logger.info("registered broker %d with broker epoch %d", self._node_id, self.broker_epoch)
        return self.broker_epoch

    def unfence(self) -> None:
        """Unfences the broker, so that its partitions get their leaders. Called when all requests can be served."""
        self._loop.submit(lambda image: unfence_broker(image, self._node_id, self._settings)).result()

    def report_offline(self, directory_id: bytes) -> None:
        """Reports a failed log directory to the controller; the partitions in it then have no leader. Any thread may
        call it; it does not wait."""
        reported = self._loop.submit(
            lambda image: take_directories_offline(image, self._node_id, [directory_id], self._settings)
        )
        reported.add_done_callback(_log_failure)

    def report_cordoned(self) -> None:
        """Reports the cordoned log directories to the controller, if the broker is registered and the directories have
        changed. Any thread may call it; it does not wait."""
        if self.broker_epoch < 0:
            return  # the registration contains them
        cordoned = self._cordoned_directories()
        reported = self._loop.submit(lambda image: cordon_directories(image, self._node_id, cordoned))
        reported.add_done_callback(_log_failure)

    def give_up_leaderships(self) -> None:
        """Begins a controlled shutdown, and waits until the metadata contain it. Afterwards the partitions have no
        leader, but clients still see the broker in the cluster.

        Does nothing if controlled.shutdown.enable is false. In this case the partitions lose their leader when
        `end_session` fences the broker.
        """
        if not self._config.controlled_shutdown_enable:
            return
        self._loop.submit(lambda image: begin_controlled_shutdown(image, self._node_id, self._settings)).result()

    def end_session(self) -> None:
        """Fences the broker at the end of a stop, after all connections are closed. The change is durable on return;
        only then may the clean-shutdown marker be written.

        Metadata responses do not contain a fenced broker. Clients that are still connected would therefore see a
        cluster without brokers: librdkafka 2.16 then forgets every broker address and never connects again.
        """
        self._loop.submit(lambda image: fence_broker(image, self._node_id, self._settings)).result()

    def _registration(self, directory_ids: Sequence[bytes], advertised: Sequence[Listener]) -> BrokerRegistration:
        endpoints = {
            listener.name: Endpoint(
                listener.name, listener.host, listener.port, SECURITY_PROTOCOL_IDS[listener.security_protocol]
            )
            for listener in advertised
        }
        return BrokerRegistration(
            broker_id=self._node_id,
            epoch=-1,
            incarnation_id=random_uuid(),
            endpoints=endpoints,
            features=dict(SUPPORTED_FEATURES),
            rack=self._config.broker_rack,
            fenced=True,
            in_controlled_shutdown=False,
            log_dirs=tuple(directory_ids),
            cordoned_log_dirs=self._cordoned_directories(),
            is_migrating_zk_broker=False,
        )


def _log_failure(reported: Future[None]) -> None:
    error = reported.exception()
    if error is not None:
        logger.error("the state of a log directory could not be recorded: %s", error)
