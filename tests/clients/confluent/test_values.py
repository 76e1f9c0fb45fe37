"""The values, errors and configuration of confluent-kafka: the same with the original and with ours. No broker."""

from __future__ import annotations

import pickle

import pytest


def test_every_error_has_the_code_name_and_text_of_librdkafka(ours):
    import confluent_kafka as original

    codes = [code for code in range(-210, 140) if not original.KafkaError(code).name().startswith("ERR_")]
    assert len(codes) > 180
    for code in codes:
        judge, own = original.KafkaError(code), ours.top.KafkaError(code)
        assert (own.name(), own.str(), repr(own), bool(own)) == (judge.name(), judge.str(), repr(judge), bool(judge))
        assert getattr(ours.top.KafkaError, judge.name()) == code


def test_an_error_is_compared_by_its_code(library):
    error = library.top.KafkaError(3, "why", fatal=True, retriable=True, txn_requires_abort=True)
    assert (error.code(), error.name(), error.str()) == (3, "UNKNOWN_TOPIC_OR_PART", "why")
    assert (error.fatal(), error.retriable(), error.txn_requires_abort()) == (True, True, True)
    assert error == 3
    assert error == library.top.KafkaError(3)
    assert error != library.top.KafkaError(4)
    assert error < 4
    assert hash(error) == 3
    assert str(error) == 'KafkaError{FATAL,code=UNKNOWN_TOPIC_OR_PART,val=3,str="why"}'
    assert repr(library.top.KafkaError(-999)) == 'KafkaError{code=ERR_-999?,val=-999,str="Err--999?"}'
    exception = library.top.KafkaException(error)
    assert exception.args == (error,)
    with pytest.raises(TypeError):
        library.top.KafkaError()


def test_a_partition_is_compared_by_topic_and_number(library):
    one = library.top.TopicPartition("a", 1, 5)
    assert one == library.top.TopicPartition("a", 1, 7)
    assert hash(one) == hash(library.top.TopicPartition("a", 1, 7))
    assert one < library.top.TopicPartition("a", 2)
    assert repr(one) == str(one) == "TopicPartition{topic=a,partition=1,offset=5,leader_epoch=None,error=None}"
    assert library.top.TopicPartition("a").offset == library.top.OFFSET_INVALID == -1001
    one.partition, one.offset = 3, library.top.OFFSET_END
    assert (one.partition, one.offset, one.metadata, one.error) == (3, -1, None, None)
    for name in ("topic", "metadata", "leader_epoch", "error"):
        with pytest.raises(AttributeError):
            setattr(one, name, None)


def test_a_message_has_what_it_was_made_of(library):
    message = library.top.Message("t", 1, 2, b"k", b"v", [("a", b"1")], None, (1, 5), 0.5, 3)
    content = (message.topic(), message.partition(), message.offset(), message.key(), message.value())
    assert content == ("t", 1, 2, b"k", b"v")
    assert (message.headers(), message.timestamp(), message.latency(), message.leader_epoch()) == (
        [("a", b"1")], (1, 5), 0.5, 3,
    )  # fmt: skip
    assert len(message) == 1
    message.set_key("key")
    message.set_value({"a": 1})
    message.set_headers([("b", b"2")])
    assert (message.key(), message.value(), message.headers()) == ("key", {"a": 1}, [("b", b"2")])
    empty = library.top.Message()
    assert (empty.topic(), empty.partition(), empty.offset(), empty.timestamp(), len(empty)) == (
        None, None, None, (0, 0), 0,
    )  # fmt: skip
    assert empty == library.top.Message()
    failed = library.top.Message(error=library.top.KafkaError(3))
    assert (failed.value(), failed.error().code(), len(failed)) == (None, 3, 0)


def test_a_message_and_a_partition_can_be_pickled(ours):
    message = ours.top.Message("t", 1, 2, b"k", b"v", [("a", b"1")], None, (1, 5), 0.5, 3)
    assert pickle.loads(pickle.dumps(message)) == message
    error = ours.top.KafkaError(3, "why", fatal=True)
    assert repr(pickle.loads(pickle.dumps(error))) == repr(error)


def test_an_id_is_shown_in_base64(library):
    found = library.top.Uuid(1, 2)
    assert str(found) == "AAAAAAAAAAEAAAAAAAAAAg"
    assert (found.get_most_significant_bits(), found.get_least_significant_bits()) == (1, 2)


@pytest.mark.parametrize("key", [b"", b"a", b"abc", b"a longer key of thirty bytes.."])
def test_keys_have_the_partitions_of_the_original(ours, key):
    import confluent_kafka as original

    for count in (1, 7, 12, 1000):
        for name in ("murmur2", "consistent", "fnv1a"):
            assert getattr(ours.top, name)(key, count) == getattr(original, name)(key, count), (name, count)


def test_the_versions_are_those_of_the_installed_original(ours):
    import confluent_kafka as original

    assert ours.top.version() == original.version()
    assert ours.top.libversion() == original.libversion()


