"""Kafka's znodes: the view of the metadata in the tree, and the requests that writes of clients become."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.acls import create_acls, delete_acls
from kafkapy.controller.client_quotas import QuotaAlteration, alter_client_quotas
from kafkapy.controller.scram_credentials import ScramUpsertion, alter_scram_credentials
from kafkapy.controller.topics import delete_topics
from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import ScramCredential
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kafkapy.protocol.messages.metadata_records import ConfigRecord, PartitionChangeRecord
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl_filter import AclFilter
from kafkapy.types import TopicPartition
from kafkapy.zookeeper.commands import Commands
from kafkapy.zookeeper.errors import ZooKeeperError
from kafkapy.zookeeper.jute import encode_int, encode_string
from kafkapy.zookeeper.requests import Op
from kafkapy.zookeeper.scram_nodes import CredentialChanges
from kafkapy.zookeeper.settings import WRITES_KEY, ZooKeeperSettings
from kafkapy.zookeeper.view import ClusterFacts
from kafkapy.zookeeper.view_writer import ViewWriter
from tests.harness.metadata import bootstrapped, commit, replay, with_brokers, with_topic
from tests.harness.zookeeper import ZooKeeperHarness, ZooKeeperReplyError

CHILD, CHANGED = 4, 3
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class RecordedRequests:
    """The port to the controller: records requests, which the test completes."""

    def __init__(self):
        self.requests = []
        self.dones = []

    def __getattr__(self, name):
        def request(*arguments):
            *plain, on_done = arguments
            self.requests.append((name, *plain))
            self.on_done = on_done
            self.dones.append(on_done)

        return request


class ViewHarness:
    """A server whose tree shows `image`, below `chroot`."""

    def __init__(self, chroot="", *, is_writable=True, has_acls=True):
        self.chroot = chroot
        self.is_writable = is_writable
        self.has_acls = has_acls
        self.zookeeper = ZooKeeperHarness()
        self.requests = RecordedRequests()
        self.image = with_topic(with_brokers(bootstrapped(elr=False), 1), "t", 2)
        self.begin()

    def begin(self):
        server = self.zookeeper.server
        commands = Commands(
            server.tree,
            self.chroot,
            self.requests,
            lambda: self.image,
            server.delete_all,
            lambda path: self.view.restore(path),
            is_writable=self.is_writable,
            has_acls=self.has_acls,
        )
        server.commands = commands
        self.view = ViewWriter(server.tree, self.chroot, server.begin, server.commit, commands.is_requested)
        self.show()
        self.client = self.zookeeper.client()

    def restart(self):
        self.zookeeper.restart()
        self.begin()

    def show(self, image=None):
        self.image = image or self.image
        facts = ClusterFacts("cluster-id", 1, self.zookeeper.scheduler.clock.wall_ms())
        self.view.follow(self.image, facts)
        self.zookeeper.server.commands.follow(self.image)

    def json(self, path):
        return json.loads(self.client.get(path)[0])


def config_record(name, value):
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name=name, value=value)


@pytest.fixture
def harness():
    return ViewHarness()


def test_a_broker_is_registered_as_by_its_release(harness):
    node = harness.json("/brokers/ids/1")
    assert (node["version"], node["host"], node["port"]) == (2, "localhost", 9091)
    assert node["endpoints"] == ["PLAINTEXT://localhost:9091"]
    assert harness.client.exists("/brokers/ids/1").owner
    assert harness.json("/controller")["brokerid"] == 1
    assert harness.json("/cluster/id") == {"version": "1", "id": "cluster-id"}
    assert int(harness.client.get("/controller_epoch")[0]) >= 1


def test_a_topic_has_its_assignment_states_and_configuration(harness):
    assert harness.client.get("/brokers/topics/t")[0] == b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    assert harness.json("/brokers/topics/t/partitions/1/state")["leader"] == 1
    assert harness.json("/config/topics/t") == {"version": 1, "config": {}}


def test_only_what_changes_is_written(harness):
    before = len(harness.zookeeper.log.records)
    harness.show()
    harness.show(replay(harness.image))
    assert len(harness.zookeeper.log.records) == before


def test_of_the_topics_only_the_changed_ones_are_inspected(harness):
    facts = ClusterFacts("cluster-id", 1, 0)
    image = with_topic(with_topic(harness.image, "u"), "v")
    harness.view.follow(image, facts, {"u", "no-topic"})
    assert harness.client.children("/brokers/topics") == ["t", "u"]
    removed = [image.topics.by_name[name].topic_id for name in ("t", "u")]
    image = commit(image, delete_topics(image, removed))
    image = replay(image, config_record("num.io.threads", "1"))
    harness.view.follow(image, facts, {"u", "v"})
    assert harness.client.children("/brokers/topics") == ["t", "v"]
    assert harness.client.children("/config/brokers") == ["1"]
    harness.view.follow(harness.image, facts, ())
    assert harness.client.children("/config/brokers") == []
    harness.view.follow(image, facts)  # the changed topics are not known
    assert harness.client.children("/brokers/topics") == ["v"]


def test_watches_see_topics_come_and_go(harness):
    client = harness.client
    client.children("/brokers/topics", watch=True)
    harness.show(with_topic(harness.image, "u"))
    assert client.events() == [(CHILD, "/brokers/topics")]
    client.children("/brokers/topics", watch=True)
    harness.show(commit(harness.image, delete_topics(harness.image, [harness.image.topics.by_name["u"].topic_id])))
    assert client.events() == [(CHILD, "/brokers/topics")]
    assert client.children("/brokers/topics") == client.children("/config/topics") == ["t"]


def test_a_state_has_the_partition_epoch_as_its_version(harness):
    client, topic = harness.client, harness.image.topics.by_name["t"]
    client.get("/brokers/topics/t/partitions/0/state", watch=True)
    change = PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, leader=-1)
    harness.show(replay(harness.image, change))
    data, stat = client.get("/brokers/topics/t/partitions/0/state")
    assert json.loads(data)["leader"] == -1
    assert stat.version == harness.image.topics.partition("t", 0).partition_epoch == 1
    assert client.events() == [(CHANGED, "/brokers/topics/t/partitions/0/state")]


def test_configurations_and_quotas_are_shown_without_passwords(harness):
    values = {"log.cleaner.threads": "2", "ssl.keystore.password": "secret", "unknown.key": "x"}
    image = replay(harness.image, *(config_record(name, value) for name, value in values.items()))
    entities = [(("client-id", "a b"), ("user", None)), (("ip", "10.0.0.1"),)]
    alterations = [
        QuotaAlteration(entities[0], {"producer_byte_rate": 1024.0}),
        QuotaAlteration(entities[1], {"connection_creation_rate": 5.0}),
    ]
    harness.show(commit(image, alter_client_quotas(image, alterations, {"10.0.0.1"})))
    assert harness.json("/config/brokers/1")["config"] == {"log.cleaner.threads": "2"}
    assert harness.json("/config/users/<default>/clients/a%20b")["config"] == {"producer_byte_rate": "1024"}
    assert harness.json("/config/ips/10.0.0.1")["config"] == {"connection_creation_rate": "5"}


def test_a_restart_removes_what_the_metadata_no_longer_have(harness):
    created = harness.client.exists("/brokers/ids/1").czxid
    image = with_topic(harness.image, "u")
    harness.image = commit(image, delete_topics(image, [image.topics.by_name["t"].topic_id]))
    harness.restart()
    assert harness.client.children("/brokers/topics") == harness.client.children("/config/topics") == ["u"]
    assert harness.client.exists("/brokers/ids/1").czxid == created


def test_the_view_may_be_below_a_path():
    harness = ViewHarness("/kafka/one")
    assert harness.client.children("/kafka/one/brokers/topics") == ["t"]
    assert harness.client.children("/") == ["kafka", "zookeeper"]
    harness.client.create("/brokers")
    harness.client.create("/brokers/ids")
    harness.client.create("/brokers/ids/5")


@pytest.mark.parametrize(
    "path", ["/brokers/ids/1", "/controller", "/controller_epoch", "/cluster/id", "/brokers/topics/t/partitions"]
)
def test_clients_may_not_write_what_only_the_cluster_knows(harness, path):
    for call in (lambda: harness.client.set(path, b""), lambda: harness.client.delete(path)):
        with pytest.raises(ZooKeeperReplyError, match=str(ZooKeeperError.NO_AUTH.value)):
            call()


def is_refused(call, code=ZooKeeperError.NO_AUTH):
    with pytest.raises(ZooKeeperReplyError, match=f"^{code.value}$"):
        call()


def test_without_an_authorizer_acls_are_refused_because_they_would_have_no_effect():
    client = ViewHarness(has_acls=False).client
    is_refused(lambda: client.create("/kafka-acl/Topic/t", b'{"version":1,"acls":[]}'))
    is_refused(lambda: client.create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", flags=2))
    is_refused(lambda: client.delete("/kafka-acl"))


def test_a_tool_that_creates_the_folders_of_acls_finds_them_or_may_create_them():
    client = ViewHarness(is_writable=False, has_acls=False).client
    for path in ("/kafka-acl", "/kafka-acl/Topic", "/kafka-acl-extended/prefixed/Group", "/kafka-acl-changes"):
        is_refused(lambda path=path: client.create(path), ZooKeeperError.NODE_EXISTS)
    client.create("/kafka-acl/TransactionalId")


def test_the_view_may_be_read_only():
    harness = ViewHarness(is_writable=False)
    for path in ("/brokers/topics/u", "/admin/delete_topics/t", "/config/clients/c", "/kafka-acl/Topic/t"):
        is_refused(lambda path=path: harness.client.create(path))
    is_refused(lambda: harness.client.set("/config/topics/t", b""))
    is_refused(lambda: harness.client.create("/config/topics/t"), ZooKeeperError.NODE_EXISTS)
    harness.client.create("/consumers/g")
    assert not harness.requests.requests


@pytest.mark.parametrize(
    ("properties", "is_writable"),
    [
        ({}, True),
        ({WRITES_KEY: "false"}, False),
        ({"authorizer.class.name": AUTHORIZER}, False),
        ({"authorizer.class.name": AUTHORIZER, WRITES_KEY: "true"}, True),
    ],
)
def test_an_authorizer_makes_the_view_read_only_by_default(properties, is_writable):
    config = BrokerConfig({"node.id": "1", **properties})
    assert ZooKeeperSettings.from_config(config).is_view_writable == is_writable


# -- requests


def test_a_new_topic_node_creates_the_topic(harness):
    harness.client.create("/config/topics/u", b'{"version":1,"config":{"retention.ms":"5"}}')
    harness.client.create("/brokers/topics/u", b'{"version":1,"partitions":{"1":[1],"0":[1]}}')
    assert harness.requests.requests == [("create_topic", "u", {1: [1], 0: [1]}, {"retention.ms": "5"})]
    harness.show()  # the topic is not in the metadata yet, and its node stays
    assert harness.client.children("/brokers/topics") == ["t", "u"]
    harness.requests.on_done(None)
    harness.show(with_topic(harness.image, "u", 2))
    assert harness.client.exists("/brokers/topics/u/partitions/1/state")
    assert harness.client.exists("/brokers/topics/u").version == 0


def test_the_node_of_a_refused_topic_vanishes(harness, caplog):
    harness.client.create("/brokers/topics/u", b'{"version":1,"partitions":{"0":[7]}}')
    harness.requests.on_done("broker 7 does not exist")
    assert harness.client.children("/brokers/topics") == ["t"]
    assert "The topic u was not created: broker 7 does not exist" in caplog.text


def test_more_partitions_are_added(harness):
    harness.client.set("/brokers/topics/t", b'{"version":1,"partitions":{"2":[1],"0":[1],"1":[1]}}')
    assert harness.requests.requests == [("add_partitions", "t", 3, [[1]])]


def test_a_deletion_vanishes_when_it_is_complete(harness):
    harness.client.create("/admin/delete_topics/t")
    assert harness.requests.requests == [("delete_topic", "t")]
    assert harness.client.children("/admin/delete_topics") == ["t"]
    harness.requests.on_done(None)
    assert harness.client.children("/admin/delete_topics") == []


def test_configurations_are_replaced(harness):
    harness.client.set("/config/topics/t", b'{"version":1,"config":{"retention.ms":"5"}}')
    harness.client.create("/config/brokers/1", b'{"version":1,"config":{}}')
    assert harness.requests.requests == [
        ("replace_config", TOPIC_RESOURCE, "t", {"retention.ms": "5"}),
        ("replace_config", BROKER_RESOURCE, "1", {}),
    ]


@pytest.mark.parametrize(
    ("path", "entity"),
    [
        ("/config/clients/a%20b", (("client-id", "a b"),)),
        ("/config/users/<default>", (("user", None),)),
        ("/config/users/u/clients/<default>", (("client-id", None), ("user", "u"))),
        ("/config/ips/10.0.0.1", (("ip", "10.0.0.1"),)),
    ],
)
def test_quotas_are_replaced(harness, path, entity):
    if path.count("/") > 3:
        harness.client.create("/config/users/u")
        harness.client.create("/config/users/u/clients")
    harness.client.create(path, b'{"version":1,"config":{"producer_byte_rate":"1024"}}')
    assert harness.requests.requests == [("replace_quotas", entity, {"producer_byte_rate": 1024.0})]


CREDENTIAL = ScramCredential(b"salt", bytes(range(32)), bytes(range(32, 64)), 8192)
ENCODED = (
    f"salt={b64encode(CREDENTIAL.salt).decode()},stored_key={b64encode(CREDENTIAL.stored_key).decode()},"
    f"server_key={b64encode(CREDENTIAL.server_key).decode()},iterations=8192"
)


def config_data(**config):
    return json.dumps(
        {"version": 1, "config": {key.replace("_", "-"): value for key, value in config.items()}}
    ).encode()


def with_credential(image, user="u", mechanism=1):
    keys = (CREDENTIAL.stored_key, CREDENTIAL.server_key)
    upsertion = ScramUpsertion(user, mechanism, CREDENTIAL.iterations, CREDENTIAL.salt, b"", keys)
    return commit(image, alter_scram_credentials(image, [], [upsertion]))


def test_a_credential_is_taken_from_a_node_and_not_stored_in_the_tree(harness):
    harness.client.create("/config/users/u", config_data(SCRAM_SHA_256=ENCODED))
    assert harness.requests.requests == [("alter_credentials", CredentialChanges("u", {1: CREDENTIAL}))]
    assert harness.json("/config/users/u")["config"] == {"SCRAM-SHA-256": "iterations=8192"}
    assert b64encode(CREDENTIAL.stored_key) not in b"".join(
        record.value or b"" for record in harness.zookeeper.log.records
    )
    harness.show(with_credential(harness.image))
    assert harness.client.exists("/config/users/u").version == 0


def test_credentials_and_quotas_of_a_user_share_a_node(harness):
    entity = (("user", "u"),)
    image = with_credential(harness.image)
    image = commit(image, alter_client_quotas(image, [QuotaAlteration(entity, {"producer_byte_rate": 5.0})], set()))
    harness.show(image)
    shown = {"SCRAM-SHA-256": "iterations=8192", "producer_byte_rate": "5"}
    assert harness.json("/config/users/u")["config"] == shown
    # What a tool has read and writes again does not change.
    harness.client.set(
        "/config/users/u", json.dumps({"version": 1, "config": {**shown, "consumer_byte_rate": "6"}}).encode()
    )
    assert harness.requests.requests == [
        ("replace_quotas", entity, {"producer_byte_rate": 5.0, "consumer_byte_rate": 6.0})
    ]
    harness.client.set("/config/users/u", config_data())
    assert harness.requests.requests[1:] == [
        ("alter_credentials", CredentialChanges("u", {1: None})),
        ("replace_quotas", entity, {}),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCRAM-SHA-256", "iterations=4096"),
        ("SCRAM-SHA-256", ENCODED.replace("8192", "4095")),
        ("SCRAM-SHA-256", ENCODED.replace("8192", "many")),
        ("SCRAM-SHA-256", ENCODED.replace("salt=", "salt=?")),
        ("SCRAM-SHA-512", ENCODED),
    ],
)
def test_a_damaged_credential_is_refused_and_vanishes(harness, caplog, name, value):
    harness.show(with_credential(harness.image))
    harness.client.set("/config/users/u", json.dumps({"version": 1, "config": {name: value}}).encode())
    assert harness.requests.requests == []
    assert "/config/users/u cannot be understood" in caplog.text
    assert harness.json("/config/users/u")["config"] == {"SCRAM-SHA-256": "iterations=8192"}


def test_the_default_user_has_no_credentials(harness, caplog):
    harness.client.create("/config/users/<default>", config_data(SCRAM_SHA_256=ENCODED))
    assert harness.requests.requests == []
    assert "only a user with a name has credentials" in caplog.text


@pytest.mark.parametrize(("value", "shown"), [(float("nan"), "nan"), (float("inf"), "inf"), (0.5, "0.5"), (5.0, "5")])
def test_a_quota_that_is_no_integer_is_shown(harness, value, shown):
    harness.show(harness.image._replace(client_quotas={(("client-id", "c"),): {"producer_byte_rate": value}}))
    assert harness.json("/config/clients/c")["config"] == {"producer_byte_rate": shown}


def test_the_end_of_a_users_quotas_leaves_those_of_its_clients(harness):
    own, first, second = (("user", "u"),), (("client-id", "a"), ("user", "u")), (("client-id", "b"), ("user", "u"))
    image = harness.image
    for value in (5.0, None):
        alterations = [QuotaAlteration(entity, {"producer_byte_rate": value}) for entity in (own, first, second)]
        image = commit(image, alter_client_quotas(image, alterations if value else alterations[:2], set()))
        harness.show(image)
    assert harness.client.get("/config/users/u")[0] is None
    assert harness.client.children("/config/users/u/clients") == ["b"]


# -- ACLs

ALLOW_READ = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
DENY_ALTER = {"principal": "User:b", "permissionType": "Deny", "operation": "AlterConfigs", "host": "10.0.0.1"}
READ_ENTRY = AccessControlEntry(2, "t", 3, "User:a", "*", 3, 3)
ALTER_ENTRY = AccessControlEntry(2, "t", 3, "User:b", "10.0.0.1", 11, 2)
ACL_PATH = "/kafka-acl/Topic/t"


def acl_data(*acls):
    return json.dumps({"version": 1, "acls": acls}).encode()


def with_acls(image, *entries):
    return commit(image, create_acls(image, entries))


def test_acls_are_shown_by_resource(harness):
    others = [
        AccessControlEntry(3, "p", 4, "User:a", "*", 3, 3),
        AccessControlEntry(5, "*", 3, "User:a", "*", 4, 3),
        AccessControlEntry(5, "*", 3, "User:a", "*", 15, 3),  # an operation that old readers do not know
        AccessControlEntry(3, "a/b", 3, "User:a", "*", 3, 3),  # a name that no node can have
    ]
    harness.show(with_acls(harness.image, READ_ENTRY, ALTER_ENTRY, *others))
    acls = harness.json(ACL_PATH)["acls"]
    assert sorted(acls, key=str) == sorted([ALLOW_READ, DENY_ALTER], key=str)
    assert harness.json("/kafka-acl-extended/prefixed/Group/p")["acls"] == [ALLOW_READ]
    assert harness.json("/kafka-acl/TransactionalId/*")["acls"] == [{**ALLOW_READ, "operation": "Write"}]
    assert harness.client.children("/kafka-acl") == ["Cluster", "Group", "Topic", "TransactionalId"]
    harness.show(commit(harness.image, delete_acls(harness.image, [AclFilter()])))
    assert harness.client.children("/kafka-acl/Topic") == []


def test_written_acls_are_created_and_deleted(harness):
    client = harness.client
    client.create(ACL_PATH, acl_data(DENY_ALTER, ALLOW_READ))
    assert harness.requests.requests.pop() == ("alter_acls", [READ_ENTRY, ALTER_ENTRY], [])
    harness.show(with_acls(harness.image, READ_ENTRY, ALTER_ENTRY))
    assert client.exists(ACL_PATH).version == 0  # the order of ACLs does not count
    client.set(ACL_PATH, acl_data(ALLOW_READ), version=0)
    assert harness.requests.requests.pop() == ("alter_acls", [], [ALTER_ENTRY])
    client.delete(ACL_PATH)
    assert harness.requests.requests.pop() == ("alter_acls", [], [READ_ENTRY])
    assert client.create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", flags=2).endswith("_0000000000")


def test_notifications_are_deleted_after_a_quarter_of_an_hour(harness):
    for folder in ("/kafka-acl-changes", "/config/changes"):
        harness.client.create(f"{folder}/change_", b"x", flags=2)
    for minutes, left in ((14, 1), (2, 0)):
        for _ in range(minutes * 6):  # a session ends after 10 s without a request
            harness.zookeeper.scheduler.advance(10_000)
            harness.client = harness.zookeeper.client(40_000)
        assert len(harness.client.children("/kafka-acl-changes")) == left
        assert len(harness.client.children("/config/changes")) == left


def test_refused_acls_vanish(harness, caplog):
    harness.show(with_acls(harness.image, READ_ENTRY))
    harness.client.set(ACL_PATH, acl_data())
    harness.requests.on_done("not now")
    assert harness.json(ACL_PATH)["acls"] == [ALLOW_READ]
    harness.client.create("/kafka-acl/Group/g", acl_data(ALLOW_READ))
    harness.requests.on_done("not now")
    assert harness.client.children("/kafka-acl/Group") == []
    assert f"What was written to {ACL_PATH} was refused: not now" in caplog.text


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"acls":5}', acl_data({}), acl_data({**ALLOW_READ, "operation": "Any"}), acl_data(5)]
)
def test_damaged_acls_vanish(harness, caplog, data):
    harness.client.create(ACL_PATH, data)
    assert harness.requests.requests == []
    assert harness.client.children("/kafka-acl/Topic") == []
    assert f"{ACL_PATH} cannot be understood" in caplog.text


def test_a_password_that_the_view_hides_stays(harness):
    harness.show(
        replay(harness.image, config_record("ssl.key.password", "secret"), config_record("num.io.threads", "1"))
    )
    harness.client.set("/config/brokers/1", b'{"version":1,"config":{"num.io.threads":"2"}}')
    expected = {"ssl.key.password": "secret", "num.io.threads": "2"}
    assert harness.requests.requests == [("replace_config", BROKER_RESOURCE, "1", expected)]


def test_an_election_and_a_reassignment_are_requested(harness):
    harness.client.create("/admin/preferred_replica_election", b'{"partitions":[{"topic":"t","partition":1}]}')
    harness.requests.on_done(None)
    harness.client.create("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[2]}]}')
    assert harness.requests.requests == [
        ("elect_preferred", [TopicPartition("t", 1)]),
        ("reassign", {TopicPartition("t", 0): [2]}),
    ]
    topic = harness.image.topics.by_name["t"]
    moving = PartitionChangeRecord(
        partition_id=0, topic_id=topic.topic_id, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    harness.show(replay(harness.image, (moving, 0)))
    harness.requests.on_done(None)
    assert harness.client.children("/admin") == ["delete_topics", "reassign_partitions"]
    assert harness.json("/brokers/topics/t")["adding_replicas"] == {"0": [2]}
    done = PartitionChangeRecord(
        partition_id=0, topic_id=topic.topic_id, replicas=[2], adding_replicas=[], removing_replicas=[]
    )
    harness.show(replay(harness.image, (done, 0)))
    assert harness.client.children("/admin") == ["delete_topics"]


def test_the_next_broker_makes_the_requests_that_exist(harness):
    harness.client.create("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')
    harness.client.create("/admin/delete_topics/t")
    harness.requests.requests.clear()
    harness.restart()
    harness.zookeeper.server.commands.resume()
    assert harness.requests.requests == [("reassign", {TopicPartition("t", 0): [1]}), ("delete_topic", "t")]
    harness.requests.dones[-2](None)  # nothing moves
    assert harness.client.children("/admin") == ["delete_topics"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"partitions":5}', b'{"partitions":{"x":[1]}}', b"\xff"])
def test_data_that_cannot_be_understood_is_logged(harness, caplog, data):
    harness.client.create("/brokers/topics/u", data)
    assert not harness.requests.requests
    assert "/brokers/topics/u cannot be understood" in caplog.text


def test_nodes_of_a_transaction_are_requests_too(harness):
    body = encode_string("/admin/delete_topics/t") + encode_int(0)
    harness.client.create("/admin/delete_topics/t")
    harness.client.call(Op.DELETE, body)
    assert harness.requests.requests == [("delete_topic", "t")]


def test_what_the_log_has_refused_is_shown_after_the_next_image():
    harness = ViewHarness()
    refusals: list[bool] = []
    harness.view._on_refused = lambda: refusals.append(True)
    harness.zookeeper.log.next_failure = Error.NOT_ENOUGH_REPLICAS
    harness.image = with_topic(harness.image, "u", 1)
    harness.show()
    assert refusals == [True]
    assert harness.view.refusals == 1
    assert "/brokers/topics/u" not in harness.zookeeper.server.tree.nodes
    harness.view.follow(harness.image, ClusterFacts("cluster-id", 1, 0), topics=[])
    assert "/brokers/topics/u/partitions/0/state" in harness.zookeeper.server.tree.nodes
    assert harness.view.refusals == 0


def test_a_deletion_that_the_log_has_refused_is_tried_again():
    harness = ViewHarness()
    server = harness.zookeeper.server
    harness.client.create("/folder")
    harness.client.create("/folder/child")
    harness.zookeeper.log.next_failure = Error.NOT_ENOUGH_REPLICAS
    server.delete_all("/folder")
    assert "/folder/child" in server.tree.nodes
    harness.zookeeper.scheduler.advance(5_000)
    assert "/folder" not in server.tree.nodes


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/u", b'{"version":1,"partitions":{"0":[Infinity]}}'),
        ("/brokers/topics/u", b'{"version":1,"partitions":{"0":[99999999999]}}'),
        ("/brokers/topics/u", b'{"version":1,"partitions":{"99999999999":[1]}}'),
        ("/config/users/ann", b'{"version":1,"config":{"producer_byte_rate":1' + b"0" * 400 + b"}}"),
        ("/config/users/bob", b'{"version":1,"config":{"SCRAM-SHA-256":"iterations=1","x":Infinity}}'),
        ("/admin/reassign_partitions", b'{"partitions":[{"topic":"t","partition":0,"replicas":[Infinity]}]}'),
        ("/admin/preferred_replica_election", b'{"partitions":[{"topic":"t","partition":-1e999}]}'),
        ("/admin/preferred_replica_election", b'{"partitions":[{"topic":5,"partition":0}]}'),
    ],
)
def test_numbers_that_no_request_can_carry_are_refused_and_end_nothing(path, data):
    harness = ViewHarness()
    harness.client.create(path, data)
    assert harness.requests.requests == []
    harness.zookeeper.server.commands.resume()
    assert harness.requests.requests == []
    assert harness.client.exists("/")


def test_a_node_of_a_topic_that_a_client_has_created_as_an_ephemeral_one_outlives_the_session():
    harness = ViewHarness()
    harness.client.create("/brokers/topics/u", b'{"version":1,"partitions":{"0":[1]}}', flags=1)
    harness.show(with_topic(harness.image, "u", 1))
    harness.zookeeper.scheduler.advance(11_000)
    assert harness.client.session_id not in harness.zookeeper.server.tree.sessions
    harness.client = harness.zookeeper.client()
    assert harness.client.exists("/brokers/topics/u").owner == 0
    assert harness.json("/brokers/topics/u/partitions/0/state")["leader"] == 1
    harness.show(commit(harness.image, delete_topics(harness.image, [harness.image.topics.by_name["u"].topic_id])))
    with pytest.raises(ZooKeeperReplyError):
        harness.client.exists("/brokers/topics/u")
