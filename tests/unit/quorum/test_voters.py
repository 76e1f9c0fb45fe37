"""Voters: a quorum of this node alone, sets of many voters, and their forms in the configuration and the log."""

import pytest

from kafkapy.config.controller_addresses import Address
from kafkapy.errors import ConfigError
from kafkapy.protocol.messages.data_records import VotersRecord
from kafkapy.quorum.voters import (
    ControllerListener,
    ReplicaKey,
    Voter,
    VoterSet,
    parse_voter,
    single_voter,
    static_voters,
    voters_from_record,
)
from kafkapy.types import uuid_to_string

DIRECTORY = bytes(range(16))
VOTERS = single_voter(1, DIRECTORY, ControllerListener("CONTROLLER", "localhost", 9093))


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "::1"])
def test_a_voter_named_at_formatting(host):
    shown = f"[{host}]" if ":" in host else host
    found = parse_voter(f" 1@{shown}:9093:{uuid_to_string(DIRECTORY)}", "CONTROLLER")
    assert found == Voter(1, DIRECTORY, (ControllerListener("CONTROLLER", host, 9093),), 0, 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1", "No @"),
        ("@a:1:x", "Invalid @"),
        ("x@a:1:x", "node id"),
        ("-1@a:1:x", "negative node id -1"),
        ("1@", "No hostname"),
        ("1@a", "following hostname"),
        ("1@[::1", "right bracket"),
        ("1@[::1]1", "start with a colon"),
        ("1@a:1", "following port"),
        ("1@a:b:x", "parse port"),
        ("1@a:65536:x", "Invalid port 65536"),
        ("1@a:1:x", "directory ID"),
    ],
)
def test_a_voter_that_cannot_be_read(text, what):
    with pytest.raises(ConfigError, match=what):
        parse_voter(text, "CONTROLLER")


# -- sets of many voters

LISTENER = ControllerListener("CONTROLLER", "host", 9093)


def voter(node_id, directory_id=DIRECTORY, **fields):
    return Voter(node_id, directory_id, (LISTENER,), 0, 1)._replace(**fields)


def test_a_voter_set_is_ordered_and_changes_by_copies():
    voters = VoterSet([voter(3), voter(1)])
    assert voters.ids == (1, 3)
    more = voters.with_voter(voter(2))
    assert [each.node_id for each in more] == [1, 2, 3]
    assert more.without(2) == voters
    assert hash(more.without(2)) == hash(voters)
    assert more != voters
    assert more.with_voter(voter(2, bytes(16))).get(2).directory_id == bytes(16)
    assert (len(voters), len(more), voters.get(2)) == (2, 3, None)
    assert str(uuid_to_string(DIRECTORY)) in repr(voters)


@pytest.mark.parametrize(
    ("stored", "key", "is_voter"),
    [
        (DIRECTORY, ReplicaKey(1, DIRECTORY), True),
        (DIRECTORY, ReplicaKey(1, bytes(15) + b"x"), False),
        (DIRECTORY, ReplicaKey(1), False),
        (DIRECTORY, ReplicaKey(2, DIRECTORY), False),
        (bytes(16), ReplicaKey(1, DIRECTORY), True),
        (bytes(16), ReplicaKey(1), True),
    ],
)
def test_a_voter_is_known_by_id_and_directory_or_by_id_alone(stored, key, is_voter):
    voters = VoterSet([voter(1, stored)])
    assert voters.is_voter(key) is is_voter
    assert voters.is_only_voter(key) is is_voter
    assert not voters.with_voter(voter(2)).is_only_voter(key)


def test_a_voter_set_supports_what_all_its_voters_support():
    voters = VoterSet([voter(1), voter(2, max_kraft_version=0)])
    assert voters.supports(0)
    assert not voters.supports(1)
    assert not VoterSet([voter(1, min_kraft_version=1)]).supports(0)


def test_a_voters_record_is_read_as_it_was_written():
    voters = VoterSet([voter(1), voter(2, bytes(16), listeners=(LISTENER, LISTENER._replace(name="OTHER")))])
    record = VotersRecord.decode(voters.voters_record().encode(0), 0)
    assert voters_from_record(record) == voters


def test_static_voters_have_addresses_and_no_directories():
    found = static_voters({1: Address("host", 9093), 2: Address("::1", 9094)}, "CONTROLLER")
    assert list(found) == [
        Voter(1, bytes(16), (LISTENER,)),
        Voter(2, bytes(16), (ControllerListener("CONTROLLER", "::1", 9094),)),
    ]
    assert static_voters({}, "CONTROLLER") == VoterSet()