def test_new_topics_and_partitions_are_shown_alike(library):
    admin = library.module("admin")
    assert repr(admin.NewTopic("t", 3, 1)) == "NewTopic(topic=t,num_partitions=3)"
    assert repr(admin.NewTopic("t")) == "NewTopic(topic=t)"
    assert repr(admin.NewPartitions("t", 3)) == "NewPartitions(topic=t,new_total_count=3)"
    assert admin.NewTopic("t", 3, 1) != admin.NewTopic("t", 2, 1)
    resource = admin.ConfigResource("topic", "t", set_config={"a": "1"})
    assert resource == admin.ConfigResource(admin.ResourceType.TOPIC, "t")
    resource.set_config("a", "2", overwrite=False)
    assert resource.set_config_dict == {"a": "1"}
    with pytest.raises(ValueError, match="Unknown resource type"):
        admin.ConfigResource("nothing", "t")


REFUSED = [
    ("Producer", {"acks": "x"}, 'Invalid value for configuration property "request.required.acks"'),
    ("Producer", {"linger.ms": -5}, '"queue.buffering.max.ms" value -5 is outside allowed range 0..900000'),
    ("Producer", {"linger.ms": "abc"}, 'Invalid value for configuration property "queue.buffering.max.ms"'),
    ("Producer", {"compression.type": "abc"}, 'Invalid value "abc" for configuration property "compression.codec"'),
    ("Producer", {"enable.idempotence": "abc"}, 'Expected bool value for "enable.idempotence": true or false'),
    ("Producer", {"on_delivery": 3}, "on_delivery requires a callable object"),
    ("Producer", {"transactional.id": "x", "acks": 1}, "`acks` must be set to `all`"),
    ("Producer", {"enable.idempotence": True, "max.in.flight": 10}, "`max.in.flight` must be set <= 5"),
    ("Producer", {"partitioner": "zzz"}, 'Invalid value for configuration property "partitioner": zzz'),
    ("Producer", {"security.protocol": "foo"}, 'Invalid value "foo" for configuration property "security.protocol"'),
    (
        "Consumer",
        {"group.id": "x", "session.timeout.ms": 400000, "max.poll.interval.ms": 1000},
        "`max.poll.interval.ms`must be >= `session.timeout.ms`",
    ),
]


@pytest.mark.parametrize(("kind", "conf", "message"), REFUSED)
def test_an_invalid_configuration_is_refused_with_the_same_text(library, kind, conf, message):
    with pytest.raises(library.top.KafkaException) as caught:
        getattr(library.top, kind)({"bootstrap.servers": "127.0.0.1:1", **conf})
    error = caught.value.args[0]
    assert error.code() == library.top.KafkaError._INVALID_ARG
    assert message in error.str()


def test_an_unknown_key_is_refused_with_the_nearest_known_one(ours):
    with pytest.raises(ours.top.KafkaException, match=r'"lingr\.ms"; did you mean "linger\.ms"'):
        ours.top.Producer({"bootstrap.servers": "127.0.0.1:1", "lingr.ms": 5})


def test_a_key_that_cannot_be_honoured_is_refused_with_the_reason(ours):
    with pytest.raises(ours.top.KafkaException, match="cannot be honoured by kafkapy: kafkapy keeps the order"):
        ours.top.Producer({"bootstrap.servers": "127.0.0.1:1", "queuing.strategy": "lifo"})


def test_callbacks_that_are_not_callable_are_refused(library):
    with pytest.raises(TypeError, match="expected error_cb property as a callable function"):
        library.top.Producer({"error_cb": 3})
    with pytest.raises(TypeError, match="expected configuration dict"):
        library.top.Producer()
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        library.top.Consumer({"bootstrap.servers": "127.0.0.1:1"})


def test_the_extension_module_has_the_same_names(ours):
    from confluent_kafka import cimpl as original

    from kafkapy.compat.confluent_kafka import cimpl

    constants = {name: value for name, value in vars(original).items() if name.isupper()}
    assert {name: getattr(cimpl, name) for name in constants} == constants
    assert cimpl.Consumer is ours.top.Consumer


def test_every_key_has_a_treatment(ours):
    keys = ours.module("_config_keys")
    groups = [
        set(each) for each in (keys.TRANSLATED, keys.TRANSLATED_IF_SET, keys.HANDLED, keys.ACCEPTED, keys.REFUSED)
    ]
    plain = {name for name, row in keys.KEYS.items() if not isinstance(row, keys.Alias | keys.Callback)}
    assert set().union(*groups) == plain
    assert sum(map(len, groups)) == len(plain)
    assert {row.of for row in keys.KEYS.values() if isinstance(row, keys.Alias)} <= plain


