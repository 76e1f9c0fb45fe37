"""The voters of the metadata quorum: from the configuration (static quorum) or from KRaftVoters records in the log
(dynamic quorum, KIP-853)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkapy.config.controller_addresses import INTEGER, Address
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, VotersRecord
from kafkapy.types import ZERO_UUID, uuid_from_string, uuid_to_string

KRAFT_VERSION_STATIC = 0
KRAFT_VERSION_DYNAMIC = 1
LARGEST_PORT = 2**16 - 1


class ControllerListener(NamedTuple):
    """The address of a controller on one listener, as Kafka stores it with a voter."""

    name: str
    host: str
    port: int


DEFAULT_CONTROLLER_LISTENER = ControllerListener("CONTROLLER", "localhost", 9093)


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: node id and directory id (ZERO_UUID if the directory is not known)."""

    node_id: int
    directory_id: bytes = ZERO_UUID

    def __str__(self) -> str:
        return f"{self.node_id}:{uuid_to_string(self.directory_id)}" if any(self.directory_id) else str(self.node_id)


class Voter(NamedTuple):
    """One voter: node, directory (ZERO_UUID in a static quorum), listeners, and supported levels of kraft.version."""

    node_id: int
    directory_id: bytes = ZERO_UUID
    listeners: tuple[ControllerListener, ...] = ()
    min_kraft_version: int = 0
    max_kraft_version: int = 0

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    def has_key(self, key: ReplicaKey) -> bool:
        """Returns True if `key` has this voter's node id and directory id; a voter without a directory id matches every
        one."""
        return key.node_id == self.node_id and self.directory_id in (ZERO_UUID, key.directory_id)

    def supports(self, kraft_version: int) -> bool:
        """Returns True if the voter supports the level of kraft.version."""
        return self.min_kraft_version <= kraft_version <= self.max_kraft_version


class VoterSet:
    """An immutable set of voters with distinct node ids, ordered by node id."""

    __slots__ = ("_by_id", "ids")

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._by_id = {voter.node_id: voter for voter in sorted(voters)}
        self.ids = tuple(self._by_id)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    def __hash__(self) -> int:
        return hash(tuple(self._by_id.values()))

    def __repr__(self) -> str:
        return f"VoterSet({', '.join(str(voter.key) for voter in self)})"

    def get(self, node_id: int) -> Voter | None:
        """Returns the voter with a node id, or None."""
        return self._by_id.get(node_id)

    def find(self, key: ReplicaKey) -> Voter | None:
        """Returns the voter with the node id and directory id of `key`, or None. A voter without a directory id matches
        every directory."""
        voter = self._by_id.get(key.node_id)
        return voter if voter is not None and voter.has_key(key) else None

    def is_voter(self, key: ReplicaKey) -> bool:
        """Returns True if the replica is one of the voters."""
        return self.find(key) is not None

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Returns True if the replica is the only voter."""
        return len(self.ids) == 1 and self.is_voter(key)

    def with_voter(self, voter: Voter) -> VoterSet:
        """Returns a set to which `voter` is added; it replaces a voter with the same node id."""
        return VoterSet({**self._by_id, voter.node_id: voter}.values())

    def without(self, node_id: int) -> VoterSet:
        """Returns a set without the voter `node_id`."""
        return VoterSet(voter for voter in self if voter.node_id != node_id)

    def supports(self, kraft_version: int) -> bool:
        """Returns True if every voter supports the level of kraft.version."""
        return all(voter.supports(kraft_version) for voter in self)

    def voters_record(self) -> VotersRecord:
        """Returns the KRaftVoters control record with this set."""
        return VotersRecord(version=0, voters=[_voter_to_record(voter) for voter in self])

    def records(self) -> list[Any]:
        """Returns the KRaftVersion and KRaftVoters control records that make this set the voters of a dynamic
        quorum."""
        return [KRaftVersionRecord(version=0, kraft_version=KRAFT_VERSION_DYNAMIC), self.voters_record()]


def single_voter(node_id: int, directory_id: bytes, listener: ControllerListener) -> VoterSet:
    """Returns the set of one voter, as `kafka-storage format --standalone` stores it."""
    return VoterSet([Voter(node_id, directory_id, (listener,), 0, KRAFT_VERSION_DYNAMIC)])


def voters_from_record(record: VotersRecord) -> VoterSet:
    """Returns the voter set of a KRaftVoters control record."""
    return VoterSet(
        Voter(
            voter.voter_id,
            voter.voter_directory_id,
            tuple(ControllerListener(each.name, each.host, each.port) for each in voter.endpoints),
            voter.kraft_version_feature.min_supported_version,
            voter.kraft_version_feature.max_supported_version,
        )
        for voter in record.voters
    )


def _voter_to_record(voter: Voter) -> VotersRecord.Voter:
    feature = VotersRecord.KRaftVersionFeature(
        min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
    )
    return VotersRecord.Voter(
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[VotersRecord.Endpoint(name=name, host=host, port=port) for name, host, port in voter.listeners],
        kraft_version_feature=feature,
    )


def parse_voter(text: str, listener_name: str) -> Voter:
    """Parses `1@localhost:9093:JEXY6aqzQY-32P5TStzaFg`: node, address of its controller, and id of the directory
    with the metadata log. Raises ConfigError, in Kafka's words, for a text of another form."""
    node, at, rest = text.strip().partition("@")
    if not at:
        raise ConfigError("No @ found in dynamic voter string.")
    if not node:
        raise ConfigError("Invalid @ at beginning of dynamic voter string.")
    if not re.fullmatch(INTEGER, node):
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
    if not re.fullmatch(INTEGER, port):
        raise ConfigError("Failed to parse port in dynamic voter string.")
    if not 0 <= int(port) <= LARGEST_PORT:
        raise ConfigError(f"Invalid port {int(port)} in dynamic voter string.")
    try:
        directory_id = uuid_from_string(directory)
    except ValueError:
        raise ConfigError("Failed to parse directory ID in dynamic voter string.") from None
    listener = ControllerListener(listener_name, host, int(port))
    return Voter(int(node), directory_id, (listener,), 0, KRAFT_VERSION_DYNAMIC)


def static_voters(addresses: Mapping[int, Address], listener_name: str) -> VoterSet:
    """Returns the voters of `controller.quorum.voters`, with their addresses as endpoints of the listener
    `listener_name`."""
    return VoterSet(
        Voter(node_id, ZERO_UUID, (ControllerListener(listener_name, *address),))
        for node_id, address in addresses.items()
    )
