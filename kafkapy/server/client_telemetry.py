"""The clients that push their metrics to this broker, and the subscriptions that apply to them (KIP-714)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from kafkapy._core.bytes.crc32c import crc32c
from kafkapy.controller.client_metrics import ClientMetricsSubscription, WantedMetrics
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import CLIENT_METRICS_RESOURCE, MetadataImage
from kafkapy.server.client_series import ClientSeriesTable

logger = logging.getLogger("kafka.server.ClientMetricsManager")

# The number of stored clients; the client that was silent for longest is removed first.
LARGEST_CACHE = 16384
# The number of clients' series, unless the configuration sets another limit.
MOST_SERIES = 2000
NEVER = -1
# After these errors of a push a client may request its subscription again at once.
ASK_AGAIN = frozenset([Error.UNKNOWN_SUBSCRIPTION_ID, Error.UNSUPPORTED_COMPRESSION_TYPE])


class ClientInstance:
    """One client, and the metrics that its subscription requests from it. Only the reactor's thread may use it."""

    __slots__ = ("is_terminating", "last_error", "last_get_ms", "last_push_ms", "subscription_id", "wanted")

    def __init__(self, client_instance_id: bytes, wanted: WantedMetrics) -> None:
        self.last_get_ms = NEVER
        self.last_push_ms = NEVER
        self.last_error = Error.NONE
        self.is_terminating = False
        self.ask_for(client_instance_id, wanted)

    def ask_for(self, client_instance_id: bytes, wanted: WantedMetrics) -> None:
        self.wanted = wanted
        self.subscription_id = subscription_id(client_instance_id, wanted)

    def may_get(self, monotonic_ms: int) -> bool:
        """Returns whether the client may send GetTelemetrySubscriptions now; if so, records the time.

        The client may send the request if the push interval has passed since its last request or push, or if its last
        push failed with an error after which it needs its subscription again.
        """
        last_ms = max(self.last_get_ms, self.last_push_ms)
        if last_ms != NEVER and monotonic_ms - last_ms < self.wanted.interval_ms and self.last_error not in ASK_AGAIN:
            return False
        self.last_get_ms = monotonic_ms
        return True

    def may_push(self, monotonic_ms: int) -> bool:
        """Returns whether the client may push now; if so, records the time.

        The client may push if the push interval has passed since its last push. The first push after
        GetTelemetrySubscriptions is never too early, because clients send it after a random part of the interval.
        """
        is_early = self.last_push_ms != NEVER and monotonic_ms - self.last_push_ms < self.wanted.interval_ms
        if is_early and self.last_get_ms <= self.last_push_ms:
            return False
        self.last_push_ms = monotonic_ms
        return True


def subscription_id(client_instance_id: bytes, wanted: WantedMetrics) -> int:
    """Returns the id of a client's subscription, a hash of the requested metrics and the client's id, as in Apache
    Kafka."""
    text = f"[{', '.join(wanted.metrics)}]{wanted.interval_ms}"
    high, low = int.from_bytes(client_instance_id[:8], "big"), int.from_bytes(client_instance_id[8:], "big")
    mixed = high ^ low
    unsigned = crc32c(text.encode()) ^ (mixed >> 32 ^ mixed) & 0xFFFFFFFF
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned


def _subscriptions(image: MetadataImage) -> Iterator[ClientMetricsSubscription]:
    for (resource_type, name), overrides in image.configs.items():
        if resource_type == CLIENT_METRICS_RESOURCE:
            try:
                yield ClientMetricsSubscription.from_overrides(overrides)
            except ApiError as error:  # Apache Kafka accepts more regular expressions
                logger.warning("The client metrics subscription %s is ignored: %s", name, error.message)


class ClientTelemetry:
    """The clients that push metrics, the parsed subscriptions, and the counters of pushes. Only the reactor's thread
    may use it."""

    def __init__(self, largest_cache: int = LARGEST_CACHE, series_limit: int = MOST_SERIES) -> None:
        self._largest_cache = largest_cache
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._configs: Mapping[tuple[int, str], Mapping[str, str]] | None = None
        self._subscriptions: list[ClientMetricsSubscription] = []
        self.pushes = 0
        self.pushed_bytes = 0  # decompressed
        self.refused_pushes = 0
        self.series = ClientSeriesTable(series_limit)

    def __len__(self) -> int:
        return len(self._instances)

    def instance(
        self, client_instance_id: bytes, attributes: Mapping[str, str], image: MetadataImage
    ) -> ClientInstance:
        """Returns the instance of a client, with the metrics that the subscriptions in `image` request.

        An instance that is not known is created. `attributes` describe the client, such as its software's name; a
        subscription applies if it matches them.
        """
        wanted = self._wanted(attributes, image)
        found = self._instances.get(client_instance_id)
        if found is None:
            found = self._instances[client_instance_id] = ClientInstance(client_instance_id, wanted)
            if len(self._instances) > self._largest_cache:
                self._instances.popitem(last=False)
        else:
            self._instances.move_to_end(client_instance_id)
            if found.wanted != wanted:
                found.ask_for(client_instance_id, wanted)
        return found

    def _wanted(self, attributes: Mapping[str, str], image: MetadataImage) -> WantedMetrics:
        if image.configs is not self._configs:
            self._subscriptions = list(_subscriptions(image))
            self._configs = image.configs
        return WantedMetrics.together(each for each in self._subscriptions if each.matches(attributes))
