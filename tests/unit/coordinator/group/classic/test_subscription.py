"""The topics in member metadata, which may be arbitrary bytes."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.group.classic.subscription import subscribed_topics


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00",
        b"\x00\x01\x7f\xff\xff\xff",
        b"\x00\x01\xff\xff\xff\xff",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x01\x00\x00\x00\x01\x00\x05abc",
        b"\x00\x01\x00\x00\x00\x01\xff\xff",
        b"\x00\x01\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_hostile_metadata_is_unknown(metadata: bytes) -> None:
    assert subscribed_topics([metadata]) is None


def test_a_subscription_may_have_no_topics() -> None:
    assert subscribed_topics([b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"]) == frozenset()
