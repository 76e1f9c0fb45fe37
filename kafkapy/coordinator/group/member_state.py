"""The progress of a member of a consumer or streams group toward its target assignment."""

from __future__ import annotations

from enum import Enum


class MemberState(Enum):
    """The progress of a member toward its target assignment. The numbers of the states in records differ between
    consumer and streams groups."""

    STABLE = "has its target"
    UNREVOKED = "has to revoke partitions or tasks first"
    UNRELEASED = "waits for partitions or tasks that other members have not revoked yet"
    UNKNOWN = "unknown to this broker"
