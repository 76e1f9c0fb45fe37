"""Principal builders, which name the clients of connections (`principal.builder.class`).

A builder also defines the bytes in which a broker sends the principal of a client to the controller, with a request
that it forwards (KIP-590). The brokers and controllers of a cluster therefore need the same builder.
"""

from __future__ import annotations

from typing import Protocol

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.python_class import make_plugin
from kafkapy.errors import ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.data_records import DefaultPrincipalData
from kafkapy.security.principal import Principal

PRINCIPAL_BUILDER_KEY = "principal.builder.class"
BUILDER_METHODS = ("build", "serialize", "deserialize")
# The bytes of a principal begin with the version of their format, an int16.
PRINCIPAL_VERSION = 0
PRINCIPAL_VERSION_BYTES = 2


class AuthenticatedConnection(NamedTuple):
    """The facts that a listener knows about a client that it has authenticated."""

    principal: Principal  # the principal by the built-in rules; ANONYMOUS for a client without an identity
    listener: str
    security_protocol: str
    client_host: str  # the client's textual IP address
    certificate_subject: str | None = None  # of a client of an SSL listener, in the form of RFC 2253
    sasl_mechanism: str | None = None


class PrincipalBuilder(Protocol):
    """The interface of a principal builder. Any thread calls the methods, which must not wait."""

    def build(self, connection: AuthenticatedConnection) -> Principal:
        """Returns the principal of the client. An exception closes the connection."""

    def serialize(self, principal: Principal) -> bytes:
        """Encodes the principal for a request that this broker forwards to the controller."""

    def deserialize(self, data: bytes) -> Principal:
        """Returns the principal that `serialize` has encoded on the forwarding broker. If it raises an exception, the
        controller refuses the forwarded request.
        """


class DefaultPrincipalBuilder:
    """The builder that names clients by the built-in rules, and writes principals in Apache Kafka's format."""

    def build(self, connection: AuthenticatedConnection) -> Principal:
        return connection.principal

    def serialize(self, principal: Principal) -> bytes:
        data = DefaultPrincipalData(
            type=principal.type, name=principal.name, token_authenticated=principal.token_authenticated
        )
        return PRINCIPAL_VERSION.to_bytes(PRINCIPAL_VERSION_BYTES, "big") + data.encode(PRINCIPAL_VERSION)

    def deserialize(self, data: bytes) -> Principal:
        """Returns the principal. Raises ValueError for bytes that are no principal."""
        version = int.from_bytes(data[:PRINCIPAL_VERSION_BYTES], "big", signed=True)
        if len(data) < PRINCIPAL_VERSION_BYTES or not 0 <= version <= PRINCIPAL_VERSION:
            raise ValueError(f"the principal has an unknown version or none: {data[:PRINCIPAL_VERSION_BYTES]!r}")
        try:
            found = DefaultPrincipalData.decode(data, version, PRINCIPAL_VERSION_BYTES)
        except ProtocolViolation as violation:
            raise ValueError(str(violation)) from violation
        return Principal(found.type, found.name, found.token_authenticated)


def make_principal_builder(config: BrokerConfig) -> PrincipalBuilder:
    """Returns the builder that `principal.builder.class` names, or Kafka's default builder if it names none.

    If the class has a method `configure`, it is called with the keys and values of the configuration file. Raises
    ConfigError, which names the key, if the class cannot be used.
    """
    if not config.has_other_than_default(PRINCIPAL_BUILDER_KEY):
        return DefaultPrincipalBuilder()
    text = config[PRINCIPAL_BUILDER_KEY]
    builder: PrincipalBuilder = make_plugin(PRINCIPAL_BUILDER_KEY, text, BUILDER_METHODS, config.originals)
    return builder
