"""Subscriptions to clients' metrics, and pushes. The responses are those of Apache Kafka 4.3."""

import pytest

from kafkapy._core.bytes.compression import ZSTD, compress
from kafkapy.controller.client_metrics import ClientMetricsSubscription, WantedMetrics
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import CLIENT_METRICS_RESOURCE, EMPTY_IMAGE
from kafkapy.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.push_telemetry import PushTelemetryRequest
from kafkapy.server.client_telemetry import ClientTelemetry, subscription_id
from kafkapy.server.handlers.configs import handle_incremental_alter_configs
from kafkapy.server.handlers.telemetry import handle_get_telemetry_subscriptions, handle_push_telemetry
from kafkapy.types import ZERO_UUID
from tests.harness.admin import AdminHarness, error_of
from tests.otlp import DELTA, pushed

EIGHTS, ONE = bytes([8] * 16), bytes(15) + b"\x01"
THROTTLED = Error.THROTTLING_QUOTA_EXCEEDED
SUBSCRIBED = {"metrics": "org.apache.kafka.producer.,org.b", "interval.ms": "500", "match": "client_id=te.t"}


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data")
    subscribe(harness, "sub", **SUBSCRIBED)
    yield harness
    harness.loop.stop()


def subscribe(harness, name, **entries):
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in entries.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=CLIENT_METRICS_RESOURCE, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [answer] = harness.send(handle_incremental_alter_configs, request, 1).responses
    return error_of(answer)


def get(harness, client_instance_id=ZERO_UUID):
    request = GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id)
    return harness.send(handle_get_telemetry_subscriptions, request, 0)


def push(harness, asked, **fields):
    """Pushes metrics for `asked`, a response of `get`, and returns the error code."""
    asked_for = {"client_instance_id": asked.client_instance_id, "subscription_id": asked.subscription_id}
    return harness.send(handle_push_telemetry, PushTelemetryRequest(**asked_for | fields), 0).error_code


def test_a_client_is_told_what_is_wanted(harness):
    answer = get(harness)
    assert (answer.error_code, answer.throttle_time_ms) == (0, 0)
    assert answer.client_instance_id not in (ZERO_UUID, ONE)
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert (answer.push_interval_ms, answer.telemetry_max_bytes, answer.delta_temporality) == (500, 1048576, True)
    assert answer.requested_metrics == ["org.apache.kafka.producer.", "org.b"]
    # Apache Kafka computes the same subscription ids.
    assert [get(harness, each).subscription_id for each in (EIGHTS, ONE)] == [1210438780, 1210438781]


def test_subscriptions_together(harness):
    subscribe(harness, "sub2", metrics="org.c,org.b", interval_ms="1000")
    subscribe(harness, "another client", metrics="org.d", interval_ms="100", match="client_id=tes")
    answer = get(harness)
    assert answer.requested_metrics == ["org.apache.kafka.producer.", "org.b", "org.c"]
    assert answer.push_interval_ms == 500
    subscribe(harness, "sub3", metrics="*", match="client_source_address=127[.].*,client_source_port=50000")
    assert get(harness).requested_metrics == ["*"]
    for name in ("sub", "sub2", "sub3"):
        subscribe(harness, name, match="client_software_name=unknown")
    answer = get(harness)
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300000)


def test_pushes_in_their_interval(harness):
    asked = get(harness)
    assert push(harness, asked) == 0  # the first push is never early
    assert push(harness, asked) == THROTTLED
    assert get(harness, asked.client_instance_id).error_code == THROTTLED
    harness.clock.advance(500)
    assert push(harness, asked, metrics=pushed(("records.sent", 3))) == 0
    telemetry = harness.services.client_telemetry
    assert (telemetry.pushes, telemetry.pushed_bytes) == (2, len(pushed(("records.sent", 3))))
    assert harness.services.client_telemetry.refused_pushes == 1


