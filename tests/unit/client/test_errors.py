"""The exceptions of the client, and the messages and representations that its users see."""

from __future__ import annotations

import pickle

import pytest

import kafkapy.client
from kafkapy.client import (
    ApiError,
    ClientClosed,
    ConfigError,
    Consumer,
    KafkapyError,
    NotSubscribed,
    Producer,
    RequestTimedOut,
    SubscriptionError,
    TopicPartition,
    TransactionError,
)
from kafkapy.client.admin import Admin, CreatedTopic, NewTopic, QuorumReplica, TopicDescription, TopicListing
from kafkapy.client.cluster import Node, TopicInfo, parse_addresses
from kafkapy.errors import Error
from kafkapy.types import uuid_from_string
from tests.harness.client_log import LogBrokers

T0 = TopicPartition("t", 0)
ID_TEXT = "LEe_JlKaRkK3sXj7oG2-dQ"
TOPIC_ID = uuid_from_string(ID_TEXT)


@pytest.fixture
def brokers():
    harness = LogBrokers()
    harness.fill("t", ["a"])
    yield harness
    harness.close()


def test_every_exception_of_the_client_has_one_base_class():
    exceptions = [getattr(kafkapy.client, name) for name in kafkapy.client.__all__]
    exceptions = [each for each in exceptions if isinstance(each, type) and issubclass(each, BaseException)]
    assert len(exceptions) >= 10
    assert all(issubclass(each, KafkapyError) for each in exceptions)


def test_the_earlier_names_of_exceptions_still_exist():
    from kafkapy.client.fetcher import LogTruncated, NoOffsetForPartition
    from kafkapy.client.network import WakeupError
    from kafkapy.client.subscription import SubscriptionError as Earlier
    from kafkapy.client.transactions import TransactionError as EarlierTransactionError

    assert Earlier is SubscriptionError and issubclass(LogTruncated, NoOffsetForPartition)
    assert EarlierTransactionError is TransactionError and WakeupError is kafkapy.client.WakeupError


def test_a_time_out_is_a_timeout_error_and_an_api_error():
    error = RequestTimedOut("no response within 3 s")
    assert isinstance(error, TimeoutError) and isinstance(error, ApiError)
    assert error.error is Error.REQUEST_TIMED_OUT and error.errno is None
    assert str(error) == error.message == "no response within 3 s"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is RequestTimedOut and str(again) == str(error)


def test_an_unreachable_broker_is_the_same_error_in_every_client(brokers):
    brokers.down.add(1)
    with brokers.producer(max_block_ms=2000) as producer, pytest.raises(RequestTimedOut):
        producer.send("t", "a")
    with brokers.admin(default_api_timeout_ms=2000, request_timeout_ms=1000) as admin, pytest.raises(RequestTimedOut):
        admin.list_topics()
    with brokers.consumer() as consumer, pytest.raises(RequestTimedOut):
        consumer.end_offsets([T0], timeout=2)


def test_a_delivery_that_takes_too_long_is_the_same_error(brokers):
    with brokers.producer(enable_idempotence=False, linger_ms=10_000_000, delivery_timeout_ms=2**31 - 1) as producer:
        with pytest.raises(RequestTimedOut, match=r"No acknowledgement within 0\.5 s"):
            producer.send("t", "a").result(0.5)
        producer._sender.fail_all(ApiError(Error.UNKNOWN_SERVER_ERROR))


def test_closed_clients_raise_one_error(brokers):
    producer, consumer, admin = brokers.producer(), brokers.consumer(), brokers.admin()
    for each in (producer, consumer, admin):
        each.close()
        each.close()
        assert repr(each).endswith(" closed>")
    for call in (lambda: producer.send("t", "a"), lambda: consumer.assign([T0]), admin.list_topics):
        with pytest.raises(ClientClosed):
            call()


def test_calls_in_the_wrong_state_are_named(brokers):
    with brokers.consumer() as consumer, pytest.raises(NotSubscribed):
        consumer.poll()
    with brokers.producer() as producer, pytest.raises(TransactionError, match=r"transactional\.id"):
        producer.begin_transaction()


