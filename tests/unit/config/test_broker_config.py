"""The broker's configuration: accepted values, warnings, refusals, and changes while it runs."""

import pytest

from kafkapy.config.broker_config import BrokerConfig, user_data_directory
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ConfigError

# The keys of the file that Apache Kafka 4.3 ships for a single node.
SHIPPED = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


@pytest.fixture
def shipped(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(SHIPPED)
    return str(path)


def test_the_shipped_file_starts(shipped):
    config = BrokerConfig.load(shipped)
    assert [warning.split()[3] for warning in config.warnings] == [
        "num.network.threads",
    ]
    assert [str(each) for each in config.listeners] == ["PLAINTEXT://:9092", "CONTROLLER://:9093"]
    assert [str(each) for each in config.broker_listeners] == ["PLAINTEXT://:9092"]
    assert [str(each) for each in config.controller_listeners] == ["CONTROLLER://:9093"]
    assert [str(each) for each in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.log_dirs == ["/tmp/kraft-combined-logs"]
    assert config.inter_broker_listener_name == "PLAINTEXT"
    assert config.node_id == 1
    assert config.source("log.retention.hours") is ConfigSource.STATIC_BROKER
    assert config.is_default("log.retention.ms")


def test_a_broker_without_a_file_is_one_node_on_loopback():
    config = BrokerConfig.load(None, environment={"XDG_DATA_HOME": "/data"})
    assert config.warnings == []
    assert config.node_id == 1
    assert [str(each) for each in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]
    assert config.log_dirs == ["/data/kafkapy/data"] == [user_data_directory({"XDG_DATA_HOME": "/data"})]
    assert config.metadata_log_dir == "/data/kafkapy/data"
    assert user_data_directory({}).endswith("/.local/share/kafkapy/data")


def test_overrides_replace_values_of_the_file(shipped):
    config = BrokerConfig.load(shipped, {"num.io.threads": "2", "log.dirs": "/a,/b", "metadata.log.dir": "/m"})
    assert config["num.io.threads"] == 2
    assert config.log_dirs == ["/a", "/b"]
    assert config.metadata_log_dir == "/m"


def test_broker_id_stands_for_node_id():
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.load(None, {"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "7"})["broker.id"] == 7
    with pytest.raises(ConfigError, match=r"same value as `broker\.id`"):
        BrokerConfig({"broker.id": "7", "node.id": "8"})


def test_every_interface_is_advertised_by_name():
    (listener,) = BrokerConfig({}).advertised_listeners
    assert listener.host
    assert listener.port == 9092


@pytest.mark.parametrize(
    ("key", "warning"),
    [
        ("log.segmnt.bytes", "unknown and is ignored; did you mean log.segment.bytes?"),
        ("background.threads", "has no effect in kafkapy and is ignored."),
        ("inter.broker.protocol.version", "was removed in Apache Kafka 4 and is ignored."),
        ("zookeeper.session.timeout.ms", "was removed in Apache Kafka 4 and is ignored."),
        ("sasl.jaas.config", "listener.name.<listener>.plain.sasl.jaas.config, and is ignored."),
        ("listener.name.x.sasl.jaas.config", "listener.name.<listener>.plain.sasl.jaas.config, and is ignored."),
        ("rsm.config.bucket", "has no effect in kafkapy and is ignored."),
        ("retention.ms", "is a key of topics, not of brokers, and is ignored."),
        ("leader.replication.throttled.rate", "can only be set while the broker runs and is ignored."),
        ("quite.something.else", "is unknown and is ignored."),
    ],
)
def test_keys_that_mean_nothing_are_named(key, warning):
    texts = {"background.threads": "1"}
    (said,) = BrokerConfig({key: texts.get(key, "x")}).warnings
    assert said.startswith(f"The configuration key {key} ")
    assert said.endswith(warning)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"authorizer.class.name": "x.Y"}, r"^authorizer\.class\.name=x\.Y: .* every request would be allowed"),
        ({"create.topic.policy.class.name": "x.Y"}, r"^create\.topic\.policy.*No module named 'x'"),
        ({"alter.config.policy.class.name": "x.Y"}, r"^alter\.config\.policy.*No module named 'x'"),
        ({"principal.builder.class": "x.Y"}, r"^principal\.builder\.class"),
        ({"client.quota.callback.class": "x.Y"}, r"^client\.quota\.callback\.class"),
        ({"config.providers": "file"}, r"^config\.providers"),
        ({"remote.log.storage.system.enable": "true"}, r"remote\.log\.storage\.system\.enable"),
        ({"zookeeper.connect": "localhost:2181"}, r"^zookeeper\.connect=localhost:2181"),
        ({"num.io.threads": "none"}, r"^Invalid value none for configuration num\.io\.threads: Not a number"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "different name"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address"),
        (
            {
                "advertised.listeners": "INSIDE://h:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
            },
            "subset of the ones defined in listeners",
        ),
        ({"inter.broker.listener.name": "INSIDE"}, r"^Listener with name INSIDE .* not found"),
        ({"controller.listener.names": "CONTROLLER"}, "must contain at least one value appearing in the 'listeners'"),
        ({"controller.listener.names": "PLAINTEXT"}, "There must be at least one broker advertised listener"),
        ({"log.retention.ms": "0"}, "must be unlimited"),
        ({"queued.max.request.bytes": "1000"}, "larger or equal to socket"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"replica.fetch.wait.max.ms": "40000"}, "less than or equal to"),
        ({"cordoned.log.dirs": "*,/a"}, "must not contain other values"),
        ({"cordoned.log.dirs": "/b,/c", "log.dirs": "/a,/b"}, "Missing entries : /c"),
    ],
)
def test_configurations_that_cannot_be_served_are_refused(properties, message):
    with pytest.raises(ConfigError, match=message):
        BrokerConfig(properties)


