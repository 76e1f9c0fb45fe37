"""Principal builders: the built-in one, and Python classes that the configuration names."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.security.principal import ANONYMOUS, Principal
from kafkapy.security.principal_builder import (
    AuthenticatedConnection,
    DefaultPrincipalBuilder,
    make_principal_builder,
)

CONFIG = {"node.id": "1", "process.roles": "broker,controller", "listeners": "PLAINTEXT://127.0.0.1:9092"}
JAVA_DEFAULT = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
CONNECTION = AuthenticatedConnection(Principal("User", "ann"), "EXTERNAL", "SASL_SSL", "10.0.0.1")


class UpperCase(DefaultPrincipalBuilder):
    """A builder that puts names into upper case."""

    configs: dict[str, str]

    def configure(self, configs: dict[str, str]) -> None:
        self.configs = configs

    def build(self, connection: AuthenticatedConnection) -> Principal:
        return Principal("User", connection.principal.name.upper())


class WithoutFormat:
    """A principal builder without the methods that serialize and deserialize principals."""

    def build(self, connection: AuthenticatedConnection) -> Principal:
        return connection.principal


def made(**properties: str) -> Any:
    return make_principal_builder(BrokerConfig({**CONFIG, **properties}))


@pytest.mark.parametrize("principal", [ANONYMOUS, Principal("User", "Ärger"), Principal("Robot", "r", True)])
def test_the_built_in_builder_reads_what_it_writes(principal: Principal) -> None:
    builder = DefaultPrincipalBuilder()
    assert builder.deserialize(builder.serialize(principal)) == principal


def test_the_built_in_builder_writes_the_format_of_apache_kafka() -> None:
    assert DefaultPrincipalBuilder().serialize(ANONYMOUS) == b"\0\0\x05User\x0aANONYMOUS\0\0"


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1\5User", b"\0\0\5Us", b"\xff\xff"])
def test_the_built_in_builder_refuses_other_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"principal|User|end|bytes|string"):
        DefaultPrincipalBuilder().deserialize(data)


def test_kafkas_default_class_is_the_built_in_builder() -> None:
    for builder in (made(), made(**{"principal.builder.class": JAVA_DEFAULT})):
        assert type(builder) is DefaultPrincipalBuilder
        assert builder.build(CONNECTION) == Principal("User", "ann")


def test_a_python_class_names_the_principal() -> None:
    name = f"{__name__}:UpperCase"
    builder = made(**{"principal.builder.class": name})
    assert builder.build(CONNECTION) == Principal("User", "ANN")
    assert builder.configs["principal.builder.class"] == name


@pytest.mark.parametrize("name", [f"{__name__}:WithoutFormat", "org.example.Builder", f"{__name__}:missing"])
def test_other_classes_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"principal\.builder\.class"):
        made(**{"principal.builder.class": name})
