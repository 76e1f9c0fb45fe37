"""The broker: opens and starts its parts in order, and stops them in the reverse order.

    start   lock directories | bind listeners | open the metadata log | build the parts | load logs | new epoch,
            register | take over replicas | unfence: leaders are elected | serve
    stop    give up leaderships | respond to waiting requests, close connections | fence, close the metadata log | close
            logs, checkpoints | clean-shutdown markers

The configuration, the directories and the metadata log are checked before the start changes any existing data. After a
fatal failure (of the metadata log or of the last log directory) `stop` leaves no clean-shutdown marker, so that the
next start recovers.
"""

from __future__ import annotations

import errno
import gc
import logging
import resource
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from kafkapy import __version__
from kafkapy._core.bytes.codec_functions import missing_codecs
from kafkapy.broker_parts import STOP_GRACE_MS, Foundation, Parts, build_foundation, build_parts, open_quorum
from kafkapy.cluster_node import ClusterNode
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.partitions import partitions_to_assign
from kafkapy.controller.policy import NO_POLICIES, Policies
from kafkapy.errors import ApiError, StopRequested, StorageError
from kafkapy.network.socket_server import SocketServer
from kafkapy.quorum.growth_watch import GrowthWatch
from kafkapy.quorum.held_listener import HeldListener
from kafkapy.server.descriptor_watch import CHECK_INTERVAL_MS, DescriptorWatch
from kafkapy.server.dispatcher import Dispatcher
from kafkapy.server.dynamic_config_listener import DynamicConfigListener
from kafkapy.server.node_authorizer import follow_acls, split_early
from kafkapy.server.quota_listener import QuotaListener
from kafkapy.server.tiered_topics import refuse_tiered_topics
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import Clock, SystemClock, TopicPartition

if TYPE_CHECKING:
    from ssl import SSLContext

    from kafkapy.metadata.image import MetadataImage
    from kafkapy.metrics.http_server import HttpServer, Route, Tree
    from kafkapy.security.authorizer import Authorizer
    from kafkapy.server.exposition.broker_page import BrokerPage
    from kafkapy.server.inspection.interface import Inspection
    from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.KafkaServer")
_MISSING_CODEC = (
    "The installed libraries lack functions of %s that kafkapy calls directly; batches compressed with %s are "
    "decompressed by a slower path, which holds the interpreter lock"
)

# The prefix of keys for the metrics listener alone is listener.name.metrics.
METRICS_LISTENER_NAME = "METRICS"
PROTECTED_PAGES = frozenset({"/metrics"})
# The pages of the inspection interface, all of them protected.
INSPECTION_PREFIX = "/v1/"
# The states of a broker; the numbers are Kafka's.
STARTING, RUNNING, STOPPING = 1, 3, 6

# How often a broker that waits for the metadata quorum looks whether it has to stop, and says that it waits.
LOOK_S = 0.2
LOOKS_PER_MESSAGE = 50
# A thread that holds the interpreter lock releases it after this time if another thread waits for it. The default of
# 5 ms would show in the latency of the slowest requests.
SWITCH_INTERVAL_S = 0.0005


