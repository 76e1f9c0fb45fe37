"""One ACL, as the metadata contain it."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple


class AccessControlEntry(NamedTuple):
    """One ACL; the numeric fields have Kafka's values, which `kafkapy.security.acl` names."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