@pytest.mark.parametrize("record", [{"value": 5}, {"value": "a", "key": 5}])
def test_a_value_that_cannot_be_sent_names_the_serializers(brokers, record):
    with brokers.producer(enable_idempotence=False) as producer:
        producer.partitions_for("t")
        with pytest.raises(TypeError, match=r"bytes, str or None.*value\.serializer, not int"):
            producer.send("t", **record)


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_properties_that_are_no_mapping_are_refused_with_a_hint(kind):
    with pytest.raises(TypeError, match=r'mapping of configuration keys, not str.*bootstrap_servers="localhost:9092"'):
        kind("localhost:9092")


def test_a_missing_key_that_was_misspelt_is_named():
    with pytest.raises(ConfigError, match=r'"bootstrap\.servers".*Did you mean it by bootstrap\.server\?'):
        Producer(bootstrap_server="localhost:9092")
    with pytest.raises(ConfigError, match=r"no default value\.$"):
        Producer()


def test_a_missing_port_is_named():
    with pytest.raises(ConfigError, match=r"localhost.*the port is missing"):
        parse_addresses(["localhost"])
    with pytest.raises(ConfigError) as raised:
        parse_addresses(["localhost:99999"])
    assert "missing" not in str(raised.value)


def test_topics_to_create_must_be_new_topics(brokers):
    with brokers.admin() as admin, pytest.raises(TypeError, match=r"NewTopic, not str: use NewTopic\('abc'\)"):
        admin.create_topics(["abc"])


def test_ids_of_topics_and_directories_are_shown_as_text():
    shown = [
        CreatedTopic(TOPIC_ID, 1, 1, {}),
        TopicListing("t", TOPIC_ID, False),
        TopicDescription("t", TOPIC_ID, False, ()),
        TopicInfo("t", TOPIC_ID, False, ()),
        QuorumReplica(1, TOPIC_ID, 0, 0, 0),
    ]
    for each in shown:
        assert f"'{ID_TEXT}'" in repr(each) and repr(each).startswith(f"{type(each).__name__}(")


def test_clients_and_deliveries_are_shown_with_what_identifies_them(brokers):
    assert repr(brokers.consumer(client_id="c", group_id="g")) == "<Consumer client_id='c' group_id='g'>"
    assert repr(brokers.admin(client_id="a")) == "<Admin client_id='a'>"
    with brokers.producer(
        client_id="p", enable_idempotence=False, linger_ms=10_000_000, delivery_timeout_ms=2**31 - 1
    ) as producer:
        assert repr(producer) == "<Producer client_id='p'>"
        future = producer.send("t", "a")
        assert repr(future) == "<DeliveryFuture t-0 pending>"
        producer._sender.fail_all(ApiError(Error.INVALID_RECORD, "bad"))
        assert repr(future) == "<DeliveryFuture t-0 failed: INVALID_RECORD: bad>"
    assert (
        repr(brokers.producer(client_id="p", transactional_id="x")) == "<Producer client_id='p' transactional_id='x'>"
    )
    assert repr(ApiError(Error.INVALID_RECORD, "bad")) == "ApiError(INVALID_RECORD: bad)"
    assert repr(NewTopic("a")).startswith("NewTopic(name='a'")


@pytest.mark.parametrize(
    ("node", "label"),
    [
        (Node(-1, "h", 1), "bootstrap server h:1"),
        (Node(3, "h", 1), "broker 3 (h:1)"),
        (Node((1 << 32) + 3, "h", 1), "coordinator 3 (h:1)"),
        (Node((2 << 32) + 3, "h", 1), "coordinator 3 (h:1)"),
    ],
)
def test_a_node_is_named_for_people(node, label):
    assert node.label == label


def test_public_signatures_have_no_parameters_for_tests():
    for kind in (Producer, Consumer, Admin):
        assert list(kind.__init__.__annotations__) == ["properties", "settings", "return"]
