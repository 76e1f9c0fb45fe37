"""The thread for requests to other nodes, and the parts of a node that use it.

A node that is the only one of its cluster neither starts the thread nor imports its module.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from functools import cache, cached_property
from typing import TYPE_CHECKING

from kafkapy.config import BrokerConfig

if TYPE_CHECKING:
    from kafkapy._core.reactor.reactor import Connection
    from kafkapy.metadata.image import MetadataImage
    from kafkapy.network.socket_server import SocketServer
    from kafkapy.nodes.controller_channel import FindController
    from kafkapy.nodes.node_channel import Destination
    from kafkapy.nodes.node_thread import NodeThread
    from kafkapy.quorum.controller_loop import ControllerLoop
    from kafkapy.quorum.raft_transport import RaftTransport
    from kafkapy.server.dead_brokers import DeadBrokers
    from kafkapy.server.node_security import ListenerClient, NodeClients
    from kafkapy.server.services import ControllerServices


class OtherNodes:
    """Owns the thread for requests to other nodes, which starts with the first request. Any thread may use it."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._thread: NodeThread | None = None

    @property
    def thread(self) -> NodeThread:
        """The thread for requests to other nodes; it is started at the first access."""
        from kafkapy.nodes.node_thread import NodeThread

        with self._lock:
            if self._thread is None:
                self._thread = NodeThread(security=None if self._clients is None else self._clients.of_channels)
            return self._thread

    @property
    def broker_client(self) -> ListenerClient | None:
        """The security of connections to other brokers; None for PLAINTEXT. Raises ConfigError."""
        clients = self._clients
        return None if clients is None else clients.brokers

    @cached_property
    def _clients(self) -> NodeClients | None:
        protocols = self._config.security_protocols
        names = (self._config.inter_broker_listener_name, *self._config.controller_listener_names[:1])
        if all(protocols.get(name, "PLAINTEXT") == "PLAINTEXT" for name in names):
            return None  # and nothing is imported
        from kafkapy.server.node_security import node_clients

        return node_clients(self._config)

    @property
    def client_id(self) -> str:
        """The client id of the requests that this node sends to other nodes: kafkapy-node-<node id>."""
        return f"kafkapy-node-{self._config.node_id}"

    def make_raft_transport(self) -> RaftTransport:
        """Returns the transport that sends the quorum's requests to other nodes."""
        from kafkapy.quorum.raft_transport import RaftTransport

        names = self._config.controller_listener_names
        return RaftTransport(
            self.thread,
            client_id=self.client_id,
            listener_name=names[0] if names else "CONTROLLER",
            request_timeout_ms=self._config.controller_quorum_request_timeout_ms,
        )

    def register_controller(self, controller: ControllerLoop) -> None:
        """Registers this node as a controller with the active controller.

        The request is repeated until the metadata of the cluster contains the registration.

        Does nothing if this node is the only voter, which registers itself. Called after the start of `controller`.
        """
        if controller.quorum.is_alone:
            return
        from kafkapy.nodes.controller_channel import ControllerChannel
        from kafkapy.quorum.controller_registrar import ControllerRegistrar

        timeout_ms = self._config.controller_socket_timeout_ms
        channel = ControllerChannel(
            self.thread,
            controller_finder(controller),
            client_id=f"controller-{self._config.node_id}-registration",
            request_timeout_ms=timeout_ms,
            retry_timeout_ms=timeout_ms,
        )
        registrar = ControllerRegistrar(self.thread, channel, controller.quorum.registration)

        def take_over(done: Future[MetadataImage]) -> None:
            if done.exception() is None:  # otherwise the node stops
                registrar.take_over(done.result())

        controller.follow(registrar).add_done_callback(take_over)

    def watch_brokers(self, services: ControllerServices, socket_server: SocketServer) -> None:
        """Makes this node, while it is the active controller, fence brokers whose processes have died.

        A broker whose connection to this node ends is examined without waiting for its session to expire. Does nothing
        if kafkapy.fence.dead.brokers.enable is false. The module that examines brokers is imported when it is first
        needed.
        """
        if not self._config.kafkapy_fence_dead_brokers_enable:
            return

        @cache
        def dead_brokers() -> DeadBrokers:
            from kafkapy.server.dead_brokers import DeadBrokers

            return DeadBrokers(services, self.thread)

        def connection_ended(connection: Connection) -> None:
            if connection.state is not None and connection.state.broker is not None:
                dead_brokers().connection_ended(connection)

        def became_active() -> None:
            if services.metadata.image.brokers.keys() - {services.node_id}:
                services.reactor.post(lambda: dead_brokers().became_active())

        socket_server.connection_listeners.append(connection_ended)
        services.quorum.on_active = became_active

    def stop(self) -> None:
        """Ends the thread, if it was started; requests without a response fail."""
        if self._thread is not None:
            self._thread.stop()


def controller_finder(controller: ControllerLoop) -> FindController:
    """Returns a function that returns the address of the active controller, or None while it is unknown. Any thread may
    call it.
    """
    from kafkapy.nodes.node_channel import Destination

    def find_controller() -> Destination | None:
        leader = controller.quorum.leader
        return None if leader is None else Destination(*leader)

    return find_controller
