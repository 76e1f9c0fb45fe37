"""The composition root: constructs and wires everything, starts it in order and stops it in the reverse order.

    start   lock directories | bind listeners | open the metadata log | load logs | new epoch, register | take over
            replicas | unfence: leaders are elected | serve
    stop    give up leadership, fenced | answer what waits, close connections | close the metadata log | close logs,
            checkpoints | clean-shutdown markers

Nothing is written before everything that could be refused has been looked at. After a fatal failure (the metadata log,
the last log directory) `stop` leaves no clean-shutdown marker: the next start recovers.
"""

from __future__ import annotations

import gc
import logging
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING

from kafkapy import __version__
from kafkapy._core.bytes.codec_functions import missing_codecs
from kafkapy._core.gate.data_gate import DataGate
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.controller.partitions import assign_directories, partitions_to_assign
from kafkapy.controller.policy import NO_POLICIES, Policies
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.regex_resolver import RegexResolver
from kafkapy.coordinator.producer_id_manager import ProducerIdManager, blocks_from_controller
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.errors import ApiError, ConfigError, StorageError
from kafkapy.metadata.features import TRANSACTION_VERSION
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.metadata.internal_topics import TRANSACTION_STATE_TOPIC
from kafkapy.metadata.topics_image import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.network.socket_server import SocketServer, create_reactor
from kafkapy.quorum.broker_lifecycle import BrokerLifecycle
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.quorum.embedded_quorum import EmbeddedQuorum, controller_listener_of, settings_from_config
from kafkapy.quorum.format_directory import format_directories
from kafkapy.quorum.voters import check_static_voters
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.server.background_tasks import BackgroundTasks
from kafkapy.server.client_telemetry import ClientTelemetry
from kafkapy.server.controller_ports import LocalAlterPartition
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.descriptor_watch import CHECK_INTERVAL_MS, DescriptorWatch
from kafkapy.server.dispatcher import Dispatcher
from kafkapy.server.fetch_session import FetchSessions
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.server.owner_thread import run_on_owner, run_on_owner_or_here
from kafkapy.server.services import Services
from kafkapy.server.transaction_markers import LocalMarkerWriter
from kafkapy.server.transaction_verification import TransactionVerification
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import Clock, SystemClock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.metrics.http_server import HttpServer, Route
    from kafkapy.server.exposition.broker_page import BrokerPage

logger = logging.getLogger("kafka.server.KafkaServer")
_MISSING_CODEC = (
    "The installed libraries lack functions of %s that kafkapy calls directly; batches compressed with %s are "
    "decompressed by a slower path, which holds the interpreter lock"
)

# The states of a broker, by Kafka's numbers.
STARTING, RUNNING, STOPPING = 1, 3, 6

# Longest wait for answers in process and unsent bytes at a clean stop.
STOP_GRACE_MS = 1000
# A thread that holds the interpreter lock gives it up after this long: half a millisecond keeps the tail short.
SWITCH_INTERVAL_S = 0.0005


