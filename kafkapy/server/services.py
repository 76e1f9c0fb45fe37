"""What handlers may use: one object, filled by the broker, handed to each request's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config import BrokerConfig
from kafkapy.controller.policy import NO_POLICIES, Policies
from kafkapy.metadata.image import MetadataCache
from kafkapy.metrics.request_errors import RequestErrors
from kafkapy.server.api_registry import ApiRegistry
from kafkapy.server.handlers import HANDLER_MODULES
from kafkapy.types import Clock

if TYPE_CHECKING:
    from kafkapy.network.handler_pool import HandlerPool


class Services:
    """The parts of a broker by name. Set up before the reactor runs, then only read.

    Managers of the layers below are typed loosely, so that a test of one handler brings only what that handler needs;
    their own classes say what they offer.
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
        log_manager: Any = None,
        replica_manager: Any = None,
        controller: Any = None,
        group_coordinator: Any = None,
        fetch_sessions: Any = None,
        producer_ids: Any = None,
        transaction_coordinator: Any = None,
        transaction_verification: Any = None,
        marker_writer: Any = None,
        client_telemetry: Any = None,
        alter_log_dirs: Any = None,
        policies: Policies = NO_POLICIES,
        api_registry: ApiRegistry | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.reactor = reactor
        self.metadata = metadata
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.handler_pool = handler_pool
        self.log_manager = log_manager
        self.replica_manager = replica_manager
        self.controller = controller
        self.group_coordinator = group_coordinator
        self.fetch_sessions = fetch_sessions
        self.producer_ids = producer_ids
        self.transaction_coordinator = transaction_coordinator
        self.transaction_verification = transaction_verification
        self.marker_writer = marker_writer
        self.client_telemetry = client_telemetry
        self.alter_log_dirs = alter_log_dirs
        self.policies = policies
        self.api_registry = api_registry or ApiRegistry(HANDLER_MODULES)
        self.request_errors = RequestErrors()
