"""The voters: from the configuration (static quorum) or from KRaftVoters records in the log (dynamic, KIP-853).

This node must be the only voter; any other set is refused before anything is written.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kafkapy.errors import ConfigError
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, VotersRecord
from kafkapy.types import uuid_from_string, uuid_to_string

KRAFT_VERSION_DYNAMIC = 1
LARGEST_PORT = 2**16 - 1
_NUMBER = re.compile(r"[-+]?[0-9]{1,10}")


class ControllerListener(NamedTuple):
    """The address of the controller. Nothing listens there, but Kafka stores the address with the voter."""

    name: str
    host: str
    port: int


DEFAULT_CONTROLLER_LISTENER = ControllerListener("CONTROLLER", "localhost", 9093)


class VoterSet(NamedTuple):
    """The single voter of a dynamic quorum."""

    node_id: int
    directory_id: bytes
    listener: ControllerListener

    def records(self) -> list[Any]:
        """Returns the control records that make these the quorum's voters."""
        endpoint = VotersRecord.Endpoint(name=self.listener.name, host=self.listener.host, port=self.listener.port)
        feature = VotersRecord.KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
        voter = VotersRecord.Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=[endpoint],
            kraft_version_feature=feature,
        )
        return [
            KRaftVersionRecord(version=0, kraft_version=KRAFT_VERSION_DYNAMIC),
            VotersRecord(version=0, voters=[voter]),
        ]


def check_voters(record: VotersRecord, node_id: int, directory_id: bytes) -> VoterSet:
    """Returns the voter set of a KRaftVoters record; raises ConfigError unless it is this node and directory alone."""
    ids = [voter.voter_id for voter in record.voters]
    if ids != [node_id]:
        raise ConfigError(
            f"the metadata log names the voters {ids}; this broker serves only a quorum of this node ({node_id}) alone"
        )
    voter = record.voters[0]
    if voter.voter_directory_id != directory_id:
        raise ConfigError(
            f"the metadata log names directory {uuid_to_string(voter.voter_directory_id)} for voter {node_id}, "
            f"but meta.properties has directory.id={uuid_to_string(directory_id)}"
        )
    listener = DEFAULT_CONTROLLER_LISTENER
    if voter.endpoints:
        listener = ControllerListener(voter.endpoints[0].name, voter.endpoints[0].host, voter.endpoints[0].port)
    return VoterSet(node_id, directory_id, listener)


def parse_voter(text: str, listener_name: str) -> VoterSet:
    """Parses `1@localhost:9093:JEXY6aqzQY-32P5TStzaFg`: node, address of its controller, and id of the directory
    with the metadata log. Raises ConfigError in Kafka's words."""
    node, at, rest = text.strip().partition("@")
    if not at:
        raise ConfigError("No @ found in dynamic voter string.")
    if not node:
        raise ConfigError("Invalid @ at beginning of dynamic voter string.")
    if not _NUMBER.fullmatch(node):
        raise ConfigError("Failed to parse node id in dynamic voter string.")
    if int(node) < 0:
        raise ConfigError(f"Invalid negative node id {int(node)} in dynamic voter string.")
    if not rest:
        raise ConfigError("No hostname found after node id.")
    if rest.startswith("["):
        host, end, rest = rest[1:].partition("]")
        if not end:
            raise ConfigError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise ConfigError("Port section must start with a colon.")
        rest = rest[1:]
    else:
        host, end, rest = rest.partition(":")
        if not end:
            raise ConfigError("No colon following hostname could be found.")
    port, end, directory = rest.partition(":")
    if not end:
        raise ConfigError("No colon following port could be found.")
    if not _NUMBER.fullmatch(port):
        raise ConfigError("Failed to parse port in dynamic voter string.")
    if not 0 <= int(port) <= LARGEST_PORT:
        raise ConfigError(f"Invalid port {int(port)} in dynamic voter string.")
    try:
        directory_id = uuid_from_string(directory)
    except ValueError:
        raise ConfigError("Failed to parse directory ID in dynamic voter string.") from None
    return VoterSet(int(node), directory_id, ControllerListener(listener_name, host, int(port)))


def check_static_voters(voters: list[str], node_id: int) -> None:
    """Raises ConfigError unless `controller.quorum.voters` (items id@host:port) is empty or names this node alone."""
    ids = []
    for voter in voters:
        text = voter.strip().split("@", 1)[0]
        if not text.isdigit():
            raise ConfigError(f"controller.quorum.voters: {voter!r} is not of the form id@host:port")
        ids.append(int(text))
    if ids and ids != [node_id]:
        raise ConfigError(
            f"controller.quorum.voters names the voters {ids}; this broker serves only a quorum of this node "
            f"(node.id={node_id}) alone"
        )
