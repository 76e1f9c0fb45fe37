"""Further arguments and results of the admin client: offsets, SCRAM credentials, the cluster."""

from __future__ import annotations

from typing import Any

from kafkapy.compat.confluent_kafka import _constants as numbers
from kafkapy.compat.confluent_kafka._model import Node, OrderedEnum
from kafkapy.compat.confluent_kafka.admin._acl import operations_of


class OffsetSpec:
    """The choice of the offset that `list_offsets` looks up in a partition.

    This is the first offset, the end offset, the offset of the first record with a given or a later timestamp, or the
    offset of the record with the greatest timestamp.
    """

    def __init__(self, index: int) -> None:
        self._number = index

    @property
    def _value(self) -> int:
        return self._number

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """Returns the specification of the first offset."""
        return _EARLIEST

    @classmethod
    def latest(cls) -> OffsetSpec:
        """Returns the specification of the end offset."""
        return _LATEST

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """Returns the specification of the record with the latest timestamp."""
        return _MAX_TIMESTAMP

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """Returns the specification of the first record at a timestamp (ms since 1970) or a later one."""
        return OffsetSpec(timestamp)

    def __lt__(self, other: object) -> bool:
        return self._number < other._number if isinstance(other, OffsetSpec) else NotImplemented


_EARLIEST = OffsetSpec(numbers.OFFSET_SPEC_EARLIEST)
_LATEST = OffsetSpec(numbers.OFFSET_SPEC_LATEST)
_MAX_TIMESTAMP = OffsetSpec(numbers.OFFSET_SPEC_MAX_TIMESTAMP)


class ListOffsetsResultInfo:
    """The offset that was found, with the timestamp and the leader epoch of its record."""

    def __init__(self, offset: int, timestamp: int, leader_epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch = leader_epoch if leader_epoch >= 0 else None


class DeletedRecords:
    """The first offset of a partition after records were deleted."""

    def __init__(self, low_watermark: int) -> None:
        self.low_watermark = low_watermark


class DescribeClusterResult:
    """The id, controller and brokers of a cluster."""

    def __init__(
        self,
        controller: Node | None,
        nodes: list[Node],
        cluster_id: str | None = None,
        authorized_operations: list[Any] | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.controller = controller
        self.nodes = nodes
        self.authorized_operations = operations_of(authorized_operations)


class ScramMechanism(OrderedEnum):
    """The mechanisms of SCRAM."""

    UNKNOWN = numbers.SCRAM_MECHANISM_UNKNOWN
    SCRAM_SHA_256 = numbers.SCRAM_MECHANISM_SHA_256
    SCRAM_SHA_512 = numbers.SCRAM_MECHANISM_SHA_512


class ScramCredentialInfo:
    """The mechanism and the iterations of a credential."""

    def __init__(self, mechanism: ScramMechanism, iterations: int) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class UserScramCredentialsDescription:
    """The credentials of a user."""

    def __init__(self, user: str, scram_credential_infos: list[ScramCredentialInfo]) -> None:
        self.user = user
        self.scram_credential_infos = scram_credential_infos


class UserScramCredentialAlteration:
    """The base class of changes of a user's credentials."""

    def __init__(self, user: str) -> None:
        self.user = user


class UserScramCredentialUpsertion(UserScramCredentialAlteration):
    """A credential to be created or replaced; without `salt` a random salt is made."""

    def __init__(
        self, user: str, scram_credential_info: ScramCredentialInfo, password: bytes, salt: bytes | None = None
    ) -> None:
        super().__init__(user)
        self.scram_credential_info = scram_credential_info
        self.password = password
        self.salt = salt


class UserScramCredentialDeletion(UserScramCredentialAlteration):
    """A credential to be deleted."""

    def __init__(self, user: str, mechanism: ScramMechanism) -> None:
        super().__init__(user)
        self.mechanism = mechanism