def test_every_key_is_known_to_librdkafka():
    """Every key of ours is one of the installed librdkafka, which refuses an unknown key before any other check."""
    import confluent_kafka as original

    from kafkapy.compat.confluent_kafka._config_keys import KEYS

    for key in KEYS:
        with pytest.raises((original.KafkaException, TypeError, ValueError)) as caught:
            original.Producer({key: "\0", "no.such.key.at.all": 1, "linger.ms": "x"})
        assert f'No such configuration property: "{key}"' not in str(caught.value), key


def test_librdkafka_keys_become_those_of_kafkapy(ours):
    config = ours.module("_config")
    settings = config.Settings(
        config.PRODUCER,
        {
            "bootstrap.servers": "PLAINTEXT://a:1, b",
            "message.timeout.ms": 2000,
            "acks": 1,
            "compression.codec": "zstd",
            "compression.level": 3,
        },
        {},
    )
    found = settings.properties()
    assert found["bootstrap.servers"] == "a:1,b:9092"
    assert (found["acks"], found["delivery.timeout.ms"], found["compression.zstd.level"]) == ("1", 2000, 3)
    assert found["enable.idempotence"] is False
    settings = config.Settings(config.CONSUMER, {"group.id": "g", "auto.offset.reset": "smallest"}, {})
    found = settings.properties()
    assert (found["auto.offset.reset"], found["isolation.level"]) == ("earliest", "read_committed")


def test_user_names_and_files_of_keys_become_those_of_kafkapy(ours, tmp_path):
    config = ours.module("_config")
    authority = tmp_path / "ca.pem"
    authority.write_text("-----BEGIN CERTIFICATE-----")
    conf = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": 'a"b',
        "sasl.password": "c\\d",
        "ssl.ca.location": str(authority),
        "ssl.endpoint.identification.algorithm": "none",
    }
    found = config.Settings(config.ADMIN, conf, {}).properties()
    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.jaas.config"].endswith('username="a\\"b" password="c\\\\d";')
    assert found["ssl.truststore.certificates"] == "-----BEGIN CERTIFICATE-----"
    assert found["ssl.endpoint.identification.algorithm"] == ""


def test_new_credentials_are_used_by_the_next_connections(ours):
    conf = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    producer = ours.top.Producer({**conf, "sasl.username": "old", "sasl.password": "former"})
    security = producer._client._network._security
    assert b"old" in security.mechanism("localhost").step(None)
    producer.set_sasl_credentials("new", "latter")
    assert security.mechanism("localhost").step(None) == b"\0new\0latter"
    with pytest.raises(TypeError):
        producer.set_sasl_credentials("new", 5)


def test_a_brokers_delay_is_an_event_for_throttle_cb(ours):
    events = []
    producer = ours.top.Producer({"bootstrap.servers": "127.0.0.1:1", "throttle_cb": events.append})
    node = ours.module("_model").Node(3, "there", 9092)
    node.node_id = node.id  # kafkapy's name of the id
    on_delay = producer._client._network.throttling.on_delay
    for delay_ms in (0, 250, 0, 0):
        on_delay(node, delay_ms)
    assert not events
    producer.poll(0)
    assert [str(each) for each in events] == [
        "there:9092/3 throttled for 250 ms",
        "there:9092/3 throttled for 0 ms",
    ]


def test_tokens_come_from_oauth_cb(ours):
    config = ours.module("_config")
    conf = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.config": "scope=all",
        "oauth_cb": lambda config: (f"token for {config}", 1e10),
    }
    found = config.Settings(config.ADMIN, conf, {}).properties()
    assert found["sasl.login.callback.handler.class"]() == ("token for scope=all", 1e10, {})
    conf["oauth_cb"] = lambda config: ("token", 1e10, "me", {"traceId": "7"})
    found = config.Settings(config.ADMIN, conf, {}).properties()
    assert found["sasl.login.callback.handler.class"]() == ("token", 1e10, {"traceId": "7"})
    del conf["oauth_cb"]
    with pytest.raises(ours.top.KafkaException, match="OAUTHBEARER needs oauth_cb"):
        config.Settings(config.ADMIN, conf, {}).properties()


def test_serializers_are_the_same(library):
    found = library.module("serialization")
    assert found.IntegerSerializer()(5) == b"\0\0\0\5"
    assert found.DoubleDeserializer()(found.DoubleSerializer()(1.5)) == 1.5
    assert found.StringSerializer("utf_16_le")("a") == b"a\0"
    with pytest.raises(found.SerializationError):
        found.IntegerDeserializer()(b"\0")
    assert str(found.MessageField.KEY) == "key"


@pytest.mark.parametrize("name", ["Producer", "Consumer", "aio.AIOProducer", "aio.AIOConsumer"])
def test_a_program_may_give_its_subclass_a_metaclass(library, name):
    class Registering(type):
        """A metaclass that does not derive from abc.ABCMeta."""

    module, _, attribute = name.rpartition(".")
    base = getattr(library.module(module) if module else library.top, attribute)
    assert type(Registering("Own", (base,), {})) is Registering