def test_values_that_equal_the_default_are_no_reason_to_refuse():
    builder = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    config = BrokerConfig(
        {"principal.builder.class": builder, "authorizer.class.name": "", "create.topic.policy.class.name": ""}
    )
    assert config["principal.builder.class"] == builder
    assert not config["authorizer.class.name"]
    assert config["create.topic.policy.class.name"] is None


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
        "kafkapy.security.standard_authorizer:StandardAuthorizer",
    ],
)
def test_kafkas_authorizers_and_python_classes_are_accepted(name):
    properties = {"authorizer.class.name": name, "super.users": "User:a", "allow.everyone.if.no.acl.found": "true"}
    config = BrokerConfig(properties)
    assert config.authorizer_class_name == name
    assert config.warnings == []


def test_dynamic_configuration_comes_and_goes():
    config = BrokerConfig({"log.segment.bytes": "2000000"})
    default = {"log.segment.bytes": "3000000", "num.io.threads": "x", "custom.key": "1"}
    changed, complaints = config.apply_dynamic(
        default, {"message.max.bytes": "5", "leader.replication.throttled.rate": "9"}
    )
    assert changed == {"log.segment.bytes", "message.max.bytes", "leader.replication.throttled.rate"}
    assert complaints == ["Invalid value x for configuration num.io.threads: Not a number of type INT"]
    assert config["log.segment.bytes"] == 3_000_000
    assert config["message.max.bytes"] == 5
    assert config.source("log.segment.bytes") is ConfigSource.DYNAMIC_DEFAULT_BROKER
    assert config.source("message.max.bytes") is ConfigSource.DYNAMIC_BROKER
    config.apply_dynamic({}, {})
    assert config["log.segment.bytes"] == 2_000_000


def test_this_brokers_value_beats_the_clusters():
    config = BrokerConfig({})
    config.apply_dynamic({"message.max.bytes": "5"}, {"message.max.bytes": "6"})
    assert config["message.max.bytes"] == 6


def test_keys_of_a_listener():
    config = BrokerConfig({"max.connections": "9", "listener.name.plaintext.max.connections": "3"})
    assert config.for_listener("PLAINTEXT", "max.connections") == 3
    assert config.for_listener("OTHER", "max.connections") == 9


def test_unknown_key_is_a_bug():
    with pytest.raises(KeyError):
        BrokerConfig({})["no.such.key"]
