"""The parts of a broker that handlers use, as one object in the context of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

from kafkapy._core.reactor.reactor import Connection, Reactor
from kafkapy.config import BrokerConfig
from kafkapy.controller.policy import NO_POLICIES, Policies
from kafkapy.metadata.image import MetadataCache
from kafkapy.metadata.internal_topics import SHARE_GROUP_STATE_TOPIC
from kafkapy.metrics.request_errors import RequestErrors
from kafkapy.server.api_registry import BROKER, CONTROLLER, ApiRegistry
from kafkapy.server.handlers import (
    CONTROLLER_HANDLER_MODULES,
    CONTROLLER_VERSIONS,
    HANDLER_MODULES,
    broker_versions,
)
from kafkapy.server.large_fetches import LargeFetches
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.controller.port import Controller
    from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
    from kafkapy.coordinator.producer_id_manager import ProducerIdManager
    from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from kafkapy.network.handler_pool import HandlerPool
    from kafkapy.network.listener_tls import TlsListeners
    from kafkapy.quorum.controller_loop import ControllerLoop
    from kafkapy.replica.partition import Partition
    from kafkapy.replica.replica_alter_log_dirs import ReplicaAlterLogDirsManager
    from kafkapy.replica.replica_manager import ReplicaManager
    from kafkapy.security.authorizer import Authorizer
    from kafkapy.security.principal_builder import PrincipalBuilder
    from kafkapy.server.audit.broker_audit import BrokerAudit
    from kafkapy.server.client_telemetry import ClientTelemetry
    from kafkapy.server.controller_operations import ControllerOperations
    from kafkapy.server.fetch_session import FetchSessions
    from kafkapy.server.forwarding_port import ForwardingPort
    from kafkapy.server.gate_rights import GateRights
    from kafkapy.server.listener_authentication import ListenerAuthentication
    from kafkapy.server.quotas.client_quotas import ClientQuotas
    from kafkapy.server.quotas.mutation_quota import MutationQuotas
    from kafkapy.server.share_services import ShareServices
    from kafkapy.server.streams_topics import StreamsTopics
    from kafkapy.server.transaction_markers import LocalMarkerWriter
    from kafkapy.server.transaction_verification import TransactionVerification
    from kafkapy.server.zookeeper_mirror import ZooKeeperMirror
    from kafkapy.server.zookeeper_offsets import ZooKeeperOffsets
    from kafkapy.storage.log_manager import LogManager
    from kafkapy.zookeeper.service import ZooKeeperService


class CommonServices(TypedDict):
    """The keyword arguments of the constructors of ControllerServices and Services."""

    config: BrokerConfig
    clock: Clock
    reactor: Reactor
    metadata: MetadataCache
    node_id: int
    cluster_id: str
    handler_pool: HandlerPool
    controller: Controller
    policies: NotRequired[Policies]
    api_registry: NotRequired[ApiRegistry | None]
    forwarding: NotRequired[ForwardingPort | None]
    kraft_version: NotRequired[Callable[[], int]]
    quorum_leader: NotRequired[Callable[[], int] | None]
    quorum: NotRequired[ControllerLoop | None]
    authorizer: NotRequired[Authorizer | None]
    authentication: NotRequired[Mapping[str, ListenerAuthentication] | None]
    tls_listeners: NotRequired[TlsListeners | None]


class ControllerServices:
    """The parts of a node that serve the listeners of a controller. Created before the reactor runs; only `forwarding`
    and the quotas change later.

    `forwarding` is None while this node is its whole cluster; it is set, on the reactor's thread, when other nodes
    join. `kraft_version` returns the finalized level of kraft.version, which is in the quorum's own log.
    `quorum_leader` returns the id of the quorum's leader, -1 while the leader is unknown; it is None if this node is
    the only voter. Without an `authorizer` every request is allowed. `authentication` has the listeners with SASL by
    name; it is None if there are none, and `tls_listeners` is None if no listener uses TLS. `gate_rights` stores
    permissions for the gate, the compiled code that serves usual Produce and Fetch requests; it is None without an
    authorizer. `quotas` and `mutation_quotas` are None until the first quota is set (`server/quota_listener`).
    """

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        reactor: Reactor,
        metadata: MetadataCache,
        node_id: int,
        cluster_id: str,
        handler_pool: HandlerPool,
        controller: Controller,
        policies: Policies = NO_POLICIES,
        api_registry: ApiRegistry | None = None,
        forwarding: ForwardingPort | None = None,
        kraft_version: Callable[[], int] = lambda: 0,
        quorum_leader: Callable[[], int] | None = None,
        quorum: ControllerLoop | None = None,
        authorizer: Authorizer | None = None,
        authentication: Mapping[str, ListenerAuthentication] | None = None,
        tls_listeners: TlsListeners | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.reactor = reactor
        self.metadata = metadata
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.handler_pool = handler_pool
        self.controller = controller
        self.policies = policies
        self.api_registry = api_registry or ApiRegistry(
            HANDLER_MODULES, BROKER, broker_versions(has_zookeeper=bool(config.zookeeper_listener))
        )
        self.controller_api_registry = ApiRegistry(CONTROLLER_HANDLER_MODULES, CONTROLLER, CONTROLLER_VERSIONS)
        self.forwarding = forwarding
        self.kraft_version = kraft_version
        self.quorum_leader = quorum_leader
        self._quorum = quorum
        self.authorizer = authorizer
        self.authentication = authentication
        self.gate_rights: GateRights | None = None
        self.quotas: ClientQuotas | None = None
        self.mutation_quotas: MutationQuotas | None = None
        self.tls_listeners = tls_listeners
        self.request_errors = RequestErrors()

    @cached_property
    def controller_operations(self) -> ControllerOperations:
        """The operations that other nodes request from this controller; their module is imported at the first
        access."""
        from kafkapy.server.controller_operations import ControllerOperations

        return ControllerOperations(self.config, self.clock, self.cluster_id, self.kraft_version)

    @cached_property
    def principal_builder(self) -> PrincipalBuilder:
        """The builder of principal.builder.class; its module is imported at the first access. Raises ConfigError."""
        from kafkapy.security.principal_builder import make_principal_builder

        return make_principal_builder(self.config)

    @property
    def quorum(self) -> ControllerLoop:
        """The object that runs the quorum thread: Raft, the replay of committed metadata, and the controller's
        operations.
        """
        assert self._quorum is not None, "the services have no quorum"
        return self._quorum

    def active_controller_id(self) -> int:
        """Returns the id of the active controller, or -1 while it is unknown. Any thread may call it."""
        if self.quorum_leader is not None:
            return self.quorum_leader()
        return self.node_id if self.controller.is_active else -1

    def registry(self, *, is_controller: bool) -> ApiRegistry:
        """Returns the APIs that are served on listeners of the controller (`is_controller`) or of brokers."""
        return self.controller_api_registry if is_controller else self.api_registry


class Services(ControllerServices):
    """The parts of a broker that handlers use. The broker creates it before the reactor runs.

    `make_shares` constructs the parts that serve share groups. `local_marker_writer` serves WriteTxnMarkers: it appends
    the markers that end transactions to partitions that this broker leads.
    """

    def __init__(
        self,
        *,
        log_manager: LogManager,
        replica_manager: ReplicaManager,
        group_coordinator: GroupCoordinator,
        fetch_sessions: FetchSessions,
        producer_ids: ProducerIdManager,
        transaction_coordinator: TransactionCoordinator,
        transaction_verification: TransactionVerification,
        local_marker_writer: LocalMarkerWriter,
        client_telemetry: ClientTelemetry,
        alter_log_dirs: ReplicaAlterLogDirsManager,
        make_shares: Callable[[], ShareServices] | None = None,
        **common: Unpack[CommonServices],
    ) -> None:
        super().__init__(**common)
        self.log_manager = log_manager
        self.replica_manager = replica_manager
        self.group_coordinator = group_coordinator
        self.fetch_sessions = fetch_sessions
        self.producer_ids = producer_ids
        self.transaction_coordinator = transaction_coordinator
        self.transaction_verification = transaction_verification
        self.local_marker_writer = local_marker_writer
        self.client_telemetry = client_telemetry
        self.alter_log_dirs = alter_log_dirs
        self.large_fetches = LargeFetches()
        # The topics whose creation this broker has requested from the controller in this process, without a result yet.
        self.requested_topics: set[str] = set()
        self._make_shares = make_shares
        self.loaded_shares: ShareServices | None = None
        # Both only with zookeeper.listener.
        self.zookeeper: ZooKeeperService | None = None
        self.zookeeper_offsets: ZooKeeperOffsets | None = None
        # Only with zookeeper.mirror.connect.
        self.zookeeper_mirror: ZooKeeperMirror | None = None
        # Only with kafkapy.audit.topics.
        self.audit: BrokerAudit | None = None

    @property
    def shares(self) -> ShareServices:
        """The parts that serve share groups; their modules are imported at the first access. Only the reactor's thread
        may use it."""
        if self.loaded_shares is None:
            assert self._make_shares is not None, "the broker serves no share groups"
            self.loaded_shares = self._make_shares()
        return self.loaded_shares

    def connection_closed(self, connection: Connection) -> None:
        """Ends the share sessions of a connection that has ended."""
        if self.loaded_shares is not None:
            self.loaded_shares.connection_closed(connection)

    def features_changed(self) -> None:
        """Removes all share sessions and share partitions if the feature share.version was switched off."""
        if self.loaded_shares is not None:
            self.loaded_shares.features_changed()

    def shutdown_optional(self) -> None:
        """Ends the parts that not every broker has: the share groups, and the listener for ZooKeeper's clients."""
        if self.loaded_shares is not None:
            self.loaded_shares.shutdown()
        if self.zookeeper_mirror is not None:
            self.zookeeper_mirror.stop()
        if self.zookeeper is not None:
            self.zookeeper.shutdown()

    def on_optional_leadership(self, led: list[Partition], followed: list[Partition]) -> None:
        """Notifies share groups, the listener for ZooKeeper's clients and the audit, if this broker has them, of new
        leaders.

        This broker now leads the partitions `led`, and follows the partitions `followed`.
        """
        if self.zookeeper is not None:
            self.zookeeper.on_leadership(led, followed)
        if self.audit is not None:
            self.audit.logs.on_leadership(led, followed)
        if self.loaded_shares is not None or any(
            partition.topic_partition.topic == SHARE_GROUP_STATE_TOPIC for partition in led
        ):
            self.shares.on_leadership(led, followed)

    @cached_property
    def streams_topics(self) -> StreamsTopics:
        """The requests for internal topics of Kafka Streams; their module is imported at the first access."""
        from kafkapy.server.streams_topics import StreamsTopics

        return StreamsTopics(self.clock)
