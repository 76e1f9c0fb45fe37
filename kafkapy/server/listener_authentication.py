"""The part of authentication that the connections of one listener share: mechanisms, limits and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy._core.reactor.reactor import Reactor
from kafkapy.config.listener_security import SaslSettings
from kafkapy.metrics.duration_window import DurationWindow
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.security.sasl.server_factory import MechanismMaker
from kafkapy.types import Clock


class AuthenticationCounts:
    """The numbers of authentications of one listener since the start. Written by the reactor's thread; any thread may
    read."""

    __slots__ = (
        "expired",
        "failed",
        "failed_again",
        "latency",
        "succeeded",
        "succeeded_again",
        "without_reauthentication",
    )

    def __init__(self, monotonic_ms: int) -> None:
        self.succeeded = 0
        self.failed = 0
        self.succeeded_again = 0  # re-authentications
        self.failed_again = 0
        self.without_reauthentication = 0  # of clients that cannot authenticate again on the same connection
        self.expired = 0  # connections closed because their session had expired
        self.latency = DurationWindow(monotonic_ms)


class ListenerAuthentication:
    """The SASL mechanisms of one listener, its limits and its counts. Only the reactor's thread may use it, except
    `counts`."""

    def __init__(
        self,
        settings: SaslSettings,
        makers: Mapping[str, MechanismMaker],
        reactor: Reactor,
        handler_pool: HandlerPool,
        clock: Clock,
    ) -> None:
        """`makers` maps the name of each enabled mechanism, in the configured order, to its constructor."""
        self.makers = dict(makers)
        self.max_receive_bytes = settings.max_receive_bytes
        self.failure_delay_ms = settings.failure_delay_ms
        self.max_session_ms = {name: settings.max_session_ms(name) for name in makers}
        self.reactor = reactor
        self.handler_pool = handler_pool
        self.clock = clock
        self.counts = AuthenticationCounts(clock.monotonic_ms())

    def delay(self, work: Callable[[], object]) -> None:
        """Runs `work` after connection.failed.authentication.delay.ms; at once if that is 0.

        Delays the response to a failed authentication, which `work` sends.
        """
        if self.failure_delay_ms:
            self.reactor.schedule(self.failure_delay_ms, work)
        else:
            work()
