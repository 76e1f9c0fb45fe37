"""A node that is only a controller (process.roles=controller): it has a replica of the metadata log, and no partitions.

start   lock directories | bind listeners | open the metadata log | serve | enter the quorum
stop    leave the quorum, close the metadata log | close connections
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future

from kafkapy import __version__
from kafkapy.broker_parts import (
    STOP_GRACE_MS,
    build_authentication,
    build_foundation,
    build_handler_pool,
    node_config_changed,
    open_quorum,
    periodic_tasks,
)
from kafkapy.cluster_node import ClusterNode
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.policy import Policies
from kafkapy.errors import StorageError
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.network.socket_server import SocketServer
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.server.dispatcher import Dispatcher
from kafkapy.server.dynamic_config_listener import DynamicConfigListener
from kafkapy.server.node_authorizer import follow_acls, make_authorizer, split_early
from kafkapy.server.quota_listener import QuotaListener
from kafkapy.server.services import ControllerServices
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import SystemClock

logger = logging.getLogger("kafka.server.ControllerServer")


class ControllerNode(ClusterNode):
    """A controller without a broker, with all its components and threads. `start` and `stop` are called once each, by
    one thread."""

    def __init__(self, config: BrokerConfig, *, on_fatal: Callable[[], None] = lambda: None) -> None:
        super().__init__(config, on_fatal)
        self._foundation = build_foundation(
            config, SystemClock(), Filesystem(), self.reactor, self._reactor_thread, self._directory_failed
        )
        self._handler_pool = build_handler_pool(config, self.reactor)
        self._policies = Policies.from_config(config)
        self._quotas: QuotaListener | None = None
        self._authorizer = make_authorizer(config)
        self._socket_server: SocketServer | None = None
        self._loop: ControllerLoop | None = None

    def start(self) -> None:
        """Opens the listeners, joins the metadata quorum and starts all threads.

        Raises ConfigError, StorageError or OSError; the caller then calls `abort`.
        """
        config, foundation = self.config, self._foundation
        for warning in config.warnings:
            logger.warning("%s", warning)
        foundation.background.start()
        foundation.log_manager.lock()
        socket_server = self._socket_server = SocketServer(
            config.controller_listeners, config, self.reactor, self._read_tls()
        )
        quorum, image = open_quorum(foundation)
        metadata = MetadataCache()
        loop = self._loop = ControllerLoop(quorum, metadata, foundation.clock, self._fail)
        services = ControllerServices(
            config=config, clock=foundation.clock, reactor=self.reactor, metadata=metadata, node_id=config.node_id,
            cluster_id=quorum.config.cluster_id, handler_pool=self._handler_pool, controller=loop,
            policies=self._policies, kraft_version=lambda: quorum.machine.kraft_version,
            quorum_leader=lambda: quorum.leader_id, quorum=loop, authorizer=self._authorizer,
            authentication=build_authentication(
                config, self.reactor, self._handler_pool, foundation.clock, metadata
            ),
            tls_listeners=self._tls,
        )  # fmt: skip
        loop.make_tasks = lambda image, monotonic_ms: periodic_tasks(services, image, monotonic_ms)
        dispatcher = Dispatcher(services)
        self.reactor.dispatch = dispatcher.dispatch
        self._socket_server.on_encrypted = dispatcher.begin_session
        foundation.other_nodes.watch_brokers(services, self._socket_server)
        early, late = split_early(config, self._authorizer)
        self._socket_server.start(early)
        self._reactor_thread.start()
        loop.start(image)
        self._open_when_loaded(late, loop)
        dynamic_config = DynamicConfigListener(config, config.node_id, lambda: node_config_changed(services))
        loop.follow(dynamic_config).add_done_callback(lambda following: dynamic_config.apply(following.result()))
        quotas = self._quotas = QuotaListener(services, lambda: socket_server.quotas)
        loop.follow(quotas).add_done_callback(lambda following: quotas.post(following.result()))
        foundation.other_nodes.register_controller(loop)
        logger.info("[ControllerServer id=%d] Kafka Server started", config.node_id)

    def _open_when_loaded(self, names: list[str], loop: ControllerLoop) -> None:
        """Begins to load the ACLs, and opens the listeners called `names` after the ACLs have been loaded."""
        assert self._socket_server is not None, "the controller was not started"
        socket_server = self._socket_server

        def opened(loaded: Future[MetadataImage]) -> None:
            if names and loaded.exception() is None:
                self.reactor.post(lambda: socket_server.start(names))

        follow_acls(self._authorizer, loop, self.config.node_id).add_done_callback(opened)

    @property
    def endpoints(self) -> list[Listener]:
        """The listeners, each with the port that it is bound to. Available after `start`."""
        assert self._socket_server is not None, "the controller was not started"
        return self._socket_server.endpoints

    def ready_line(self) -> str:
        listeners = ", ".join(map(str, self.endpoints))
        node_id, directory = self.config.node_id, self.config.metadata_log_dir
        return f"kafkapy {__version__} ready: controller {node_id} on {listeners}, metadata in {directory}"

    def stop(self) -> int:
        """Stops the controller and all its threads. Returns the exit status of the process: 0, or 1 after a fatal
        failure."""
        logger.info("[ControllerServer id=%d] shutting down", self.config.node_id)
        assert self._loop is not None and self._socket_server is not None, "the controller was not started"
        self._loop.stop()
        if self._reactor_thread.is_alive():
            self.reactor.post(self._socket_server.close)
            self.reactor.stop(STOP_GRACE_MS)
            self._reactor_thread.join()
        self._release()
        if self._fatal is not None:
            logger.critical("[ControllerServer id=%d] stopped after: %s", self.config.node_id, self._fatal)
            return 1
        logger.info("[ControllerServer id=%d] shut down completed", self.config.node_id)
        return 0

    def abort(self) -> None:
        """Releases the files, sockets and threads of a `start` that has failed."""
        if self._socket_server is not None and not self._reactor_thread.is_alive():
            self._socket_server.close()
        self._release()

    def _release(self) -> None:
        self._foundation.other_nodes.stop()
        self._policies.close()
        if self._quotas is not None:
            self._quotas.close()
        self._handler_pool.stop()
        self._foundation.background.stop()
        self._foundation.log_manager.unlock()

    def _config_changed(self) -> None:
        thread_count = self.config.num_io_threads
        self.reactor.post(lambda: self._handler_pool.set_thread_count(thread_count))

    def _directory_failed(self, path: str, error: Exception) -> None:
        if path == self.config.metadata_log_dir:
            self._fail(StorageError(path, f"the metadata log's directory {path} has failed: {error}"))
