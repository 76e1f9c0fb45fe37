"""Constructs the parts of a broker and connects them with each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from kafkapy._core.gate.data_gate import DataGate
from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config import BrokerConfig
from kafkapy.controller.partitions import assign_directories
from kafkapy.controller.policy import Policies
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.regex_resolver import RegexResolver
from kafkapy.coordinator.producer_id_manager import ProducerIdManager, blocks_from_controller
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.metadata.features import TRANSACTION_VERSION
from kafkapy.metadata.image import MetadataCache
from kafkapy.metadata.internal_topics import TRANSACTION_STATE_TOPIC
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.quorum.broker_lifecycle import BrokerLifecycle
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.quorum.embedded_quorum import EmbeddedQuorum
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.server.background_tasks import BackgroundTasks
from kafkapy.server.client_telemetry import ClientTelemetry
from kafkapy.server.controller_ports import LocalAlterPartition
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.fetch_session import FetchSessions
from kafkapy.server.metadata_publisher import Directories, MetadataPublisher
from kafkapy.server.owner_thread import run_on_owner, run_on_owner_or_here
from kafkapy.server.services import Services
from kafkapy.server.transaction_markers import LocalMarkerWriter
from kafkapy.server.transaction_verification import TransactionVerification
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import Clock


class Foundation(NamedTuple):
    """The parts that exist before anything is opened. Immutable."""

    config: BrokerConfig
    clock: Clock
    filesystem: Filesystem
    reactor: Reactor
    reactor_thread: threading.Thread
    background: BackgroundTasks
    log_manager: LogManager
    log_cleaner: LogCleaner

    def run_on_reactor(self, work: Callable[[], object]) -> object:
        """Runs `work` on the reactor's thread, waits for its end, and returns its result.

        Raises CancelledError if that thread ends before.
        """
        return run_on_owner(work, self.reactor.post, self.reactor_thread.is_alive)

    def run_on_reactor_or_here(self, work: Callable[[], object]) -> object:
        """Runs `work` on the reactor's thread, or on this thread while the reactor does not run; returns its result."""
        return run_on_owner_or_here(work, self.reactor.post, self.reactor_thread.is_alive)


class Parts(NamedTuple):
    """The parts that need the opened metadata log. Immutable."""

    controller: ControllerLoop
    gate: DataGate
    replica_manager: ReplicaManager
    alter_log_dirs: ReplicaAlterLogDirsManager
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    handler_pool: HandlerPool
    publisher: MetadataPublisher
    lifecycle: BrokerLifecycle
    services: Services


class _Transactions(NamedTuple):
    producer_ids: ProducerIdManager
    marker_writer: LocalMarkerWriter
    coordinator: TransactionCoordinator
    verification: TransactionVerification


def build_foundation(
    config: BrokerConfig,
    clock: Clock,
    filesystem: Filesystem,
    reactor: Reactor,
    reactor_thread: threading.Thread,
    on_directory_failure: Callable[[str, Exception], None],
) -> Foundation:
    """Constructs the parts that a start needs first; opens and starts nothing."""
    background = BackgroundTasks(clock)
    log_manager = LogManager(
        config,
        filesystem=filesystem,
        clock=clock,
        on_directory_failure=on_directory_failure,
        schedule=lambda delay_ms, work: background.once("storage", delay_ms, work),
        run_in_background=lambda work: background.soon("flush", work),
        run_on_owner=lambda work: run_on_owner_or_here(work, reactor.post, reactor_thread.is_alive),
    )
    log_cleaner = LogCleaner(
        config,
        log_manager,
        filesystem=filesystem,
        clock=clock,
        run_on_owner=lambda work: run_on_owner(work, reactor.post, reactor_thread.is_alive),
        schedule=lambda delay_ms, work: background.once("cleaned", delay_ms, work),
    )
    return Foundation(config, clock, filesystem, reactor, reactor_thread, background, log_manager, log_cleaner)


