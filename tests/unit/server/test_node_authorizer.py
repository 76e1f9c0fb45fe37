"""The authorizer of a node: the class that the configuration names, and the ACLs that it follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ConfigError
from kafkapy.protocol.messages.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.principal import parse_principal
from kafkapy.security.standard_authorizer import StandardAuthorizer
from kafkapy.server.node_authorizer import follow_acls, make_authorizer, split_early
from tests.harness.metadata import QuorumHarness

ENTRY = AccessControlEntry(
    ResourceType.TOPIC, "t", PatternType.LITERAL, "User:ada", "*", Operation.READ, Permission.ALLOW
)
READ = Action(Operation.READ, ResourceType.TOPIC, "t")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class OnlyAdministrators:
    """An authorizer of an administrator's own."""

    generation = 0

    def configure(self, configs: dict[str, str]) -> None:
        self.name = configs["our.administrator"]

    def authorize(self, requester: Requester, actions: list[Action]) -> list[bool]:
        return [requester.principal.name == self.name for _ in actions]

    def authorize_by_type(self, requester: Requester, operation: Operation, resource_type: ResourceType) -> bool:
        return requester.principal.name == self.name


class Silent:
    """An authorizer that lacks the method `authorize_by_type`."""

    generation = 0

    def authorize(self, requester: Requester, actions: list[Action]) -> list[bool]:
        return []


class WithoutGeneration(OnlyAdministrators):
    @property
    def generation(self) -> int:  # type: ignore[override]
        raise AttributeError("generation")


class Derived(StandardAuthorizer):
    """A subclass of StandardAuthorizer, which must follow the ACLs of the metadata like its base class."""


def config_with(name: str, **properties: str) -> BrokerConfig:
    return BrokerConfig({"authorizer.class.name": name, **properties})


def asking(principal: str) -> Requester:
    return Requester(parse_principal(principal), "10.0.0.1", "PLAINTEXT", 0)


def test_without_a_class_there_is_no_authorizer():
    assert make_authorizer(BrokerConfig({})) is None


def test_a_python_class_gets_the_configuration():
    authorizer = make_authorizer(config_with(f"{__name__}:OnlyAdministrators", **{"our.administrator": "root"}))
    assert authorizer is not None
    assert authorizer.authorize(asking("User:root"), [READ, READ]) == [True, True]
    assert not authorizer.authorize_by_type(asking("User:ada"), Operation.WRITE, ResourceType.TOPIC)


@pytest.mark.parametrize(
    ("name", "properties", "message"),
    [
        (f"{__name__}:OnlyAdministrators", {}, "KeyError: 'our.administrator'"),
        (f"{__name__}:Silent", {}, "TypeError: it has no method authorize_by_type"),
        (f"{__name__}:WithoutGeneration", {"our.administrator": "x"}, "the class has no attribute generation"),
        (STANDARD, {"super.users": "root"}, r"super\.users=root: expected a string in format .* but got root"),
    ],
)
def test_a_class_that_cannot_work_is_refused(name, properties, message):
    with pytest.raises(ConfigError, match=message):
        make_authorizer(config_with(name, **properties))


def test_the_controllers_listeners_open_early_by_default():
    listeners = {
        "listeners": "PLAINTEXT://localhost:9092,C://localhost:9093,D://localhost:9094",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,C:PLAINTEXT,D:PLAINTEXT",
        "controller.listener.names": "C,D",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
    }
    config = config_with(STANDARD, **listeners)
    authorizer = make_authorizer(config)
    assert split_early(config, authorizer) == (["C", "D"], [])
    chosen = config_with(STANDARD, **listeners, **{"early.start.listeners": "d,PLAINTEXT"})
    assert split_early(chosen, authorizer) == (["D"], ["C"])
    assert split_early(chosen, None) == (["C", "D"], [])
    with pytest.raises(ConfigError, match=r"early\.start\.listeners contains listener X, but this is not"):
        config_with(STANDARD, **listeners, **{"early.start.listeners": "X"})


@pytest.fixture
def quorum(tmp_path) -> Iterator[QuorumHarness]:
    harness = QuorumHarness(tmp_path)
    harness.start()
    yield harness
    harness.loop.stop()


def write(quorum: QuorumHarness, record: Any) -> None:
    quorum.loop.submit(lambda image: ControllerResult([(record, 0)], None)).result(10)


@pytest.mark.parametrize("make", [StandardAuthorizer, Derived])
def test_the_acls_of_the_metadata_are_followed(quorum, make):
    authorizer: Any = make()
    record = AccessControlEntryRecord(id=bytes([1] * 16), **ENTRY._asdict())
    write(quorum, record)
    image = follow_acls(authorizer, quorum.loop, 1).result(10)
    assert set(image.acls.values()) == {ENTRY}
    assert authorizer.authorize(asking("User:ada"), [READ]) == [True]
    generation = authorizer.generation
    write(quorum, RemoveAccessControlEntryRecord(id=record.id))
    assert authorizer.authorize(asking("User:ada"), [READ]) == [False]
    assert authorizer.generation > generation


def test_an_authorizer_of_its_own_follows_nothing(quorum):
    authorizer: Any = OnlyAdministrators()
    assert follow_acls(authorizer, quorum.loop, 1).result(10) is quorum.loop.image


def test_an_end_of_the_loop_ends_the_wait_for_the_acls(quorum):
    quorum.loop.stop()
    assert follow_acls(StandardAuthorizer(), quorum.loop, 1).exception(10) is not None
