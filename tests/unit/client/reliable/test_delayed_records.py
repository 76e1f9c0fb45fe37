"""The headers of delayed records."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable.delayed_records import (
    Cancellation,
    InvalidDelay,
    cancellation,
    delayed,
    pack,
    parse,
    unpack,
)
from tests.unit.client.reliable.simulated_record import SimulatedRecord

YEAR_MS = 366 * 24 * 3600 * 1000


def received(output) -> SimulatedRecord:
    return SimulatedRecord("__kafkapy_delay", 0, 9, 1000, output.key, output.value, output.headers)


def test_a_record_is_delivered_as_it_was_given():
    output = delayed("target", b"v", b"k", delay_ms=500, headers=(("mine", b"1"),))
    found = parse(received(output), YEAR_MS)
    assert (found.due_ms, found.state_key, found.is_replaceable) == (1500, b"o9", False)
    assert found.output() == ("target", b"v", b"k", (("mine", b"1"),), None, None)
    assert unpack(pack(found)) == found


def test_a_cancellation_has_the_key_of_its_record():
    for key in (None, b"", b"k"):
        found = parse(received(delayed("target", None, key, at_ms=2000, record_id="a")), YEAR_MS)
        assert found.is_replaceable
        assert parse(received(cancellation("a", key)), YEAR_MS) == Cancellation(found.state_key)
    one = parse(received(delayed("target", b"", b"xk", at_ms=1, record_id="a")), YEAR_MS)
    other = parse(received(delayed("target", b"", b"k", at_ms=1, record_id="ax")), YEAR_MS)
    assert one.state_key != other.state_key


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("kafkapy.deliver-at", b"5"),),
        (("kafkapy.target", b"t"),),
        (("kafkapy.target", b"t"), ("kafkapy.deliver-at", b"tomorrow")),
        (("kafkapy.target", b"t"), ("kafkapy.deliver-at", None)),
        (("kafkapy.target", b"t"), ("kafkapy.delay-ms", b"-1")),
        (("kafkapy.target", b"\xff"), ("kafkapy.delay-ms", b"1")),
        (("kafkapy.target", b"__kafkapy_delay"), ("kafkapy.delay-ms", b"1")),
        (("kafkapy.target", b"t"), ("kafkapy.deliver-at", b"9" * 18)),
        (("kafkapy.target", b"t"), ("kafkapy.delay-ms", b"1"), ("kafkapy.delay-id", b"")),
        (("kafkapy.delay-cancel", b""),),
    ],
)
def test_invalid_headers_are_refused_with_a_reason(headers):
    with pytest.raises(InvalidDelay):
        parse(SimulatedRecord("__kafkapy_delay", headers=headers), YEAR_MS)


@pytest.mark.parametrize("content", [b"", b"\x01", b"\x93\x01\x02\x03", b"\xc1"])
def test_bytes_that_are_no_pending_record_are_refused(content):
    with pytest.raises(ValueError, match="not a pending record"):
        unpack(content)


def test_exactly_one_time_is_required():
    with pytest.raises(ValueError, match="Exactly one"):
        delayed("t", b"")
