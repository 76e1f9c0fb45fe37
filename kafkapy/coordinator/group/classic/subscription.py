"""The topics in a consumer's metadata, the only part of it that the coordinator reads."""

from __future__ import annotations

import struct
from collections.abc import Iterable


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Returns the topics of all subscriptions, or None if an element of `metadata` is not a valid subscription.

    Each element of `metadata` is an encoded `ConsumerProtocolSubscription`. It begins with the same fields in every
    version: int16 version, int32 count, count x (int16 length, UTF-8 bytes).
    """
    topics: set[str] = set()
    for subscription in metadata:
        try:
            topics.update(_topics(subscription))
        except (struct.error, UnicodeDecodeError, ValueError):
            return None
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str]:
    version, count = struct.unpack_from(">hi", subscription)
    if version < 0 or not 0 <= count <= len(subscription):
        raise ValueError("not a subscription")
    topics = []
    position = 6
    for _ in range(count):
        (length,) = struct.unpack_from(">h", subscription, position)
        position += 2
        if not 0 <= length <= len(subscription) - position:
            raise ValueError("not a subscription")
        topics.append(subscription[position : position + length].decode())
        position += length
    return topics
