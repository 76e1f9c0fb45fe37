"""The generated codec writes and reads every version of every message as the slow interpreter of the facts does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.message import Message
from tests.protocol_messages import MessageMaker, message_class
from tests.reference.wire import Codec, facts, message_versions

SEEDS = st.integers(min_value=0, max_value=2**32)


def same(value: Any, record: Any) -> bool:
    """Returns whether a decoded message holds the values that the reference decoded.

    A struct that several fields share has the fields of all of them; the facts name only those of each place.
    """
    if isinstance(value, Message):
        return all(same(getattr(value, name), getattr(record, name)) for name in value.FIELDS if hasattr(record, name))
    if isinstance(value, list):
        return len(value) == len(record) and all(map(same, value, record))
    return bool(value == record)


def check(name: str, version: int, seed: int) -> None:
    message = MessageMaker(name, version, seed).make()
    data = message.encode(version)
    assert data == Codec(name, version).encode(message)
    decoded = message_class(name).decode(data, version)
    assert decoded == message
    assert same(decoded, Codec(name, version).decode(data))
    assert b"".join(bytes(chunk) for chunk in message.encode_chunks(version, b"prefix")) == b"prefix" + data


@pytest.mark.parametrize("name", sorted(facts()))
def test_round_trip_in_every_version(name: str) -> None:
    for version in message_versions(facts()[name]):
        for seed in range(3):
            check(name, version, seed)


@pytest.mark.parametrize("name", sorted(facts()))
@settings(max_examples=8, deadline=None, database=None)
@given(data=st.data())
def test_round_trip_of_any_message(name: str, data: st.DataObject) -> None:
    check(name, data.draw(st.sampled_from(message_versions(facts()[name]))), data.draw(SEEDS))
