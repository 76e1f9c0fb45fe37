"""Registrations of brokers and controllers, SCRAM credentials and delegation tokens.

They are parts of the image, which is the cluster's metadata at one offset of the metadata log.
"""

from __future__ import annotations

from kafkapy.metadata.topics_image import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from kafkapy.named_tuple import NamedTuple

SECURITY_PROTOCOL_IDS: dict[str, int] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Endpoint(NamedTuple):
    """The address of a broker or controller on one listener; `security_protocol` is Kafka's number."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerRegistration(NamedTuple):
    """A broker's newest registration. The object does not change after its construction. A fenced broker leads no
    partitions, and Metadata responses do not contain it.

    `features` maps each feature to the lowest and highest supported level. `log_dirs` and
    `cordoned_log_dirs` are ids of log directories; the cordoned directories get no new replicas.
    """

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: dict[str, Endpoint]
    features: dict[str, tuple[int, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...]
    cordoned_log_dirs: tuple[bytes, ...] | None
    is_migrating_zk_broker: bool

    @property
    def is_active(self) -> bool:
        """True if the broker may lead partitions: it is not fenced and not in a controlled shutdown."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def accepts_replicas(self) -> bool:
        """True unless the broker is in a controlled shutdown, or all its log directories are cordoned."""
        if self.in_controlled_shutdown:
            return False
        if not self.log_dirs or self.cordoned_log_dirs is None:
            return True
        return not set(self.log_dirs) <= set(self.cordoned_log_dirs)

    def has_online_directory(self, directory_id: bytes) -> bool:
        """Returns whether a log directory of the broker is online, according to the broker's registration.

        Returns True for every directory if the registration does not name the online directories. The reserved id
        DIRECTORY_LOST is never online. The reserved ids DIRECTORY_UNASSIGNED and DIRECTORY_MIGRATING, which say that
        the directory is not known yet, are always treated as online.
        """
        if directory_id in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
            return True
        if directory_id == DIRECTORY_LOST:
            return False
        return not self.log_dirs or directory_id in self.log_dirs


class ControllerRegistration(NamedTuple):
    """A controller's newest registration. The object does not change after its construction. `features` maps each
    feature to the lowest and highest supported level.
    """

    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    endpoints: dict[str, Endpoint]
    features: dict[str, tuple[int, int]]


class ScramCredential(NamedTuple):
    """The keys by which a user's password is verified in one SCRAM mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class DelegationToken(NamedTuple):
    """A delegation token without its secret, which is derived from the id; timestamps in milliseconds."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