def build_parts(
    foundation: Foundation,
    quorum: EmbeddedQuorum,
    cluster_id: str,
    policies: Policies,
    on_fatal: Callable[[BaseException], None],
) -> Parts:
    """Constructs everything that serves clients; starts nothing. `on_fatal` is called by the controller's thread."""
    config, clock, reactor, node_id = foundation.config, foundation.clock, foundation.reactor, foundation.config.node_id
    metadata = MetadataCache()
    controller = ControllerLoop(quorum, metadata, clock, on_fatal)

    def report_directories(found: Directories) -> Future[None]:
        return controller.submit(lambda image: assign_directories(image, node_id, found))

    def on_leadership(led: list[Partition], followed: list[Partition]) -> None:
        group_coordinator.on_leadership(led, followed)
        transactions.coordinator.on_leadership(led, followed)

    fetch_sessions = FetchSessions(clock, config.max_incremental_fetch_session_cache_slots)
    gate = DataGate(
        lambda partition: replica_manager.gate_appended(partition),
        lambda partition, number: replica_manager.gate_failed_to_append(partition, number),
        fetch_max_bytes=config.fetch_max_bytes,
        sessions=fetch_sessions.cache,
    )
    alter_partition = LocalAlterPartition(controller, node_id, reactor.post)
    replica_manager = ReplicaManager(
        config, foundation.log_manager, metadata, clock, reactor.schedule, node_id, alter_partition,
        on_leadership=on_leadership, gate=gate,
    )  # fmt: skip
    alter_log_dirs = ReplicaAlterLogDirsManager(
        config,
        foundation.log_manager,
        replica_manager,
        foundation.log_cleaner.manager,
        clock=clock,
        run_on_owner=foundation.run_on_reactor,
        assign_directories=report_directories,
    )
    group_coordinator = _build_group_coordinator(foundation, replica_manager, metadata)
    transactions = _build_transactions(foundation, controller, replica_manager, group_coordinator, metadata)
    publisher = MetadataPublisher(
        config,
        foundation.log_manager,
        replica_manager,
        node_id,
        reactor.post,
        foundation.run_on_reactor_or_here,
        on_topics_deleted=group_coordinator.forget_topics,
        report_directories=report_directories,
    )
    controller.add_listener(publisher)
    handler_pool = _build_handler_pool(config, reactor)
    services = Services(
        config=config, clock=clock, reactor=reactor, metadata=metadata, replica_manager=replica_manager,
        log_manager=foundation.log_manager, controller=controller, group_coordinator=group_coordinator,
        fetch_sessions=fetch_sessions, producer_ids=transactions.producer_ids,
        transaction_coordinator=transactions.coordinator, transaction_verification=transactions.verification,
        marker_writer=transactions.marker_writer, handler_pool=handler_pool,
        client_telemetry=ClientTelemetry(series_limit=config.kafkapy_metrics_series_limit),
        alter_log_dirs=alter_log_dirs, policies=policies, node_id=node_id, cluster_id=cluster_id,
    )  # fmt: skip
    return Parts(
        controller, gate, replica_manager, alter_log_dirs, group_coordinator, transactions.coordinator, handler_pool,
        publisher, BrokerLifecycle(controller, config), services,
    )  # fmt: skip


def _build_handler_pool(config: BrokerConfig, reactor: Reactor) -> HandlerPool:
    return HandlerPool(
        config.num_io_threads,
        config.queued_max_requests,
        post=reactor.post,
        pause=reactor.pause_intake,
        resume=reactor.resume_intake,
    )


def _build_group_coordinator(
    foundation: Foundation, replica_manager: ReplicaManager, metadata: MetadataCache
) -> GroupCoordinator:
    config, reactor = foundation.config, foundation.reactor
    return GroupCoordinator(
        GroupConfig.from_broker_config(config),
        log=ReplicatedCoordinatorLog(replica_manager, config.offsets_commit_timeout_ms),
        schedule=reactor.schedule,
        clock=foundation.clock,
        settings=ConsumerGroupSettings(config, lambda: metadata.image),
        resolve_regexes=RegexResolver(reactor.post),
    )


def _build_transactions(
    foundation: Foundation,
    controller: ControllerLoop,
    replica_manager: ReplicaManager,
    group_coordinator: GroupCoordinator,
    metadata: MetadataCache,
) -> _Transactions:
    config, clock, schedule = foundation.config, foundation.clock, foundation.reactor.schedule
    timeout_ms = config.request_timeout_ms
    producer_ids = ProducerIdManager(blocks_from_controller(controller, foundation.reactor.post, config.node_id))
    marker_writer = LocalMarkerWriter(replica_manager, group_coordinator, clock, timeout_ms)

    def partition_count() -> int | None:
        topic = metadata.image.topics.by_name.get(TRANSACTION_STATE_TOPIC)
        return None if topic is None else len(topic.partitions)

    coordinator = TransactionCoordinator(
        TransactionConfig.from_broker_config(config),
        log=ReplicatedCoordinatorLog(replica_manager, timeout_ms),
        schedule=schedule,
        clock=clock,
        producer_ids=producer_ids,
        marker_writer=marker_writer,
        transaction_version=lambda: metadata.image.features.get(TRANSACTION_VERSION, 0),
        partition_count=partition_count,
    )
    verification = TransactionVerification(
        coordinator,
        replica_manager,
        schedule,
        clock,
        lambda: config.transaction_partition_verification_enable,
        retry_backoff_ms=config.add_partitions_to_txn_retry_backoff_ms,
        retry_backoff_max_ms=config.add_partitions_to_txn_retry_backoff_max_ms,
    )
    return _Transactions(producer_ids, marker_writer, coordinator, verification)