class Broker(ClusterNode):
    """A broker with all its parts and threads. `start` and `stop` are called once each, by one thread."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        filesystem: Filesystem | None = None,
        on_fatal: Callable[[], None] = lambda: None,
        is_stop_requested: Callable[[], bool] = lambda: False,
        gated: bool | None = None,
    ) -> None:
        """Constructs the broker; opens no log directory and no listener, and starts no thread.

        `on_fatal()` is called after a failure that the broker cannot survive. `is_stop_requested()` returns True if a
        start that waits for other nodes has to end with StopRequested.

        `gated` is True if the gate, which is compiled code, serves usual Produce and Fetch requests. The gate reads the
        machine's clock and writes files itself. If `gated` is None, the gate is therefore used only if the caller
        passes neither a clock nor a file system.
        """
        super().__init__(config, on_fatal)
        self.state = STARTING
        self.cluster_id = ""
        self._foundation: Foundation = build_foundation(
            config,
            clock or SystemClock(),
            filesystem or Filesystem(),
            self.reactor,
            self._reactor_thread,
            self._directory_failed,
        )
        self.log_manager = self._foundation.log_manager
        self._parts: Parts | None = None
        self._socket_server: SocketServer | None = None
        self._metrics_server: HttpServer | None = None
        self._policies = NO_POLICIES
        self._quotas: QuotaListener | None = None
        self._descriptors = DescriptorWatch(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._is_gated = clock is None and filesystem is None if gated is None else gated
        self._is_stop_requested = is_stop_requested
        self._is_registered = False

    @property
    def parts(self) -> Parts:
        """The parts that `start` has built; reading them before that is an error of the caller."""
        assert self._parts is not None, "the broker was not started"
        return self._parts

    @property
    def socket_server(self) -> SocketServer:
        assert self._socket_server is not None, "the broker was not started"
        return self._socket_server

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the broker; on return it serves clients.

        Raises ConfigError, StorageError or OSError, whose text is one sentence. After an error the caller calls
        `abort`, which releases what was opened.
        """
        for warning in self.config.warnings:
            logger.warning("%s", warning)
        for codec in missing_codecs():
            logger.warning(_MISSING_CODEC, codec, codec)
        self._policies = Policies.from_config(self.config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.disable()  # most objects that a start makes live as long as the broker
        try:
            self._start()
            gc.freeze()
        finally:
            gc.enable()
        logger.info("[KafkaRaftServer nodeId=%d] Kafka Server started", self.config.node_id)

    def _start(self) -> None:
        config, log_manager = self.config, self.log_manager
        self._foundation.background.start()
        log_manager.lock()
        self._raise_fatal()
        self._socket_server = SocketServer(
            [*config.broker_listeners, *config.controller_listeners], config, self.reactor, self._read_tls()
        )
        if config.kafkapy_metrics_listener:
            self._metrics_server = _bind_metrics(config)
        quorum, image = open_quorum(self._foundation)
        if quorum.is_alone:  # otherwise this image may be old
            refuse_tiered_topics(image, config.node_id)
        self.cluster_id = quorum.config.cluster_id
        parts = self._parts = build_parts(
            self._foundation, quorum, self.cluster_id, self._policies, self._fail, self._tls
        )
        self._build_audit(parts.services)
        dispatcher = Dispatcher(parts.services)
        self.reactor.dispatch = dispatcher.dispatch
        self._socket_server.on_encrypted = dispatcher.begin_session
        self._socket_server.connection_listeners.append(parts.services.connection_closed)
        if config.is_controller:
            self._foundation.other_nodes.watch_brokers(parts.services, self.socket_server)
        if self._is_gated:
            parts.gate.attach(self.reactor)
        log_manager.refuse_foreign_directories()
        if quorum.is_alone:
            clean_broker_epoch = self._load_logs(image)
            parts.controller.start(image)
            if parts.services.authorizer is not None:
                follow_acls(parts.services.authorizer, parts.controller, config.node_id).result()
        else:
            self._enter_quorum(image)
        if config.is_controller:
            self._foundation.other_nodes.register_controller(parts.controller)
        if parts.services.authorizer is not None:
            self._keep_rights_current(parts, parts.services.authorizer)
        changes = HeldListener(parts.publisher)
        image = parts.controller.follow(changes).result()
        if not quorum.is_alone:
            clean_broker_epoch = self._load_logs(image)
        self._descriptors.warn_at_start(len(log_manager.logs()))
        parts.publisher.take_over(image)
        quotas = self._quotas = QuotaListener(parts.services, lambda: self.socket_server.quotas, parts.gate)
        quotas.post(parts.controller.follow(quotas).result())
        self._foundation.run_on_reactor_or_here(
            lambda: parts.replica_manager.startup(image, waits_for_registration=not quorum.is_alone)
        )
        for applying in parts.controller.call(changes.release).result():
            applying.result()
        self._raise_fatal()
        try:
            self._register(clean_broker_epoch)
        except ApiError:
            self._raise_fatal()  # says why the controller failed
            raise
        self._schedule_background()
        self._accept([listener.name for listener in config.broker_listeners])
        if not self._reactor_thread.is_alive():
            self._accept(config.controller_listener_names)
            self._reactor_thread.start()
        self._start_optional(parts.services)
        self._foundation.log_cleaner.start()
        parts.alter_log_dirs.resume()
        self.state = RUNNING
        if parts.link.forwarding is None and self.config.controller_listeners:
            self._watch_growth()
        if self._metrics_server is not None:
            self._metrics_server.start(self._metrics_routes(), PROTECTED_PAGES, self._metrics_trees())

    def _build_audit(self, services: Services) -> None:
        """Constructs the audit, if this broker counts the records of topics. Raises ConfigError."""
        if not self.config.kafkapy_audit_topics:
            return
        from kafkapy.server.audit.construction import build_audit

        listeners = self.endpoints[: len(self.config.broker_listeners)]
        services.audit = build_audit(self.config, listeners, self._foundation.run_on_reactor, self._foundation.clock)

    def _keep_rights_current(self, parts: Parts, authorizer: Authorizer) -> None:
        """Stores what the authorizer allows in the compiled request path (the gate), until the ACLs change.

        Must be called after the authorizer has begun to follow the metadata. Listeners are called in the order in which
        they were added: after a change of the ACLs, the authorizer must have increased its generation (the number of
        its changes) before `GateRights` looks at it. Otherwise the gate would use outdated permissions until the next
        change.
        """
        from kafkapy.server.gate_rights import GateRights

        rights = parts.services.gate_rights = GateRights(parts.gate, authorizer)
        parts.controller.follow(rights)
        self._foundation.run_on_reactor_or_here(lambda: rights.poll(self.reactor.schedule))

    def _start_optional(self, services: Services) -> None:
        """Starts the audit, the listener for ZooKeeper's clients and the mirror, if this broker has them.

        The mirror writes Kafka's znodes to a ZooKeeper of the user (`zookeeper.mirror.connect`).
        """
        if services.audit is not None:
            services.audit.start()
        service, mirror = services.zookeeper, services.zookeeper_mirror
        if service is None and mirror is None:
            return
        from kafkapy.server.zookeeper_construction import start_mirror, start_zookeeper

        if service is not None:
            self._foundation.run_on_reactor_or_here(lambda: start_zookeeper(services, service))
        if mirror is not None:
            start_mirror(services, mirror)

    def _enter_quorum(self, image: MetadataImage) -> None:
        """Takes part in a quorum of several nodes, and waits until this node has replayed the records that the quorum
        has committed.

        `image` has the records that were known to be committed when the log was opened. The other nodes may need this
        node's vote to elect a leader. The controller listeners therefore accept connections before the wait. If
        `early.start.listeners` is set, only the listeners that it names do so; the other listeners accept connections
        after the authorizer has loaded the ACLs.
        """
        authorizer = self.parts.services.authorizer
        early, late = split_early(self.config, authorizer)
        self._accept(early)
        self._reactor_thread.start()
        self.parts.controller.start(image)
        caught_up = follow_acls(authorizer, self.parts.controller, self.config.node_id)
        for look in count(1):
            try:
                caught_up.result(LOOK_S)
                self._accept(late)
                return
            except TimeoutError:
                self._raise_fatal()
                if self._is_stop_requested():
                    raise StopRequested from None
                if look % LOOKS_PER_MESSAGE == 0:
                    logger.info("[BrokerServer id=%d] waits for the leader of the metadata quorum", self.config.node_id)

    def _watch_growth(self) -> None:
        """Watches a cluster of one node for its first other node. From then on, the broker sends requests to the active
        controller instead of calling it directly.

        Must not be called if the broker has no listener for controllers: the broker could not send these requests to
        its own controller. Without this listener no other node can join the cluster. The metadata may nevertheless name
        another broker that no longer exists and was never unregistered, and this method would take it for the first
        other node.
        """
        controller = self.parts.controller
        watch = GrowthWatch(
            self.config.node_id,
            lambda: controller.quorum.is_alone,
            lambda: self.reactor.post(self._leave_direct_calls),
        )
        controller.follow(watch)
        controller.call(lambda: watch.check(controller.image))

    def _leave_direct_calls(self) -> None:
        """Makes the broker send requests to the active controller. Until now it has called the controller's functions.

        Called on the reactor's thread when the cluster has got a second node (`_watch_growth`). Does nothing if the
        broker is already stopping.
        """
        if self.state == RUNNING:
            parts = self.parts
            parts.link.leave_direct_calls()
            parts.services.forwarding = parts.link.forwarding
            self._foundation.other_nodes.register_controller(parts.controller)

    def _accept(self, names: Collection[str]) -> None:
        """Begins to accept connections on the listeners with these names."""
        self._foundation.run_on_reactor_or_here(lambda: self.socket_server.start(names))

    def _raise_fatal(self) -> None:
        """Raises the first fatal failure, such as a directory that cannot be used, if there was one."""
        if self._fatal is not None:
            raise self._fatal

    def _load_logs(self, image: MetadataImage) -> int:
        """Loads the logs, by the configuration that the image has for this broker and for the topics. Returns the
        broker's epoch at the last clean shutdown, or -1 if that was not clean.

        Raises ConfigError for topics in tiered storage, of which a broker of a larger cluster may learn only now, and
        the first fatal failure. A start that ends before has left the marks of the clean shutdown.
        """
        topics, node_id = image.topics, self.config.node_id
        refuse_tiered_topics(image, node_id)
        clean_broker_epoch = self.log_manager.take_clean_shutdown_markers()
        DynamicConfigListener(self.config, node_id, lambda: None).apply(image)

        def is_stray(topic_id: bytes | None, partition: TopicPartition) -> bool:
            return topic_id is None or topics.replica_of(node_id, topic_id, partition.partition) is None

        def is_assigned(topic_id: bytes, partition: TopicPartition, directory_id: bytes) -> bool:
            return topics.is_assigned(node_id, topic_id, partition.partition, directory_id)

        publisher = self.parts.publisher
        self.log_manager.startup(lambda topic: publisher.topic_config(image, topic), is_stray, is_assigned)
        self._raise_fatal()
        return clean_broker_epoch

    def _metrics_routes(self) -> Mapping[str, Route]:
        """Returns the functions that make the pages of the metrics listener, by path.

        The first request imports the page's modules, on the listener's thread.
        """

        @cache
        def page() -> BrokerPage:
            from kafkapy.server.exposition.broker_page import BrokerPage

            log_cleaner = self._foundation.log_cleaner
            made = BrokerPage(self.parts.services, log_cleaner, self.socket_server, lambda: self.state)
            self.parts.controller.follow(made.elections)
            return made

        return {
            "/metrics": lambda: page().metrics(),
            "/live": lambda: page().live(),
            "/ready": lambda: page().ready(),
        }

    def _metrics_trees(self) -> Mapping[str, Tree]:
        """Returns the function that makes the pages of the inspection interface, by the prefix of their paths.

        The first request imports its modules.
        """

        @cache
        def inspection() -> Inspection:
            from kafkapy.server.inspection.interface import Inspection

            return Inspection(self.parts.services)

        return {INSPECTION_PREFIX: lambda path, query: inspection().page(path, query)}

    def _register(self, clean_broker_epoch: int) -> None:
        """Registers the broker; `clean_broker_epoch` is its epoch at the last clean shutdown, -1 if that was not clean.

        Gets a new broker epoch, reports the replicas whose log directory differs from the metadata, and has the broker
        unfenced, so that leaders are elected.
        """
        parts, node_id = self.parts, self.config.node_id
        directory_ids = [directory.directory_id for directory in self.log_manager.directories if directory.is_online]
        parts.link.lifecycle.register(directory_ids, clean_broker_epoch, self._advertised_listeners())
        self._is_registered = True
        self._report_offline_directories()  # directories that failed before the registration
        found = {
            (log.topic_id, log.topic_partition.partition): log.directory.directory_id for log in self.log_manager.logs()
        }
        wrong = partitions_to_assign(parts.controller.image, node_id, found)
        if wrong:
            parts.link.assign_directories(wrong).result()
        parts.link.lifecycle.unfence()

    def _advertised_listeners(self) -> list[Listener]:
        """Returns the advertised listeners; a listener configured with port 0 gets the port that the system chose."""
        ports = {endpoint.name: endpoint.port for endpoint in self.socket_server.endpoints}
        return [
            each if each.port else each._replace(port=ports[each.name]) for each in self.config.advertised_listeners
        ]

    def _schedule_background(self) -> None:
        config, log_manager, every = self.config, self.log_manager, self._foundation.background.every
        recovery_point_ms = config.log_flush_offset_checkpoint_interval_ms
        every("checkpoint-recovery", recovery_point_ms, log_manager.checkpoints.write_recovery_points)
        every(
            "checkpoint-log-start",
            config.log_flush_start_offset_checkpoint_interval_ms,
            log_manager.checkpoints.write_log_start_offsets,
        )
        every(
            "checkpoint-high-watermark",
            config.replica_high_watermark_checkpoint_interval_ms,
            self.parts.replica_manager.checkpoint_high_watermarks,
        )
        flush_ms = config.log_flush_scheduler_interval_ms
        if flush_ms < 1 << 40:
            every("flush", flush_ms, log_manager.run_flush)
        self._every_in_slices(config.log_retention_check_interval_ms, log_manager.retention_steps)
        expiry_ms = config.producer_id_expiration_check_interval_ms
        every("producer-expiry", expiry_ms, lambda: self.reactor.post(log_manager.remove_expired_producers))
        every("descriptors", CHECK_INTERVAL_MS, self._descriptors.check)

    def _every_in_slices(self, period_ms: int, steps: Callable[[], Iterator[object]]) -> None:
        """Runs a task every `period_ms` on the reactor's thread, in steps.

        `steps()` begins a run of the task and returns an iterator. Each pass of the reactor's loop takes one element
        from the iterator, which performs one step, so that requests are served between two steps.
        """

        def step(remaining: Iterator[object]) -> None:
            for _ in remaining:
                self.reactor.post(lambda: step(remaining))
                return

        self._foundation.background.every("retention", period_ms, lambda: self.reactor.post(lambda: step(steps())))

    @property
    def endpoints(self) -> list[Listener]:
        """The listeners with the ports that they are bound to, after `start`; those for clients come first."""
        return self.socket_server.endpoints

    def ready_line(self) -> str:
        listeners = ", ".join(map(str, self.endpoints))
        directories = ", ".join(self.config.log_dirs)
        return f"kafkapy {__version__} ready: node {self.config.node_id} on {listeners}, data in {directories}"

    def _config_changed(self) -> None:
        replica_manager, controller = self.parts.replica_manager, self.parts.controller
        self.reactor.post(lambda: replica_manager.follow_broker_config(controller.image))
        pool, thread_count = self.parts.handler_pool, self.config.num_io_threads
        self.reactor.post(lambda: pool.set_thread_count(thread_count))

    # -- failure -------------------------------------------------------------------------------------------------

    def _directory_failed(self, path: str, error: Exception) -> None:
        is_last = not any(directory.is_online for directory in self.log_manager.directories)
        if is_last or path == self.config.metadata_log_dir:
            what = "all log directories have failed" if is_last else f"the metadata log's directory {path} has failed"
            self._fail(StorageError(path, f"{what}: {error}"))
            return
        # The reactor runs posted work only after the parts have been built.
        self.reactor.post(lambda: self.parts.replica_manager.handle_directory_failure(path))
        if self._is_registered:
            self._report_offline_directories()

    def _report_offline_directories(self) -> None:
        for directory in self.log_manager.directories:
            if not directory.is_online:
                self.parts.link.lifecycle.report_offline(directory.directory_id)

    # -- stop ----------------------------------------------------------------------------------------------------

    def stop(self) -> int:
        """Stops the broker and all its threads. Returns the exit status of the process: 0, or 1 after a fatal
        failure."""
        parts, log_manager = self.parts, self.log_manager
        logger.info("[KafkaRaftServer nodeId=%d] shutting down", self.config.node_id)
        if parts.services.audit is not None and self._fatal is None:
            parts.services.audit.stop()
        self._foundation.run_on_reactor_or_here(self._begin_stop)
        self._foundation.log_cleaner.stop()
        parts.alter_log_dirs.stop()
        if self.config.controlled_shutdown_enable:
            self.reactor.post(parts.replica_manager.begin_controlled_shutdown)
        self._unless_failed(parts.link.lifecycle.give_up_leaderships)
        if self._metrics_server is not None:
            self._metrics_server.close()
        self._stop_serving()
        self._unless_failed(parts.link.lifecycle.end_session)
        parts.controller.stop()
        parts.publisher.finish()
        self._foundation.other_nodes.stop()
        self._policies.close()
        if self._quotas is not None:
            self._quotas.close()
        parts.handler_pool.stop()
        self._foundation.background.stop()
        if self._fatal is not None:
            log_manager.unlock()
            logger.critical("[KafkaRaftServer nodeId=%d] stopped after: %s", self.config.node_id, self._fatal)
            return 1
        log_manager.checkpoints.write_high_watermarks()
        log_manager.shutdown(parts.link.lifecycle.broker_epoch)
        logger.info("[KafkaRaftServer nodeId=%d] shut down completed", self.config.node_id)
        return 0 if self._fatal is None else 1

    def _begin_stop(self) -> None:
        self.state = STOPPING

    def _unless_failed(self, step: Callable[[], None]) -> None:
        if self._fatal is None:
            try:
                step()
            except Exception as error:
                self._fail(error)

    def _stop_serving(self) -> None:
        if not self._reactor_thread.is_alive():
            return
        parts = self.parts
        self.reactor.post(self.socket_server.close)
        self.reactor.post(parts.transaction_coordinator.shutdown)
        self.reactor.post(parts.group_coordinator.shutdown)
        self.reactor.post(parts.services.shutdown_optional)
        self.reactor.post(parts.replica_manager.shutdown)
        self.reactor.stop(STOP_GRACE_MS)
        self._reactor_thread.join()

    def abort(self) -> None:
        """Releases what a failed `start` has opened. Leaves the log directories as a crash of the process would."""
        if self._parts is not None:
            self._parts.controller.stop()
            self._parts.publisher.finish()
            self._parts.handler_pool.stop()
            self._foundation.run_on_reactor_or_here(self._parts.services.shutdown_optional)
        if self._reactor_thread.is_alive():
            self.reactor.stop()
            self._reactor_thread.join()
        if self._socket_server is not None:
            self._socket_server.close()
        if self._metrics_server is not None:
            self._metrics_server.close()
        self._policies.close()
        if self._quotas is not None:
            self._quotas.close()
        self._foundation.other_nodes.stop()
        self._foundation.background.stop()
        self.log_manager.unlock()


def _bind_metrics(config: BrokerConfig) -> HttpServer:
    """Returns the HTTP server of the metrics pages, bound to its address.

    Raises ConfigError if its key store or trust store cannot be read, and OSError if it cannot be bound; if the port is
    in use, the error's text names the configuration key.
    """
    from kafkapy.metrics.http_server import Credentials, HttpServer  # only brokers with a metrics listener need it

    password = config.kafkapy_metrics_password
    user = config.kafkapy_metrics_username
    tls = _metrics_tls(config) if config.kafkapy_metrics_tls_enable else None
    credentials = Credentials(user, password.value) if password is not None else None
    try:
        return HttpServer(config.kafkapy_metrics_listener, tls=tls, credentials=credentials)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        remedy = "Choose another port by the key kafkapy.metrics.listener"
        raise OSError(error.errno, f"{error.strerror}. {remedy}") from error


def _metrics_tls(config: BrokerConfig) -> SSLContext:
    from kafkapy.config.listener_ssl import listener_ssl_settings
    from kafkapy.security.tls.python_context import server_context
    from kafkapy.security.tls.tls_material import certificate_warnings, load_material

    material = load_material(listener_ssl_settings(config, METRICS_LISTENER_NAME, "SSL"), is_server=True)
    for warning in certificate_warnings(material):
        logger.warning("%s", warning)
    return server_context(material)
