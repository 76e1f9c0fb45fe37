"""Who may vote: from the configuration (static quorum) or from KRaftVoters records in the log (dynamic, KIP-853).

We are a quorum of one.  Anything else is refused by name before a byte is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkapy.errors import ConfigError
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, VotersRecord
from kafkapy.types import uuid_to_string

KRAFT_VERSION_DYNAMIC = 1


class ControllerListener(NamedTuple):
    """Where the controller would be reached; we answer nothing there, but Kafka stores it with the voter."""

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
        """The control records that make this set the quorum's."""
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
    """The voter set of a KRaftVoters record; ConfigError unless it is this node and directory alone."""
    ids = [voter.voter_id for voter in record.voters]
    if ids != [node_id]:
        raise ConfigError(
            f"the metadata log names the voters {ids}; only a quorum of this node ({node_id}) alone can be served"
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


def check_static_voters(voters: list[str], node_id: int) -> None:
    """ConfigError unless `controller.quorum.voters` (items id@host:port) is empty or names this node alone."""
    ids = []
    for voter in voters:
        text = voter.strip().split("@", 1)[0]
        if not text.isdigit():
            raise ConfigError(f"controller.quorum.voters: {voter!r} is not of the form id@host:port")
        ids.append(int(text))
    if ids and ids != [node_id]:
        raise ConfigError(
            f"controller.quorum.voters names the voters {ids}; only a quorum of this node (node.id={node_id}) alone "
            "can be served"
        )
