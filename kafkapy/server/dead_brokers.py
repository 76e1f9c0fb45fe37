"""Fences a broker at once when its process has died, instead of at the end of its session as Apache Kafka does.

When the connection of a broker's heartbeats ends, the active controller tries to connect to all listeners of the
broker, twice. If every attempt is refused, the process has died. A new active controller examines all brokers in this
way, because one of them may have died together with the former controller. If a broker is fenced although it is alive,
its next heartbeat unfences it.
"""

from __future__ import annotations

import logging

from kafkapy._core.reactor.reactor import Connection
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.nodes.refusal_probe import probe_until_refused
from kafkapy.server.request_context import Session
from kafkapy.server.services import ControllerServices

logger = logging.getLogger("kafka.controller.BrokerHeartbeatManager")


class DeadBrokers:
    """Detects brokers whose processes have died, by an attempt to connect to them, and fences them. Only the reactor's
    thread may use it."""

    def __init__(self, services: ControllerServices, thread: NodeThread) -> None:
        self._services = services
        self._thread = thread

    def connection_ended(self, connection: Connection) -> None:
        """Fences the broker that has sent heartbeats on a connection that has ended, if the broker's process has died.

        Tries to connect to the broker, to find out if the process has died. Does nothing if no broker has sent
        heartbeats on the connection, if the broker has registered again in the meantime, or if this node is not the
        active controller.
        """
        services = self._services
        session: Session | None = connection.state
        if session is None or session.broker is None or not services.controller.is_active:
            return
        broker_id, broker_epoch = session.broker
        registered = services.metadata.image.brokers.get(broker_id)
        if registered is not None and registered.epoch == broker_epoch:
            self._probe(registered)

    def became_active(self) -> None:
        """Fences all other brokers whose processes have died; tries to connect to them, to find out which have.

        Called after this node has become the active controller.
        """
        services = self._services
        for registered in services.metadata.image.brokers.values():
            if registered.broker_id != services.node_id:
                self._probe(registered)

    def _probe(self, registered: BrokerRegistration) -> None:
        if registered.fenced:
            return
        services, broker_id, broker_epoch = self._services, registered.broker_id, registered.epoch
        destinations = [Destination(broker_id, each.host, each.port) for each in registered.endpoints.values()]

        def on_refused() -> None:
            logger.warning(
                "Fencing broker %d at epoch %d because its listeners refuse connections.", broker_id, broker_epoch
            )
            services.controller.submit(services.controller_operations.fence_dead(broker_id, broker_epoch))

        if destinations:
            probe_until_refused(self._thread, destinations, f"controller-{services.node_id}-probe", on_refused)
