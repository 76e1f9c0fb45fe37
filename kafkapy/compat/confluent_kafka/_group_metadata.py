"""Converts a consumer's membership in its group to bytes, and the bytes to the membership.

`Consumer.consumer_group_metadata` returns the bytes, and `Producer.send_offsets_to_transaction` accepts them.
"""

from __future__ import annotations

import json

from kafkapy.client.coordinator import GroupMetadata, MemberIdentity

_FORM = b"KPGM1:"


def group_metadata_bytes(group: GroupMetadata) -> bytes:
    """Returns a consumer's membership as bytes, which `group_metadata_of` decodes."""
    member = group.member
    content = [group.group_id, member.generation, member.member_id, member.instance_id]
    return _FORM + json.dumps(content).encode()


def group_metadata_of(content: object) -> GroupMetadata:
    """Returns the membership that `group_metadata_bytes` has encoded.

    Raises TypeError if `content` is not bytes, and ValueError if the bytes are not such a membership.
    """
    if not isinstance(content, bytes):
        raise TypeError(f"expected bytes, {type(content).__name__} found")
    if not content.startswith(_FORM):
        raise ValueError("group_metadata is not a result of Consumer.consumer_group_metadata")
    group_id, generation, member_id, instance_id = json.loads(content[len(_FORM) :])
    return GroupMetadata(group_id, MemberIdentity(generation, member_id, instance_id))