class Broker:
    """Owns every part and every thread of a broker. `start` and `stop` once each, from one thread."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        filesystem: Filesystem | None = None,
        on_fatal: Callable[[], None] = lambda: None,
        gated: bool | None = None,
    ) -> None:
        """`on_fatal` is called, once, on the thread that met a failure after which the broker cannot go on.

        `gated` says whether the data gate serves requests. The gate reads the machine's clock and writes files itself,
        so that by default it does not when the caller brings a clock or a file system.
        """
        self.config = config
        self._gated = clock is None and filesystem is None if gated is None else gated
        self._clock = clock or SystemClock()
        self._filesystem = filesystem or Filesystem()
        self._on_fatal = on_fatal
        self._fatal: BaseException | None = None
        self._is_registered = False
        self.state = STARTING
        self.metrics_server: HttpServer | None = None
        self.cluster_id = ""
        self.policies = NO_POLICIES
        self._descriptors = DescriptorWatch(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.background = BackgroundTasks(self._clock)
        self.reactor = create_reactor(config)
        self.log_manager = LogManager(
            config,
            filesystem=self._filesystem,
            clock=self._clock,
            on_directory_failure=self._directory_failed,
            schedule=lambda delay_ms, work: self.background.once("storage", delay_ms, work),
            run_in_background=lambda work: self.background.soon("flush", work),
            run_on_owner=self._run_on_owner,
        )
        self._reactor_thread = threading.Thread(target=self._run_reactor, name="kafka-reactor-0", daemon=True)
        self.log_cleaner = LogCleaner(
            config,
            self.log_manager,
            filesystem=self._filesystem,
            clock=self._clock,
            run_on_owner=lambda work: run_on_owner(work, self.reactor.post, self._reactor_thread.is_alive),
            schedule=lambda delay_ms, work: self.background.once("cleaned", delay_ms, work),
        )

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """ConfigError, StorageError or OSError with one clear sentence; then call `abort`."""
        config = self.config
        for warning in config.warnings:
            logger.warning("%s", warning)
        for codec in missing_codecs():
            logger.warning(_MISSING_CODEC, codec, codec)
        self.policies = Policies.from_config(config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.disable()  # what a start makes stays
        try:
            self._start()
            gc.freeze()
        finally:
            gc.enable()
        logger.info("[KafkaRaftServer nodeId=%d] Kafka Server started", config.node_id)

    def _start(self) -> None:
        config = self.config
        self.background.start()
        self.log_manager.lock()
        self._raise_fatal()
        self.socket_server = SocketServer(config.broker_listeners, config, self.reactor)
        if config.kafkapy_metrics_listener:
            self.metrics_server = self._bind_metrics(config.kafkapy_metrics_listener)
        image = self._open_quorum()
        self._wire()
        clean_broker_epoch = self.log_manager.take_clean_shutdown_markers()
        self.log_manager.startup(
            lambda topic: self._publisher.topic_config(image, topic),
            self._stray_judge(image),
            self._assignment_judge(image),
        )
        self._raise_fatal()
        self._descriptors.judge(len(self.log_manager.logs()))
        self.controller.start(image)
        self._publisher.take_over(self.controller.image)
        self.replica_manager.startup(self.controller.image)
        self._raise_fatal()
        try:
            self._register(clean_broker_epoch)
        except ApiError:
            self._raise_fatal()  # says why the controller failed
            raise
        self._schedule_background()
        self.socket_server.start()
        self._reactor_thread.start()
        self.log_cleaner.start()
        self.alter_log_dirs.resume()
        self.state = RUNNING
        if self.metrics_server is not None:
            self.metrics_server.start(self._metrics_routes())

    def _raise_fatal(self) -> None:
        """A directory without which there is no broker failed during the start."""
        if self._fatal is not None:
            raise self._fatal

    def _open_quorum(self) -> MetadataImage:
        config = self.config
        check_static_voters(config.controller_quorum_voters, config.node_id)
        properties = format_directories(
            [directory.path for directory in self.log_manager.directories if directory.is_online],
            config.metadata_log_dir,
            config.node_id,
            self._filesystem,
            self._clock,
            controller_listener=controller_listener_of(config),
        )
        own = properties[config.metadata_log_dir]
        if own.cluster_id is None or own.directory_id is None:
            raise ConfigError(f"{config.metadata_log_dir}: meta.properties names no cluster.id")
        self.cluster_id = own.cluster_id
        settings = settings_from_config(config, own.directory_id)
        self._quorum = EmbeddedQuorum(settings, self._filesystem, self._clock)
        return self._quorum.open()

    def _wire(self) -> None:
        config, clock, reactor = self.config, self._clock, self.reactor
        metadata = MetadataCache()
        self.controller = ControllerLoop(self._quorum, metadata, clock, self._fail)
        self._fetch_sessions = FetchSessions(clock, config.max_incremental_fetch_session_cache_slots)
        self.gate = DataGate(
            lambda partition: self.replica_manager.gate_appended(partition),
            lambda partition, number: self.replica_manager.gate_failed_to_append(partition, number),
            fetch_max_bytes=config.fetch_max_bytes,
            sessions=self._fetch_sessions.cache,
        )
        self.replica_manager = ReplicaManager(
            config,
            self.log_manager,
            metadata,
            clock,
            reactor.schedule,
            config.node_id,
            LocalAlterPartition(self.controller, config.node_id, reactor.post),
            on_leadership=self._leadership_changed,
            gate=self.gate,
        )
        self.alter_log_dirs = ReplicaAlterLogDirsManager(
            config,
            self.log_manager,
            self.replica_manager,
            self.log_cleaner.manager,
            clock=clock,
            run_on_owner=lambda work: run_on_owner(work, reactor.post, self._reactor_thread.is_alive),
            assign_directories=self._assign_directories,
        )
        self.group_coordinator = GroupCoordinator(
            GroupConfig.from_broker_config(config),
            log=ReplicatedCoordinatorLog(self.replica_manager, config.offsets_commit_timeout_ms),
            schedule=reactor.schedule,
            clock=clock,
            settings=ConsumerGroupSettings(config, lambda: metadata.image),
            resolve_regexes=RegexResolver(reactor.post),
        )
        self._wire_transactions(metadata)
        self.handler_pool = HandlerPool(
            config.num_io_threads,
            config.queued_max_requests,
            post=reactor.post,
            pause=reactor.pause_intake,
            resume=reactor.resume_intake,
        )
        self._publisher = MetadataPublisher(
            config,
            self.log_manager,
            self.replica_manager,
            config.node_id,
            reactor.post,
            self._run_on_owner,
            on_topics_deleted=self.group_coordinator.forget_topics,
            report_directories=self._assign_directories,
        )
        self.controller.add_listener(self._publisher)
        self.lifecycle = BrokerLifecycle(self.controller, config)
        self._handler_services = self._services(metadata)
        reactor.dispatch = Dispatcher(self._handler_services).dispatch
        if self._gated:
            self.gate.attach(reactor)

    def _bind_metrics(self, address: str) -> HttpServer:
        from kafkapy.metrics.http_server import HttpServer  # few brokers are watched

        return HttpServer(address)

    def _metrics_routes(self) -> Mapping[str, Route]:
        """What makes the page is imported for the first request, on the listener's thread."""

        @cache
        def page() -> BrokerPage:
            from kafkapy.server.exposition.broker_page import BrokerPage

            return BrokerPage(self._handler_services, self.log_cleaner, self.socket_server, lambda: self.state)

        return {
            "/metrics": lambda: page().metrics(),
            "/live": lambda: page().live(),
            "/ready": lambda: page().ready(),
        }

    def _wire_transactions(self, metadata: MetadataCache) -> None:
        config, clock, schedule = self.config, self._clock, self.reactor.schedule
        timeout_ms = config.request_timeout_ms
        self.producer_ids = ProducerIdManager(
            blocks_from_controller(self.controller, self.reactor.post, config.node_id)
        )
        self.marker_writer = LocalMarkerWriter(self.replica_manager, self.group_coordinator, clock, timeout_ms)

        def partition_count() -> int | None:
            topic = metadata.image.topics.by_name.get(TRANSACTION_STATE_TOPIC)
            return None if topic is None else len(topic.partitions)

        self.transaction_coordinator = TransactionCoordinator(
            TransactionConfig.from_broker_config(config),
            log=ReplicatedCoordinatorLog(self.replica_manager, timeout_ms),
            schedule=schedule,
            clock=clock,
            producer_ids=self.producer_ids,
            marker_writer=self.marker_writer,
            transaction_version=lambda: metadata.image.features.get(TRANSACTION_VERSION, 0),
            partition_count=partition_count,
        )
        self.transaction_verification = TransactionVerification(
            self.transaction_coordinator,
            self.replica_manager,
            schedule,
            clock,
            lambda: config.transaction_partition_verification_enable,
            retry_backoff_ms=config.add_partitions_to_txn_retry_backoff_ms,
            retry_backoff_max_ms=config.add_partitions_to_txn_retry_backoff_max_ms,
        )

    def _leadership_changed(self, led: list[Partition], followed: list[Partition]) -> None:
        self.group_coordinator.on_leadership(led, followed)
        self.transaction_coordinator.on_leadership(led, followed)

    def _services(self, metadata: MetadataCache) -> Services:
        config = self.config
        return Services(
            config=config,
            clock=self._clock,
            reactor=self.reactor,
            metadata=metadata,
            replica_manager=self.replica_manager,
            log_manager=self.log_manager,
            controller=self.controller,
            group_coordinator=self.group_coordinator,
            fetch_sessions=self._fetch_sessions,
            producer_ids=self.producer_ids,
            transaction_coordinator=self.transaction_coordinator,
            transaction_verification=self.transaction_verification,
            marker_writer=self.marker_writer,
            handler_pool=self.handler_pool,
            client_telemetry=ClientTelemetry(series_limit=config.kafkapy_metrics_series_limit),
            alter_log_dirs=self.alter_log_dirs,
            policies=self.policies,
            node_id=config.node_id,
            cluster_id=self.cluster_id,
        )

    def _stray_judge(self, image: MetadataImage) -> Callable[[bytes | None, TopicPartition, bytes], bool]:
        """A directory is a stray if the metadata does not know its topic id and partition as ours."""

        def is_stray(topic_id: bytes | None, partition: TopicPartition, directory_id: bytes) -> bool:
            topic = image.topics.by_id.get(topic_id) if topic_id is not None else None
            state = topic.partitions.get(partition.partition) if topic is not None else None
            return state is None or self.config.node_id not in state.replicas

        return is_stray

    def _assignment_judge(self, image: MetadataImage) -> Callable[[bytes, TopicPartition, bytes], bool]:
        """Whether the metadata has this broker's replica in a directory, or does not say where it is."""

        def is_assigned(topic_id: bytes, partition: TopicPartition, directory_id: bytes) -> bool:
            topic = image.topics.by_id.get(topic_id)
            state = topic.partitions.get(partition.partition) if topic is not None else None
            if state is None or self.config.node_id not in state.replicas:
                return False
            return state.directory_of(self.config.node_id) in (directory_id, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING)

        return is_assigned

    def _register(self, clean_broker_epoch: int) -> None:
        """Enters the cluster: a new broker epoch, directories where the logs were found, then leaders."""
        directory_ids = [directory.directory_id for directory in self.log_manager.directories if directory.is_online]
        self.lifecycle.register(directory_ids, clean_broker_epoch, self._advertised_listeners())
        self._is_registered = True
        self._report_offline_directories()  # what failed since we looked
        found = {
            (log.topic_id, log.topic_partition.partition): log.directory.directory_id for log in self.log_manager.logs()
        }
        wrong = partitions_to_assign(self.controller.image, self.config.node_id, found)
        if wrong:
            self._assign_directories(wrong).result()
        self.lifecycle.unfence()

    def _assign_directories(self, found: dict[tuple[bytes, int], bytes]) -> Future[None]:
        """Has the metadata say in which directory partitions are: (topic id, partition) -> directory id."""
        return self.controller.submit(lambda image: assign_directories(image, self.config.node_id, found))

    def _advertised_listeners(self) -> list[Listener]:
        """As configured; a listener on port 0 with the port that it got."""
        ports = {endpoint.name: endpoint.port for endpoint in self.socket_server.endpoints}
        return [
            each if each.port else each._replace(port=ports[each.name]) for each in self.config.advertised_listeners
        ]

    def _schedule_background(self) -> None:
        config, every, log_manager = self.config, self.background.every, self.log_manager
        recovery_point_ms = config.log_flush_offset_checkpoint_interval_ms
        every("checkpoint-recovery", recovery_point_ms, log_manager.write_recovery_points)
        every(
            "checkpoint-log-start",
            config.log_flush_start_offset_checkpoint_interval_ms,
            log_manager.write_log_start_offsets,
        )
        every(
            "checkpoint-high-watermark",
            config.replica_high_watermark_checkpoint_interval_ms,
            self.replica_manager.checkpoint_high_watermarks,
        )
        flush_ms = config.log_flush_scheduler_interval_ms
        if flush_ms < 1 << 40:
            every("flush", flush_ms, log_manager.run_flush)
        self._every_in_slices(config.log_retention_check_interval_ms, log_manager.retention_steps)
        expiry_ms = config.producer_id_expiration_check_interval_ms
        every("producer-expiry", expiry_ms, lambda: self.reactor.post(log_manager.remove_expired_producers))
        every("descriptors", CHECK_INTERVAL_MS, self._descriptors.check)

    def _every_in_slices(self, period_ms: int, steps: Callable[[], Iterator[object]]) -> None:
        """Work of the reactor's thread, one step per wake-up, so that requests are served in between."""

        def step(remaining: Iterator[object]) -> None:
            for _ in remaining:
                self.reactor.post(lambda: step(remaining))
                return

        self.background.every("retention", period_ms, lambda: self.reactor.post(lambda: step(steps())))

    def ready_line(self) -> str:
        listeners = ", ".join(map(str, self.socket_server.endpoints))
        directories = ", ".join(self.config.log_dirs)
        return f"kafkapy {__version__} ready: node {self.config.node_id} on {listeners}, data in {directories}"

    def reload(self, properties: Mapping[str, str]) -> None:
        """Takes over what the configuration file says now, as far as it may change while the broker runs.

        ConfigError if it cannot be served, and then nothing changes. Any thread.
        """
        changed, fixed = self.config.reload(properties)
        if fixed:
            names = ", ".join(sorted(fixed))
            logger.warning("The configuration file changed what only a restart can change: %s", names)
        logger.info("Configuration read again; changed: %s", ", ".join(sorted(changed)) or "nothing")
        if changed:
            self.reactor.post(lambda: self.replica_manager.follow_broker_config(self.controller.image))

    def _run_on_owner(self, work: Callable[[], object]) -> object:
        """Other threads than the reactor's: waits until the reactor has done `work`."""
        return run_on_owner_or_here(work, self.reactor.post, self._reactor_thread.is_alive)

    # -- failure -------------------------------------------------------------------------------------------------

    def _run_reactor(self) -> None:
        try:
            self.reactor.run()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """The broker cannot go on; any thread."""
        if self._fatal is None:
            self._fatal = error
            logger.critical("Fatal error, the broker stops: %s", error)
            self._on_fatal()

    def _directory_failed(self, path: str, error: Exception) -> None:
        is_last = not any(directory.is_online for directory in self.log_manager.directories)
        if is_last or path == self.config.metadata_log_dir:
            what = "all log directories have failed" if is_last else f"the metadata log's directory {path} has failed"
            self._fail(StorageError(path, f"{what}: {error}"))
            return
        self.reactor.post(lambda: self.replica_manager.handle_directory_failure(path))
        if self._is_registered:
            self._report_offline_directories()

    def _report_offline_directories(self) -> None:
        for directory in self.log_manager.directories:
            if not directory.is_online:
                self.lifecycle.report_offline(directory.directory_id)

    # -- stop ----------------------------------------------------------------------------------------------------

    def stop(self) -> int:
        """Stops everything; the exit status of the process: 0, or 1 after a fatal failure."""
        logger.info("[KafkaRaftServer nodeId=%d] shutting down", self.config.node_id)
        self.state = STOPPING
        self.log_cleaner.stop()
        self.alter_log_dirs.stop()
        self._unless_failed(self.lifecycle.give_up_leaderships)
        if self.metrics_server is not None:
            self.metrics_server.close()
        self._stop_serving()
        self._unless_failed(self.lifecycle.fence)
        self.controller.stop()
        self.policies.close()
        self.handler_pool.stop()
        self.background.stop()
        if self._fatal is not None:
            self.log_manager.unlock()
            logger.critical("[KafkaRaftServer nodeId=%d] stopped after: %s", self.config.node_id, self._fatal)
            return 1
        self.log_manager.write_high_watermarks()
        self.log_manager.shutdown(self.lifecycle.broker_epoch)
        logger.info("[KafkaRaftServer nodeId=%d] shut down completed", self.config.node_id)
        return 0 if self._fatal is None else 1

    def _unless_failed(self, step: Callable[[], None]) -> None:
        if self._fatal is None:
            try:
                step()
            except Exception as error:
                self._fail(error)

    def _stop_serving(self) -> None:
        if not self._reactor_thread.is_alive():
            return
        self.reactor.post(self.socket_server.close)
        self.reactor.post(self.transaction_coordinator.shutdown)
        self.reactor.post(self.group_coordinator.shutdown)
        self.reactor.post(self.replica_manager.shutdown)
        self.reactor.stop(STOP_GRACE_MS)
        self._reactor_thread.join()

    def abort(self) -> None:
        """Lets go of what a failed `start` has taken; the directories stay as after a crash."""
        socket_server = getattr(self, "socket_server", None)
        if socket_server is not None and not self._reactor_thread.is_alive():
            socket_server.close()
        if self.metrics_server is not None:
            self.metrics_server.close()
        self.policies.close()
        self.background.stop()
        self.log_manager.unlock()
