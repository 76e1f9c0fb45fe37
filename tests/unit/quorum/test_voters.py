"""A quorum of this node alone, or none."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.protocol.messages.data_records import VotersRecord
from kafkapy.quorum.voters import (
    ControllerListener,
    Voter,
    check_static_voters,
    check_voters,
    parse_voter,
    single_voter,
)
from kafkapy.types import uuid_to_string

DIRECTORY = bytes(range(16))
VOTERS = single_voter(1, DIRECTORY, ControllerListener("CONTROLLER", "localhost", 9093))


@pytest.mark.parametrize("voters", [[], ["1@localhost:9093"], [" 1@host:1"]])
def test_static_voters_accepted(voters):
    check_static_voters(voters, 1)


@pytest.mark.parametrize("voters", [["2@localhost:9093"], ["1@a:1", "2@b:1"], ["localhost:9093"]])
def test_static_voters_refused(voters):
    with pytest.raises(ConfigError, match=r"controller\.quorum\.voters"):
        check_static_voters(voters, 1)


def test_voters_of_the_log():
    record = VOTERS.records()[1]
    assert check_voters(record, 1, DIRECTORY) == VOTERS
    with pytest.raises(ConfigError, match=r"voters \[1\]"):
        check_voters(record, 2, DIRECTORY)
    with pytest.raises(ConfigError, match=r"directory\.id="):
        check_voters(record, 1, bytes(16))
    with pytest.raises(ConfigError, match=r"voters \[1, 1\]"):
        check_voters(VotersRecord(version=0, voters=record.voters * 2), 1, DIRECTORY)


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