def test_after_an_unknown_subscription_a_client_asks_again_at_once(harness):
    asked = get(harness)
    subscribe(harness, "sub", metrics="org.d")
    harness.clock.advance(1)
    assert push(harness, asked) == Error.UNKNOWN_SUBSCRIPTION_ID
    harness.clock.advance(1)
    again = get(harness, asked.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ["org.d"])
    assert again.subscription_id != asked.subscription_id
    assert push(harness, again) == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_instance_id": ZERO_UUID}, Error.INVALID_REQUEST),
        ({"client_instance_id": ONE}, Error.INVALID_REQUEST),
        ({"client_instance_id": EIGHTS}, Error.UNKNOWN_SUBSCRIPTION_ID),
        ({"subscription_id": 1}, Error.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(1048577)}, Error.TELEMETRY_TOO_LARGE),
        ({"compression_type": ZSTD, "metrics": compress(ZSTD, bytes(1 << 25))}, Error.TELEMETRY_TOO_LARGE),
        ({"compression_type": ZSTD, "metrics": b"garbage"}, Error.INVALID_RECORD),
        ({"metrics": b"garbage"}, Error.INVALID_RECORD),
    ],
)
def test_pushes_refused(harness, fields, error):
    assert push(harness, get(harness), **fields) == error
    assert harness.services.client_telemetry.pushes == 0


def test_a_compressed_push_is_counted_as_it_was(harness):
    metrics = pushed(*(("records.sent", number) for number in range(50)))
    assert push(harness, get(harness), compression_type=ZSTD, metrics=compress(ZSTD, metrics)) == 0
    assert harness.services.client_telemetry.pushed_bytes == len(metrics)


def test_what_was_pushed_is_kept_until_the_client_is_silent(harness):
    asked = get(harness)
    for _ in range(3):
        metrics = pushed(("records.sent", 5, DELTA), ("queue", 7), ("latency.avg", 1.5))
        assert push(harness, asked, metrics=metrics) == 0
        harness.clock.advance(500)
    series = harness.services.client_telemetry.series
    monotonic_ms = harness.clock.monotonic_ms()
    found = {each.metric: (each.value, each.client_id) for each in series.current(monotonic_ms)}
    assert found == {"records.sent": (15, "test"), "queue": (7, "test"), "latency.avg": (1.5, "test")}
    assert not series.current(monotonic_ms + 3 * 500)


def test_the_last_push_of_a_client(harness):
    asked = get(harness)
    assert push(harness, asked) == 0
    assert push(harness, asked, terminating=True) == 0  # accepted early
    assert push(harness, asked, terminating=True) == push(harness, asked) == Error.INVALID_REQUEST
    assert get(harness, asked.client_instance_id).error_code == THROTTLED  # the client is still known
    harness.clock.advance(500)
    assert push(harness, asked) == 0


def test_the_cache_is_bounded():
    telemetry = ClientTelemetry(largest_cache=2)
    first = telemetry.instance(b"1" * 16, {}, EMPTY_IMAGE)
    telemetry.instance(b"2" * 16, {}, EMPTY_IMAGE)
    assert telemetry.instance(b"1" * 16, {}, EMPTY_IMAGE) is first
    telemetry.instance(b"3" * 16, {}, EMPTY_IMAGE)
    assert len(telemetry) == 2
    assert telemetry.instance(b"1" * 16, {}, EMPTY_IMAGE) is first


def test_a_subscription_of_apache_kafka_that_cannot_be_read(caplog):
    configs = {(CLIENT_METRICS_RESOURCE, "java"): {"match": "client_id=\\p{Alpha}"}}
    ClientTelemetry().instance(b"1" * 16, {}, EMPTY_IMAGE._replace(configs=configs))
    assert "The client metrics subscription java is ignored: Illegal client matching pattern" in caplog.text


def test_an_id_tells_clients_and_wishes_apart():
    wishes = [WantedMetrics(("a",), 100), WantedMetrics(("b",), 100), WantedMetrics(("a",), 200)]
    assert len({subscription_id(client, wish) for client in (EIGHTS, ONE) for wish in wishes}) == 6


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"interval.ms": "5"}, 42, "Invalid value 5 for interval.ms, "
         "interval must be between 100 and 3600000 (1 hour)"),
        ({"interval.ms": "3600001"}, 42, None),
        ({"interval.ms": "x"}, 40, "Invalid value x for configuration interval.ms: Not a number of type INT"),
        ({"match": "nope=x"}, 40, "Illegal client matching pattern: nope=x"),
        ({"match": "client_id=["}, 40, "Illegal client matching pattern: client_id=["),
        ({"match": "client_id"}, 40, "Illegal client matching pattern: client_id"),
        ({"nope": ""}, 42, "Unknown client metrics configuration: nope"),
    ],
)  # fmt: skip
def test_a_subscription_refused(overrides, error, message):
    with pytest.raises(ApiError) as caught:
        ClientMetricsSubscription.from_overrides(overrides)
    assert caught.value.error == error
    assert message is None or caught.value.message == message
