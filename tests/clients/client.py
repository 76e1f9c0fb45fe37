"""The interface of a client under test: write records, read them back, be a member of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tests.clients.records import SentRecord


class Client(ABC):
    """One client library or tool. Each call opens and closes its own connections."""

    name: str

    def can_carry(self, record: SentRecord) -> bool:
        """Returns whether the client can send such a record."""
        return True

    @abstractmethod
    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        """Writes all records and waits for the acknowledgement of all replicas. Raises an exception for a failure."""

    @abstractmethod
    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        """Reads the first `count` records of the topic's partitions, without a group."""


class GroupClient(Client):
    """A client whose group can be set."""

    @abstractmethod
    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        """Subscribes as a member of the group, reads `count` records, commits and leaves."""
