"""Construction of the parts of a broker, and of their connections with each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.gate.data_gate import DataGate
from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config import BrokerConfig
from kafkapy.config.listener_security import uses_sasl
from kafkapy.controller.policy import Policies
from kafkapy.controller.settings import ControllerSettings
from kafkapy.coordinator.group.consumer_settings import ConsumerGroupSettings
from kafkapy.coordinator.group.group_config import GroupConfig
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.regex_resolver import RegexResolver
from kafkapy.coordinator.producer_id_manager import ProducerIdManager
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.errors import ConfigError
from kafkapy.metadata.features import TRANSACTION_VERSION
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.metadata.internal_topics import TRANSACTION_STATE_TOPIC
from kafkapy.metadata.topics_image import NO_LEADER, TopicImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.quorum.format_directory import check_formatted, format_directories
from kafkapy.quorum.metadata_quorum import MetadataQuorum
from kafkapy.quorum.quorum_settings import controller_listeners_of, raft_config, settings_from_config
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.replica.replica_selector import own_rack
from kafkapy.server.background_tasks import BackgroundTasks
from kafkapy.server.client_telemetry import ClientTelemetry
from kafkapy.server.controller_link import ControllerLink, ControllerPorts, local_ports, remote_ports
from kafkapy.server.coordinator_log import ReplicatedCoordinatorLog
from kafkapy.server.failed_produce import failed_produce_answers
from kafkapy.server.fetch_session import FetchSessions
from kafkapy.server.metadata_publisher import MetadataPublisher
from kafkapy.server.node_authorizer import make_authorizer
from kafkapy.server.other_nodes import OtherNodes
from kafkapy.server.owner_thread import run_on_owner, run_on_owner_or_here
from kafkapy.server.serial_thread import SerialThread
from kafkapy.server.services import ControllerServices, Services
from kafkapy.server.transaction_markers import ClusterMarkerWriter, LocalMarkerWriter
from kafkapy.server.transaction_verification import TransactionVerification
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import Clock, TopicPartition

if TYPE_CHECKING:
    from kafkapy.controller.periodic_tasks import PeriodicTasks
    from kafkapy.network.listener_tls import TlsListeners
    from kafkapy.replica.fetcher.fetcher_manager import ReplicaFetcherManager
    from kafkapy.server.broker_requests import BrokerRequests
    from kafkapy.server.listener_authentication import ListenerAuthentication
    from kafkapy.server.remote_markers import RemoteMarkers
    from kafkapy.server.remote_transactions import RemoteTransactionCoordinators
    from kafkapy.server.share_services import ShareServices


# Longest wait for pending responses and unsent bytes at a clean stop.
STOP_GRACE_MS = 1000


class Foundation(NamedTuple):
    """The parts of a broker or controller that exist before the metadata log is opened. The object does not change
    after its construction.
    """

    config: BrokerConfig
    clock: Clock
    filesystem: Filesystem
    reactor: Reactor
    reactor_thread: threading.Thread
    background: BackgroundTasks
    log_manager: LogManager
    log_cleaner: LogCleaner
    other_nodes: OtherNodes

    def run_on_reactor(self, work: Callable[[], object]) -> object:
        """Runs `work` on the reactor's thread, waits for its end, and returns its result.

        Raises CancelledError if the reactor's thread ends before `work` was run.
        """
        return run_on_owner(work, self.reactor.post, self.reactor_thread.is_alive)

    def run_on_reactor_or_here(self, work: Callable[[], object]) -> object:
        """Runs `work` on the reactor's thread, or on the calling thread while the reactor does not run; returns its
        result.
        """
        return run_on_owner_or_here(work, self.reactor.post, self.reactor_thread.is_alive)


class Parts(NamedTuple):
    """The parts of a broker that can be constructed only when the metadata log is open. The object does not change
    after its construction.
    """

    controller: ControllerLoop
    gate: DataGate
    replica_manager: ReplicaManager
    alter_log_dirs: ReplicaAlterLogDirsManager
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    handler_pool: HandlerPool
    publisher: MetadataPublisher
    link: ControllerLink
    services: Services


class _Transactions(NamedTuple):
    """The parts of a broker that serve transactions."""

    producer_ids: ProducerIdManager
    local_marker_writer: LocalMarkerWriter
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
    """Constructs the parts that a start needs first; opens and starts nothing.

    `on_directory_failure(directory, error)` is called when a log directory cannot be used any more.
    """
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
    return Foundation(
        config, clock, filesystem, reactor, reactor_thread, background, log_manager, log_cleaner, OtherNodes(config)
    )


def open_quorum(foundation: Foundation) -> tuple[MetadataQuorum, MetadataImage]:
    """Formats the directories of a node that is a cluster of its own, if necessary, and opens the metadata log.

    Returns the quorum and the image of the records that are known to be committed. Raises ConfigError, StorageError or
    OSError.
    """
    config, clock, filesystem = foundation.config, foundation.clock, foundation.filesystem
    listeners = controller_listeners_of(config)
    directories = [directory.path for directory in foundation.log_manager.directories if directory.is_online]
    if not config.forms_own_cluster:
        check_formatted([config.metadata_log_dir, *directories])
    properties = format_directories(
        directories,
        config.metadata_log_dir,
        config.node_id,
        filesystem,
        clock,
        controller_listener=listeners[0] if listeners else None,
    )
    own = properties[config.metadata_log_dir]
    if own.cluster_id is None or own.directory_id is None:
        raise ConfigError(f"{config.metadata_log_dir}: meta.properties names no cluster.id")
    quorum = MetadataQuorum(
        settings_from_config(config),
        raft_config(config, own.cluster_id, own.directory_id, listeners),
        filesystem,
        clock,
        foundation.other_nodes.make_raft_transport,
    )
    return quorum, quorum.open()


def build_parts(
    foundation: Foundation,
    metadata_quorum: MetadataQuorum,
    cluster_id: str,
    policies: Policies,
    on_fatal: Callable[[BaseException], None],
    tls: TlsListeners | None,
) -> Parts:
    """Constructs the parts that serve clients; starts nothing. `on_fatal` is called after a failure that the broker
    cannot survive, by the thread in which the failure occurred. `tls` is None if no listener uses TLS."""
    config, clock, reactor, node_id = foundation.config, foundation.clock, foundation.reactor, foundation.config.node_id
    metadata = MetadataCache()
    controller = ControllerLoop(metadata_quorum, metadata, clock, on_fatal)
    link = _build_link(foundation, controller, cluster_id, on_fatal)

    def on_leadership(led: list[Partition], followed: list[Partition]) -> None:
        group_coordinator.on_leadership(led, followed)
        transactions.coordinator.on_leadership(led, followed)
        services.on_optional_leadership(led, followed)

    fetch_sessions = FetchSessions(clock, config.max_incremental_fetch_session_cache_slots)
    gate = DataGate(
        lambda partition: replica_manager.gate_appended(partition),
        lambda partition, number: replica_manager.gate_failed_to_append(partition, number),
        fetch_max_bytes=config.fetch_max_bytes,
        sessions=fetch_sessions.cache,
        own_rack=own_rack(config),
    )
    replica_manager = ReplicaManager(
        config, foundation.log_manager, metadata, clock, reactor.schedule, node_id, link,
        on_leadership=on_leadership, gate=gate,
        make_fetchers=lambda may_follow: build_fetchers(foundation, replica_manager, metadata, may_follow),
    )  # fmt: skip
    alter_log_dirs = ReplicaAlterLogDirsManager(
        config, foundation.log_manager, replica_manager, foundation.log_cleaner.manager, clock=clock,
        run_on_owner=foundation.run_on_reactor, assign_directories=link.assign_directories,
    )  # fmt: skip
    group_coordinator = _build_group_coordinator(foundation, replica_manager, metadata)
    transactions = _build_transactions(foundation, link, replica_manager, group_coordinator, metadata)
    publisher = MetadataPublisher(
        config, foundation.log_manager, replica_manager, node_id, reactor.post, foundation.run_on_reactor_or_here,
        disk_thread=SerialThread("kafka-log-directories", on_fatal),
        on_topics_deleted=lambda topics: forget_topics(services, topics),
        report_directories=link.assign_directories,
        on_broker_config=lambda: broker_config_changed(services, link),
        on_features=lambda: services.features_changed(),
    )  # fmt: skip
    handler_pool = build_handler_pool(config, reactor)
    services = Services(
        config=config, clock=clock, reactor=reactor, metadata=metadata, replica_manager=replica_manager,
        log_manager=foundation.log_manager, controller=controller, group_coordinator=group_coordinator,
        fetch_sessions=fetch_sessions, producer_ids=transactions.producer_ids,
        transaction_coordinator=transactions.coordinator, transaction_verification=transactions.verification,
        local_marker_writer=transactions.local_marker_writer, handler_pool=handler_pool,
        client_telemetry=ClientTelemetry(series_limit=config.kafkapy_metrics_series_limit),
        alter_log_dirs=alter_log_dirs, policies=policies, node_id=node_id, cluster_id=cluster_id, quorum=controller,
        kraft_version=lambda: metadata_quorum.machine.kraft_version, quorum_leader=lambda: metadata_quorum.leader_id,
        forwarding=link.forwarding, authorizer=make_authorizer(config),
        authentication=build_authentication(config, reactor, handler_pool, clock, metadata),
        tls_listeners=tls,
        make_shares=lambda: _build_shares(foundation, services, metadata),
    )  # fmt: skip
    if config.zookeeper_listener or config.zookeeper_mirror_connect:
        _build_zookeeper(foundation, services, metadata)
    controller.make_tasks = lambda image, monotonic_ms: periodic_tasks(services, image, monotonic_ms)
    gate.on_produce_failed = failed_produce_answers(services)
    return Parts(
        controller, gate, replica_manager, alter_log_dirs, group_coordinator, transactions.coordinator, handler_pool,
        publisher, link, services,
    )  # fmt: skip


def forget_topics(services: Services, topics: Sequence[TopicImage]) -> None:
    """Deletes the state that the coordinators have for deleted topics."""
    topic_ids = [topic.topic_id for topic in topics]
    services.group_coordinator.forget_topics([topic.name for topic in topics], topic_ids)
    if services.loaded_shares is not None:
        services.loaded_shares.forget_topics(topic_ids)


def _build_link(
    foundation: Foundation,
    controller: ControllerLoop,
    cluster_id: str,
    on_fatal: Callable[[BaseException], None],
) -> ControllerLink:
    config, reactor = foundation.config, foundation.reactor

    def make_remote(broker_epoch: int) -> ControllerPorts:
        return remote_ports(
            config,
            controller,
            foundation.other_nodes,
            cluster_id,
            reactor.post,
            reactor.schedule,
            on_fatal,
            broker_epoch,
            cordoned,
        )

    cordoned = foundation.log_manager.cordoned_directories
    is_alone = controller.quorum.is_alone
    ports = local_ports(config, controller, reactor.post, cordoned) if is_alone else make_remote(-1)
    return ControllerLink(ports, make_remote)


def broker_config_changed(services: Services, link: ControllerLink) -> None:
    """Applies the changes of dynamic keys that need an action: those of `cordoned.log.dirs`, whose directories `link`
    reports to the controller, and those that `node_config_changed` applies."""
    node_config_changed(services)
    link.lifecycle.report_cordoned()


def node_config_changed(services: ControllerServices) -> None:
    """Applies the changes of dynamic keys that need an action on brokers and controllers: reads changed key stores and
    trust stores of TLS again, and changes the number of threads for handlers. Any thread may call it."""
    if services.tls_listeners is not None:
        services.tls_listeners.refresh()
    pool, thread_count = services.handler_pool, services.config.num_io_threads
    services.reactor.post(lambda: pool.set_thread_count(thread_count))


def periodic_tasks(services: ControllerServices, image: MetadataImage, monotonic_ms: int) -> PeriodicTasks:
    """Returns the periodic tasks of an active controller. The first interval of each task begins at `monotonic_ms`.

    `image` is the newest image. Called after another node has registered as a broker: as long as a broker is the only
    node of its cluster, it needs neither the tasks nor their module, which is therefore imported here.
    """
    from kafkapy.controller.periodic_tasks import PeriodicTasks, TaskIntervals

    return PeriodicTasks(
        services.controller_operations.sessions(image),
        ControllerSettings.from_config(services.config),
        TaskIntervals.from_config(services.config),
        monotonic_ms,
        services.clock.wall_ms,
    )


def build_fetchers(
    foundation: Foundation,
    replica_manager: ReplicaManager,
    metadata: MetadataCache,
    may_follow: Callable[[Partition], bool],
) -> ReplicaFetcherManager:
    """Constructs the fetchers of the partitions that this broker follows.

    `may_follow(partition)` returns whether a followed partition may be fetched at present. The fetchers' modules are
    imported here, because a broker that is the only node of its cluster does not need them.
    """
    from kafkapy.network.outgoing import OutgoingConnector
    from kafkapy.replica.fetcher.fetch_connection import FetchPorts
    from kafkapy.replica.fetcher.fetcher_manager import ReplicaFetcherManager
    from kafkapy.replica.fetcher.settings import FetchSettings

    config, reactor, background = foundation.config, foundation.reactor, foundation.background
    listener_name = config.inter_broker_listener_name
    client = foundation.other_nodes.broker_client
    tls = None if client is None else client.tls
    connector = OutgoingConnector(
        reactor,
        lambda work: background.soon("resolve", work),
        tls=None if tls is None else tls.reactor_context,
        verifies_name=tls is None or tls.verifies_name,
    )
    security = None if client is None else client.security

    def leader_endpoint(broker_id: int) -> tuple[str, int] | None:
        registration = metadata.image.brokers.get(broker_id)
        endpoint = None if registration is None else registration.endpoints.get(listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def broker_epoch() -> int:
        registration = metadata.image.brokers.get(config.node_id)
        return -1 if registration is None else registration.epoch

    ports = FetchPorts(
        connect=connector.connect,
        schedule=reactor.schedule,
        monotonic_ms=foundation.clock.monotonic_ms,
        leader_endpoint=leader_endpoint,
        broker_epoch=broker_epoch,
        metadata_version=lambda: metadata.image.metadata_version,
        on_high_watermarks=replica_manager.on_followed_high_watermarks,
        on_truncated=foundation.log_cleaner.manager.truncate_checkpoint,
        sasl_mechanism=(lambda host: None) if security is None else security.mechanism,
    )
    return ReplicaFetcherManager(FetchSettings.from_config(config), ports, may_follow)


def build_broker_requests(foundation: Foundation, metadata: MetadataCache, purpose: str) -> BrokerRequests:
    """Constructs the sender of requests to other brokers for one purpose, such as transaction markers; `purpose` is the
    end of its client id."""
    from kafkapy.nodes.node_channel import Destination
    from kafkapy.server.broker_requests import BrokerRequests

    config, reactor = foundation.config, foundation.reactor
    listener_name = config.inter_broker_listener_name

    def find_broker(broker_id: int) -> Destination | None:
        registration = metadata.image.brokers.get(broker_id)
        endpoint = None if registration is None or registration.fenced else registration.endpoints.get(listener_name)
        return None if endpoint is None else Destination(broker_id, endpoint.host, endpoint.port)

    return BrokerRequests(
        foundation.other_nodes.thread,
        find_broker,
        reactor.post,
        reactor.schedule,
        client_id=f"broker-{config.node_id}-{purpose}",
        timeout_ms=config.request_timeout_ms,
    )


def build_authentication(
    config: BrokerConfig, reactor: Reactor, handler_pool: HandlerPool, clock: Clock, metadata: MetadataCache
) -> dict[str, ListenerAuthentication] | None:
    """Returns the authentication of each listener with SASL, by the listener's name; None if no listener has SASL.

    Imports the modules of SASL only if a listener has it. Raises ConfigError for a mechanism that cannot be served.
    """
    listeners = [listener for listener in config.listeners if uses_sasl(listener)]
    if not listeners:
        return None
    from kafkapy.server.sasl_listeners import build_sasl_listeners

    return build_sasl_listeners(config, [each.name for each in listeners], reactor, handler_pool, clock, metadata)


def build_handler_pool(config: BrokerConfig, reactor: Reactor) -> HandlerPool:
    """Returns the pool of threads for the handlers of requests that may block."""
    return HandlerPool(
        config.num_io_threads,
        config.queued_max_requests,
        post=reactor.post,
        pause=reactor.pause_intake,
        resume=reactor.resume_intake,
    )


def _build_shares(foundation: Foundation, services: Services, metadata: MetadataCache) -> ShareServices:
    """Constructs the parts that serve share groups. Imports their modules, which many brokers do not need."""
    from kafkapy.server.share_construction import build_shares

    return build_shares(services, lambda purpose: build_broker_requests(foundation, metadata, purpose))


def _build_zookeeper(foundation: Foundation, services: Services, metadata: MetadataCache) -> None:
    """Constructs the listener for ZooKeeper's clients, and the mirror, as far as they are configured.

    The mirror writes Kafka's znodes to a ZooKeeper of the user. Imports modules that few brokers need.
    """
    from kafkapy.server.zookeeper_construction import build_mirror, build_zookeeper, build_zookeeper_offsets
    from kafkapy.server.zookeeper_offsets import PURPOSE

    if foundation.config.zookeeper_mirror_connect:
        services.zookeeper_mirror = build_mirror(services)
    if not foundation.config.zookeeper_listener:
        return
    services.zookeeper = build_zookeeper(services)
    services.zookeeper_offsets = build_zookeeper_offsets(
        services, services.zookeeper, lambda: build_broker_requests(foundation, metadata, PURPOSE)
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
    link: ControllerLink,
    replica_manager: ReplicaManager,
    group_coordinator: GroupCoordinator,
    metadata: MetadataCache,
) -> _Transactions:
    config, clock, schedule = foundation.config, foundation.clock, foundation.reactor.schedule
    timeout_ms = config.request_timeout_ms
    producer_ids = ProducerIdManager(link.allocate_producer_ids)
    local_marker_writer = LocalMarkerWriter(replica_manager, group_coordinator, clock, timeout_ms)

    def partition_count() -> int | None:
        topic = metadata.image.topics.by_name.get(TRANSACTION_STATE_TOPIC)
        return None if topic is None else len(topic.partitions)

    def find_leader(topic_partition: TopicPartition) -> int | None:
        partition = replica_manager.partitions.get(topic_partition)
        if partition is not None and partition.is_leader:
            return None
        state = metadata.image.topics.partition(*topic_partition)
        return None if state is None or state.leader in (NO_LEADER, config.node_id) else state.leader

    def find_coordinator(transactional_id: str) -> int | None:
        return find_leader(TopicPartition(TRANSACTION_STATE_TOPIC, coordinator.partition_for(transactional_id)))

    def make_remote_markers() -> RemoteMarkers:
        from kafkapy.server.remote_markers import RemoteMarkers

        return RemoteMarkers(build_broker_requests(foundation, metadata, "txn-markers"))

    def make_remote_coordinators() -> RemoteTransactionCoordinators:
        from kafkapy.server.remote_transactions import RemoteTransactionCoordinators

        return RemoteTransactionCoordinators(build_broker_requests(foundation, metadata, "add-partitions"))

    coordinator = TransactionCoordinator(
        TransactionConfig.from_broker_config(config),
        log=ReplicatedCoordinatorLog(replica_manager, timeout_ms),
        schedule=schedule,
        clock=clock,
        producer_ids=producer_ids,
        marker_writer=ClusterMarkerWriter(local_marker_writer, find_leader, make_remote_markers),
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
        find_coordinator=find_coordinator,
        make_remote=make_remote_coordinators,
    )
    return _Transactions(producer_ids, local_marker_writer, coordinator, verification)
