"""A message that is truncated at any byte is refused, and so is a message followed by other bytes, in every type and
version."""

import pytest

from kafkapy.errors import ProtocolViolation
from tests.protocol_messages import MessageMaker, message_class
from tests.reference.wire import facts, message_versions


@pytest.mark.parametrize("name", sorted(facts()))
def test_every_cut_is_refused(name):
    decode = message_class(name).decode
    for version in message_versions(facts()[name]):
        data = MessageMaker(name, version, seed=1).make().encode(version)
        for end in range(len(data)):
            with pytest.raises(ProtocolViolation):
                decode(data, version, 0, end)
        with pytest.raises(ProtocolViolation, match="left over"):
            decode(data + b"\x00", version)


@pytest.mark.parametrize("name", sorted(facts()))
def test_unknown_versions_are_refused(name):
    message = message_class(name)
    for version in (-1, message.HIGHEST_VERSION + 1, 32767):
        with pytest.raises(ProtocolViolation, match=f"{name} has no version {version}"):
            message.decode(b"\x00" * 100, version)
        with pytest.raises(ValueError, match=f"{name} has no version {version}"):
            message().encode(version)
