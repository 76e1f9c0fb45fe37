"""GetTelemetrySubscriptions and PushTelemetry, version 0 (KIP-714).

Subscriptions say which metrics a client pushes. The broker checks and counts the pushed metrics, and shows them on its
metrics page. Both APIs are always served, but listed for clients only while the metrics listener is on (see
api_versions).

Not implemented: passing the pushed metrics to a plugin. Histograms in a push are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from kafkapy._core.bytes.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, DecompressionError, decompress_chunks
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkapy.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kafkapy.server.api_registry import serves
from kafkapy.server.client_telemetry import ClientInstance, ClientTelemetry
from kafkapy.server.handler_call import submit_part
from kafkapy.server.otlp import MalformedMetrics, Points, read_metrics
from kafkapy.server.request_context import RequestContext
from kafkapy.types import ZERO_UUID, random_uuid, uuid_to_string

logger = logging.getLogger("kafka.server.ClientMetricsManager")

# In Apache Kafka's order, the preferred codec first.
ACCEPTED_CODECS = [ZSTD, LZ4, GZIP, SNAPPY]
RESERVED_IDS = frozenset([ZERO_UUID, bytes(15) + b"\x01"])
# The largest decompressed size of a push, as a multiple of telemetry.max.bytes.
LARGEST_GROWTH = 16
# The largest number of points of one push; a client sends a few hundred.
MOST_POINTS = 5000


def get_telemetry_subscriptions_error(
    request: GetTelemetrySubscriptionsRequest, version: int, error: Error, message: str | None
) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(error_code=error)


@serves(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, on_error=get_telemetry_subscriptions_error)
def handle_get_telemetry_subscriptions(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    client_instance_id = request.client_instance_id
    if client_instance_id == ZERO_UUID:
        client_instance_id = random_uuid()
    instance = _instance(context, client_instance_id)
    instance.is_terminating = False
    if not instance.may_get(context.services.clock.monotonic_ms()):
        instance.last_error = Error.THROTTLING_QUOTA_EXCEEDED
        raise ApiError(Error.THROTTLING_QUOTA_EXCEEDED)
    instance.last_error = Error.NONE
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=ACCEPTED_CODECS,
        push_interval_ms=instance.wanted.interval_ms,
        telemetry_max_bytes=context.services.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.wanted.metrics),
    )


def push_telemetry_error(
    request: PushTelemetryRequest, version: int, error: Error, message: str | None
) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error)


@serves(ApiKey.PUSH_TELEMETRY, 0, 0, on_error=push_telemetry_error)
def handle_push_telemetry(context: RequestContext, request: PushTelemetryRequest) -> None:
    """Checks a push on the reactor's thread, decodes it on the handler pool, and stores the values on the reactor's
    thread."""
    services = context.services
    telemetry: ClientTelemetry = services.client_telemetry
    largest = services.config.telemetry_max_bytes
    monotonic_ms = services.clock.monotonic_ms()
    try:
        if request.client_instance_id in RESERVED_IDS:
            raise ApiError(Error.INVALID_REQUEST)
        instance = _instance(context, request.client_instance_id)
        try:
            _check_push(instance, request, monotonic_ms, largest)
        except ApiError as error:
            instance.last_error = error.error
            raise
    except ApiError:
        telemetry.refused_pushes += 1
        raise
    instance.last_error = Error.NONE
    instance.is_terminating = request.terminating
    instance_id = uuid_to_string(request.client_instance_id)

    def store(size: int, found: Points) -> None:
        telemetry.pushes += 1
        telemetry.pushed_bytes += size
        telemetry.series.store(instance_id, context.client_id or "", found, monotonic_ms, instance.wanted.interval_ms)
        context.respond(PushTelemetryResponse())

    def refuse(error: Error) -> None:
        telemetry.refused_pushes += 1
        context.respond(PushTelemetryResponse(error_code=error))

    def work() -> Callable[[], None]:
        try:
            data = _decompressed(request, largest * LARGEST_GROWTH)
            found = read_metrics(data, MOST_POINTS)
        except ApiError as error:
            return partial(refuse, error.error)
        except MalformedMetrics as error:
            logger.info("A push of metrics by %s cannot be read: %s", context.client_id, error)
            return partial(refuse, Error.INVALID_RECORD)
        return partial(store, len(data), found)

    submit_part(handle_push_telemetry, context, request, work)


def _check_push(instance: ClientInstance, request: PushTelemetryRequest, monotonic_ms: int, largest: int) -> None:
    """Raises ApiError if the push is too early, has more than `largest` bytes, names another subscription than the
    client's, or is compressed with a codec that is not accepted.

    A client's last push (`terminating`) may be early; a push after the last one is refused. `monotonic_ms` is the
    present time.
    """
    if instance.is_terminating:
        raise ApiError(Error.INVALID_REQUEST)
    if not instance.may_push(monotonic_ms) and not request.terminating:
        raise ApiError(Error.THROTTLING_QUOTA_EXCEEDED)
    if request.subscription_id != instance.subscription_id:
        raise ApiError(Error.UNKNOWN_SUBSCRIPTION_ID)
    if request.compression_type != NONE and request.compression_type not in ACCEPTED_CODECS:
        raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE)
    if len(request.metrics) > largest:
        raise ApiError(Error.TELEMETRY_TOO_LARGE)


def _decompressed(request: PushTelemetryRequest, largest: int) -> bytes | memoryview:
    """Returns the decompressed metrics, at most `largest` bytes.

    Raises ApiError TELEMETRY_TOO_LARGE if there are more bytes, and INVALID_RECORD if the metrics cannot be
    decompressed.
    """
    if request.compression_type == NONE or not request.metrics:
        metrics: bytes | memoryview = request.metrics
        return metrics
    opened = bytearray()
    try:
        for chunk in decompress_chunks(request.compression_type, request.metrics):
            opened += chunk
            if len(opened) > largest:
                raise ApiError(Error.TELEMETRY_TOO_LARGE)
    except DecompressionError as error:
        raise ApiError(Error.INVALID_RECORD) from error
    return bytes(opened)


def _instance(context: RequestContext, client_instance_id: bytes) -> ClientInstance:
    attributes = {
        "client_instance_id": uuid_to_string(client_instance_id),
        "client_id": context.client_id or "",
        "client_software_name": context.session.client_software_name,
        "client_software_version": context.session.client_software_version,
        "client_source_address": context.connection.peer_host,
        "client_source_port": str(context.connection.peer_port),
    }
    services = context.services
    found: ClientInstance = services.client_telemetry.instance(client_instance_id, attributes, services.metadata.image)
    return found
