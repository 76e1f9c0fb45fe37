"""Metrics of the authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.named_tuple import NamedTuple
from kafkapy.server.services import Services

if TYPE_CHECKING:
    from kafkapy.security.authorizer import Authorizer
    from kafkapy.security.standard_authorizer import StandardAuthorizer

# The interval over which Kafka computes rates: two samples of 30 seconds, of which the first is complete.
LONGEST_MS, SHORTEST_MS = 60_000, 30_000


_METRICS = (
    table.ACLS,
    table.AUTHORIZATION_RATE,
    table.AUTHORIZATION_ALLOWED_RATE,
    table.AUTHORIZATION_DENIED_RATE,
    table.AUTHORIZATIONS,
)


class _Count(NamedTuple):
    """The numbers of requests that the authorizer has decided, and has denied, from its start until `monotonic_ms`."""

    monotonic_ms: int
    requests: int
    denied: int


class AuthorizationMetrics:
    """The metrics of the authorizer. Used by one thread.

    The counts are read only when a page is requested. A rate is therefore computed from the present counts and those of
    the oldest page that was requested within the last minute.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._counts = [_Count(services.clock.monotonic_ms(), 0, 0)]

    def write(self, page: Page) -> None:
        """Writes the metrics. They have no values unless the authorizer is Kafka's StandardAuthorizer."""
        authorizer = _standard(self._services.authorizer)
        if authorizer is None:
            for metric in _METRICS:
                page.family(metric, ())
            return
        labels = (type(authorizer).__name__, "authorizer.class.name", "broker")
        now = _Count(self._services.clock.monotonic_ms(), authorizer.requests, authorizer.denied)
        before = self._before(now)
        minutes = max(now.monotonic_ms - before.monotonic_ms, SHORTEST_MS) / 60_000
        requested, denied = now.requests - before.requests, now.denied - before.denied
        page.family(table.ACLS, [(labels, len(authorizer.index))])
        page.family(table.AUTHORIZATION_RATE, [(labels, requested / minutes)])
        page.family(table.AUTHORIZATION_ALLOWED_RATE, [(labels, (requested - denied) / minutes)])
        page.family(table.AUTHORIZATION_DENIED_RATE, [(labels, denied / minutes)])
        page.family(table.AUTHORIZATIONS, [(("allowed",), now.requests - now.denied), (("denied",), now.denied)])

    def _before(self, now: _Count) -> _Count:
        """Stores `now`, and returns the earlier counts from which rates are computed: the oldest counts of the last
        minute. If no metrics page was requested in the last minute, returns the counts of the last page before it.
        """
        recent = [each for each in self._counts if now.monotonic_ms - each.monotonic_ms <= LONGEST_MS]
        before = (recent or self._counts[-1:])[0]
        self._counts = [*(recent or [before]), now]
        return before


def _standard(authorizer: Authorizer | None) -> StandardAuthorizer | None:
    """Returns the authorizer if it is Kafka's StandardAuthorizer, otherwise None."""
    if authorizer is None:
        return None
    from kafkapy.security.standard_authorizer import StandardAuthorizer  # not imported without an authorizer

    return authorizer if isinstance(authorizer, StandardAuthorizer) else None
