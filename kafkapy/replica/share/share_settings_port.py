"""The interface through which share partitions read the configuration of their groups."""

from __future__ import annotations

from typing import Protocol


class ShareDeliverySettings(Protocol):
    """The settings of share groups that concern the delivery of records. They are read at each use."""

    def record_lock_duration_ms(self, group_id: str) -> int: ...

    def delivery_count_limit(self, group_id: str) -> int: ...

    def max_record_locks(self, group_id: str) -> int:
        """Returns the largest number of records of a partition that the group may have in flight."""

    def offset_reset(self, group_id: str) -> str:
        """Returns the group's policy for a partition without stored state: "latest", "earliest", or "by_duration:"
        followed by an ISO 8601 duration.
        """

    def reads_committed(self, group_id: str) -> bool: ...

    def may_renew(self, group_id: str) -> bool: ...
