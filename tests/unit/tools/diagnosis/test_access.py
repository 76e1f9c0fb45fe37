"""The doctor's checks of ACLs and super users, on metadata logs that are written for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kafkapy.quorum.metadata_batch import metadata_batches
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.tools.diagnosis.access import check_access, read_metadata

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ENTRY = AccessControlEntry(ResourceType.TOPIC, "*", PatternType.LITERAL, "User:*", "*", Operation.ALL, Permission.ALLOW)
HARMLESS = ENTRY._replace(principal="User:ada")


def record(entry: AccessControlEntry, number: int = 1) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=bytes([number] * 16), **entry._asdict())


def user(name: str, mechanism: int = 1) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096
    )


class Directory:
    """A log directory with a metadata log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "__cluster_metadata-0"
        self.log.mkdir()

    def write(self, *records: object, name: str = "00000000000000000000.log", base_offset: int = 0) -> None:
        batches, _ = metadata_batches(base_offset, 1, 0, [(each, 0) for each in records])
        (self.log / name).write_bytes(b"".join(batches))

    def texts(self, **properties: str) -> list[str]:
        settings = {"node.id": "1", "log.dirs": str(self.root), "authorizer.class.name": STANDARD}
        settings |= {name.replace("_", "."): value for name, value in properties.items()}
        return [f"{finding.level}: {finding.text}" for finding in check_access(BrokerConfig(settings))]


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_acls_without_an_authorizer_have_no_effect(directory: Directory):
    directory.write(record(ENTRY))
    (text,) = directory.texts(authorizer_class_name="")
    assert text == "warning: the metadata contain 1 ACLs, which have no effect without an authorizer"
    directory.write(user("ada"))
    assert directory.texts(authorizer_class_name="") == []


def test_acls_that_allow_everything_are_reported(directory: Directory):
    directory.write(record(ENTRY), record(HARMLESS, 2), record(ENTRY._replace(permission_type=Permission.DENY), 3))
    assert directory.texts() == ["warning: an ACL allows everybody everything with every TOPIC"]
    directory.write(record(HARMLESS))
    assert directory.texts() == ["good: no problems found in 1 ACLs and the super users"]


@pytest.mark.parametrize(
    ("host", "is_valid"),
    [("10.0.0.1", True), ("0:0:0:0:0:0:0:1", True), ("::1", False), ("example.org", False), ("10.0.0.256", False)],
)
def test_hosts_that_no_client_has_are_reported(directory: Directory, host, is_valid):
    directory.write(record(HARMLESS._replace(host=host)))
    (text,) = directory.texts()
    assert (
        text.startswith("good")
        if is_valid
        else text == f"warning: an ACL is for the host {host!r}, which no client has"
    )


def test_super_users_are_compared_with_the_users_of_the_metadata(directory: Directory):
    directory.write(user("ada"), user("bob"), user("bob", 2), RemoveUserScramCredentialRecord(name="bob", mechanism=1))
    assert directory.texts(super_users="User:ada;User:bob")[0].startswith("good")
    assert directory.texts(super_users="User:carl") == [
        "warning: the super user User:carl does not exist: no listener knows the user"
    ]


def test_super_users_that_are_everybody_or_nobody_are_reported(directory: Directory):
    directory.write(user("ada"))
    assert directory.texts(super_users="User:ANONYMOUS;User:*;Group:x") == [
        "note: the super user Group:x has a type that kafkapy gives to no client",
        "warning: the super user User:* is nobody: * has no meaning in super.users",
        "warning: the super user User:ANONYMOUS is every client that does not authenticate",
    ]


def test_defaults_that_let_everybody_or_nobody_in_are_reported(directory: Directory):
    directory.write(user("ada"))
    assert directory.texts()[0].startswith("warning: nobody may do anything")
    (text,) = directory.texts(allow_everyone_if_no_acl_found="true")
    assert text == "warning: everybody may do everything with a resource that no ACL names"


def test_the_newest_snapshot_precedes_the_log(directory: Directory):
    directory.write(record(HARMLESS, 2), name="00000000000000000003-0000000001.checkpoint")
    directory.write(
        RemoveAccessControlEntryRecord(id=bytes([2] * 16)), record(HARMLESS, 4), user("bob"),
        name="00000000000000000003.log", base_offset=3,
    )  # fmt: skip
    found = read_metadata(str(directory.root))
    assert found is not None
    assert list(found.acls.values()) == [HARMLESS]
    assert found.scram.keys() == {("bob", 1)}


def test_a_log_that_cannot_be_read_is_no_finding(tmp_path: Path):
    assert read_metadata(str(tmp_path)) is None
