"""Brokers of kafkapy and Apache Kafka whose clients authenticate with SASL/PLAIN and need permissions (ACLs).

The user `admin` is a super user and the principal of the nodes; the others may do what their ACLs allow.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from tests.api_client import ask
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.ports import free_ports
from tests.server_process import ServerProcess

ADMIN = "admin"
LISTENER, CONTROLLER_LISTENER = "SASL_PLAINTEXT", "CONTROLLER"
TIMEOUT_S = 60
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def secured(port: int, controller_port: int, users: Iterable[str]) -> dict[str, str]:
    """Returns the properties of a node with both roles, whose users have their names as passwords."""
    controller = f"localhost:{controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"{LISTENER}://localhost:{port},{CONTROLLER_LISTENER}://{controller}",
        "advertised.listeners": f"{LISTENER}://localhost:{port}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "inter.broker.listener.name": LISTENER,
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.session.timeout.ms": "3600000",
        "group.consumer.max.session.timeout.ms": "3600000",
        "group.streams.session.timeout.ms": "3600000",
        "group.streams.max.session.timeout.ms": "3600000",
        **secured_listeners(LISTENER, users),
    }


def secured_listeners(listener: str, users: Iterable[str]) -> dict[str, str]:
    """Returns the properties by which clients and nodes authenticate at the listener of brokers and at the one of
    controllers, and need permissions."""
    accounts = " ".join(f'user_{user}="{user}"' for user in (ADMIN, *users))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="{ADMIN}" password="{ADMIN}" {accounts};'
    return {
        "listener.security.protocol.map": f"{listener}:SASL_PLAINTEXT,{CONTROLLER_LISTENER}:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"listener.name.{listener.lower()}.plain.sasl.jaas.config": jaas,
        f"listener.name.{CONTROLLER_LISTENER.lower()}.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{ADMIN}",
    }


class SecuredKafka(ApacheKafka):
    """A single node of Apache Kafka with both roles, broker and controller."""

    def __init__(self, kafka: Path, directory: Path, users: Iterable[str]) -> None:
        self._users = list(users)
        super().__init__(kafka, directory, heap=("-Xmx512M",))

    def _settings(self, properties: Mapping[str, str]) -> dict[str, str]:
        return super()._settings(secured(self.port, self.controller_port, self._users))


class SecuredKafkapy(BrokerProcess):
    """A single node of kafkapy with both roles, broker and controller."""

    def __init__(self, directory: Path, users: Iterable[str]) -> None:
        port, self.controller_port = free_ports(2)
        super().__init__(directory, secured(port, self.controller_port, users), port=port)


SecuredBroker = SecuredKafka | SecuredKafkapy


def connect(server: ServerProcess, user: str, port: int | None = None) -> socket.socket:
    """Returns a connection of the user, who is authenticated, to the listener of the broker or to another port."""
    client = socket.create_connection(("127.0.0.1", port or server.port), timeout=TIMEOUT_S)
    shaken = ask(client, ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    assert shaken.error_code == 0, shaken
    token = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}".encode())
    authenticated = ask(client, ApiKey.SASL_AUTHENTICATE, 2, token, SaslAuthenticateResponse)
    assert authenticated.error_code == 0, authenticated
    return client


def ask_as_admin(server: ServerProcess, key: ApiKey, version: int, request: Any) -> Any:
    with connect(server, ADMIN) as client:
        return ask(client, key, version, request, response_class(key))


def parse(permission: str) -> tuple[Operation, ResourceType, str]:
    """Returns the permission that a text such as `Read topic t` or `Describe cluster` names."""
    operation, kind, *name = permission.split()
    operations = {each.name.replace("_", "").lower(): each for each in Operation}
    resource_type = ResourceType[kind.replace("-", "_").upper()]
    return operations[operation.lower()], resource_type, name[0] if name else CLUSTER_NAME


def allow(server: ServerProcess, permissions: Mapping[str, Iterable[str]]) -> None:
    """Creates the ACLs that give each user, the key, its permissions, and waits until the broker applies them.

    Apache Kafka confirms ACLs when the controller has stored them, a moment before the broker applies them.
    """
    wanted = {(f"User:{user}", *parse(text)) for user, texts in permissions.items() for text in texts}
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        for principal, operation, resource_type, name in wanted
    ]
    created = ask_as_admin(server, ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations=creations))
    assert {each.error_code for each in created.results} <= {0}, created
    deadline = time.monotonic() + TIMEOUT_S
    while not wanted <= _acls(server):
        assert time.monotonic() < deadline, wanted - _acls(server)
        time.sleep(0.05)


def _acls(server: ServerProcess) -> set[tuple[str, int, int, str]]:
    """Returns the principal, operation, type and name of the resource of each ACL that the broker applies."""
    every = DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    return {
        (acl.principal, acl.operation, resource.resource_type, resource.resource_name)
        for resource in ask_as_admin(server, ApiKey.DESCRIBE_ACLS, 3, every).resources
        for acl in resource.acls
    }
