"""The progress of a member of a consumer or streams group toward its target assignment."""

from __future__ import annotations

from enum import Enum


class MemberState(Enum):
    """The progress of a member toward its target assignment. The records of each kind of group have numbers of their
    own."""

    STABLE = "has its target"
    UNREVOKED = "has to revoke partitions or tasks first"
    UNRELEASED = "waits for partitions or tasks that other members have not revoked yet"
    UNKNOWN = "unknown to this broker"
