"""The administration tools of Apache Kafka 2.8.2 with `--zookeeper`, on a broker with an authorizer."""

from __future__ import annotations

import json
import subprocess

import pytest
from kazoo.client import KazooClient

from kafkapy.client.admin import Admin
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.acl_filter import AclFilter
from tests.clients.legacy.installation import java_command, java_jars
from tests.harness.quorum_nodes import wait_until
from tests.ports import free_port
from tests.zookeeper.listening_broker import ListeningBroker

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(600)]
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "alice", "alice-password"


class SecuredBroker(ListeningBroker):
    """A broker with an authorizer, whose listener at `sasl_port` needs a password."""

    def __init__(self, directory):
        self.sasl_port = free_port()
        super().__init__(directory)
        settings = {
            "listeners": f"PLAINTEXT://localhost:{self.port},SASL_PLAINTEXT://localhost:{self.sasl_port}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "zookeeper.listener.view.writes.enable": "true",
        }
        with self.config.open("a") as file:
            file.writelines(f"{key}={value}\n" for key, value in settings.items())


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with SecuredBroker(tmp_path_factory.mktemp("zookeeper")) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    client = KazooClient(broker.zookeeper)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


def run(class_name, *arguments):
    """Runs a tool of 2.8.2, and returns its output."""
    jars = java_jars("kafka_2.13", "2.8.2")
    command = [*java_command(), "-cp", f"{jars}/*", f"kafka.admin.{class_name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def acls(admin, name):
    """Returns the ACLs with the literal or prefixed name, as (pattern type, principal, operation, permission)."""
    found = admin.describe_acls(AclFilter(resource_type=ResourceType.TOPIC, resource_name=name))
    return {(each.pattern_type, each.principal, each.operation, each.permission_type) for each in found}


def test_topics(broker, client):
    address = ("--zookeeper", broker.zookeeper)
    created = run(
        "TopicCommand", *address, "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "1"
    )
    assert "Created topic t." in created
    wait_until(lambda: client.exists("/brokers/topics/t/partitions/1/state") is not None, "no leader")
    described = run("TopicCommand", *address, "--describe", "--topic", "t")
    assert "Partition: 1\tLeader: 1\tReplicas: 1\tIsr: 1" in described
    run("TopicCommand", *address, "--alter", "--topic", "t", "--partitions", "3")
    wait_until(lambda: client.exists("/brokers/topics/t/partitions/2/state") is not None, "no third partition")
    assert "Topic t is marked for deletion." in run("TopicCommand", *address, "--delete", "--topic", "t")
    wait_until(lambda: client.exists("/brokers/topics/t") is None, "not deleted")


def test_scram_credentials_and_quotas(broker, client):
    entity = ("--zookeeper", broker.zookeeper, "--entity-type", "users", "--entity-name", USER)

    def alter(*words):
        assert "Completed" in run("ConfigCommand", *entity, "--alter", *words)

    def shown():
        return json.loads(client.get(f"/config/users/{USER}")[0])["config"]

    def log_in():
        settings = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_jaas_config": f'{LOGIN_MODULE} required username="{USER}" password="{PASSWORD}";',
        }
        with Admin(bootstrap_servers=f"localhost:{broker.sasl_port}", **settings) as admin:
            return admin.list_topics()

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        alter("--add-config", f"SCRAM-SHA-256=[iterations=8192,password={PASSWORD}]")
        wait_until(lambda: USER in admin.describe_user_scram_credentials(), "no credential")
        log_in()
        assert shown() == {"SCRAM-SHA-256": "iterations=8192"}
        alter("--add-config", "producer_byte_rate=1024")
        wait_until(lambda: admin.describe_client_quotas(), "no quota")
        assert shown() == {"SCRAM-SHA-256": "iterations=8192", "producer_byte_rate": "1024"}
        log_in()
        described = run("ConfigCommand", *entity, "--describe")
        assert "SCRAM-SHA-256=iterations=8192" in described
        assert "producer_byte_rate=1024" in described
        alter("--delete-config", "SCRAM-SHA-256")
        wait_until(lambda: USER not in admin.describe_user_scram_credentials(), "the credential stays")
        assert shown() == {"producer_byte_rate": "1024"}


def test_acls(broker, client):
    address = ("--authorizer-properties", f"zookeeper.connect={broker.zookeeper}")
    topic = ("--topic", "secret")
    reading = ("--allow-principal", "User:bob", "--operation", "Read")
    allowed = (PatternType.LITERAL, "User:bob", Operation.READ, Permission.ALLOW)
    denied = (PatternType.LITERAL, "User:eve", Operation.WRITE, Permission.DENY)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        added = run("AclCommand", *address, "--add", *reading, *topic)
        assert (
            "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=secret, patternType=LITERAL)`" in added
        )
        wait_until(lambda: acls(admin, "secret") == {allowed}, "no ACL")
        run("AclCommand", *address, "--add", "--deny-principal", "User:eve", "--operation", "Write", *topic)
        wait_until(lambda: acls(admin, "secret") == {allowed, denied}, "no second ACL")
        listed = run("AclCommand", *address, "--list", *topic)
        assert "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)" in listed
        assert "(principal=User:eve, host=*, operation=WRITE, permissionType=DENY)" in listed
        run("AclCommand", *address, "--remove", "--force", *reading, *topic)
        wait_until(lambda: acls(admin, "secret") == {denied}, "the ACL stays")
        run("AclCommand", *address, "--remove", "--force", *topic)
        wait_until(lambda: acls(admin, "secret") == set(), "the ACLs stay")
        wait_until(lambda: client.get_children("/kafka-acl/Topic") == [], "the node stays")

        run("AclCommand", *address, "--add", *reading, "--topic", "pre", "--resource-pattern-type", "prefixed")
        wait_until(lambda: client.get_children("/kafka-acl-extended/prefixed/Topic") == ["pre"], "no prefixed ACL")
        assert acls(admin, "pre") == {(PatternType.PREFIXED, *allowed[1:])}
        assert client.get_children("/kafka-acl-changes")
        assert client.get_children("/kafka-acl-extended-changes")
