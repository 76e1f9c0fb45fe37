"""The headers of the retry chain under kafkapy's, Spring's and Connect's names."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable.chain_headers import (
    ATTEMPTS,
    DUE,
    ChainState,
    ErrorText,
    Origin,
    delivery_of,
    error_text,
    headers_after_failure,
    headers_behind_key,
    origin_of,
    state_of,
    without_chain,
)
from tests.unit.client.reliable.simulated_record import SimulatedRecord

ERROR = ErrorText("x.Broken", "it broke", "trace")
STATE = ChainState("orders", 3, 42, 1_700_000_000_000, attempts=1, level=1, due_ms=1_700_000_005_000)


def test_a_record_without_headers_is_at_the_beginning():
    assert state_of(SimulatedRecord()) == ChainState("t", 1, 7, 1000)


def test_the_state_survives_a_retry_topic():
    headers = headers_after_failure((("mine", b"1"),), STATE, ERROR, "group", is_dead=False)
    record = SimulatedRecord("orders.retry.1", 0, 0, 5, headers=headers)
    assert state_of(record) == STATE
    assert delivery_of(record, STATE) == ("orders", 3, 42, 1_700_000_000_000, b"k", b"v", (("mine", b"1"),), 2)


def test_springs_headers_have_springs_bytes():
    headers = dict(headers_after_failure((), STATE, ERROR, "group", is_dead=False))
    assert headers["retry_topic-attempts"] == bytes([0, 0, 0, 2])
    assert headers["retry_topic-backoff-timestamp"] == (1_700_000_005_000).to_bytes(6, "big")
    assert headers["kafka_original-topic"] == b"orders"
    assert headers["kafka_original-partition"] == bytes([0, 0, 0, 3])
    dead = dict(headers_after_failure((), STATE, ERROR, "group", is_dead=True))
    assert dead["kafka_dlt-original-offset"] == (42).to_bytes(8, "big")
    assert dead["kafka_dlt-exception-message"] == b"it broke"
    assert dead["kafka_dlt-original-consumer-group"] == b"group"


def test_javas_big_integer_has_a_sign_bit():
    state = STATE._replace(due_ms=128)
    assert (
        dict(headers_after_failure((), state, ERROR, "g", is_dead=False))["retry_topic-backoff-timestamp"] == b"\0\x80"
    )


def test_connects_headers_are_text():
    headers = dict(headers_after_failure((), STATE, ERROR, "group", is_dead=True))
    assert headers["__connect.errors.partition"] == b"3"
    assert headers["__connect.errors.exception.class.name"] == b"x.Broken"


def test_headers_do_not_pile_up():
    once = headers_after_failure((("mine", b"1"),), STATE, ERROR, "group", is_dead=False)
    twice = headers_after_failure(once, STATE, ERROR, "group", is_dead=False)
    assert twice == once
    assert without_chain(twice) == (("mine", b"1"),)
    waiting = headers_behind_key(once, STATE._replace(level=2, due_ms=0), "group")
    assert len(waiting) == len(once) and dict(waiting)["kafkapy.retry.error"] == b"x.Broken: it broke"


@pytest.mark.parametrize("value", [b"", b"-1", b"1e3", b"soon", b"9" * 30, None])
def test_a_header_that_is_no_number_is_named(value):
    headers = dict(headers_after_failure((), STATE, ERROR, "group", is_dead=False))
    state = state_of(SimulatedRecord(headers=tuple((headers | {DUE: value}).items())))
    assert (state.due_ms, state.invalid, state.attempts) == (0, (DUE,), 1)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("kafkapy.retry.partition", 2**31 - 1),
        ("kafkapy.retry.offset", 2**63 - 1),
        ("kafkapy.retry.timestamp", 2**63 - 1),
        (ATTEMPTS, 2**31 - 1),
        ("kafkapy.retry.level", 2**31 - 1),
        (DUE, 2**63 - 1),
    ],
)
def test_a_number_that_its_field_cannot_hold_is_named(name, most):
    sent = headers_after_failure((), STATE, ERROR, "group", is_dead=False)
    for number, invalid in ((most, ()), (most + 1, (name,))):
        headers = dict(sent) | {name: str(number).encode()}
        state = state_of(SimulatedRecord(headers=tuple(headers.items())))
        assert state.invalid == invalid
        for is_dead in (False, True):  # the next headers have room for the numbers
            headers_after_failure((), state, ERROR, "group", is_dead=is_dead)


def test_a_name_that_is_no_text_is_named():
    headers = dict(headers_after_failure((), STATE, ERROR, "group", is_dead=False)) | {"kafkapy.retry.topic": b"\xff"}
    state = state_of(SimulatedRecord(headers=tuple(headers.items())))
    assert (state.topic, state.invalid) == ("t", ("kafkapy.retry.topic",))


@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        ({"kafkapy.retry.topic": b"a", "kafkapy.retry.partition": b"2"}, Origin("a", 2)),
        ({"kafka_dlt-original-topic": b"a", "kafka_dlt-original-partition": bytes([0, 0, 0, 2])}, Origin("a", 2)),
        ({"kafka_original-topic": b"a"}, Origin("a", None)),
        ({"kafkapy.retry.topic": b"a", "kafkapy.retry.partition": b"2147483648"}, Origin("a", None)),
        ({"__connect.errors.topic": b"a", "__connect.errors.partition": b"x"}, Origin("a", None)),
        ({"__connect.errors.topic": b"\xff"}, None),
        ({ATTEMPTS: b"1"}, None),
    ],
)
def test_the_origin_is_read_from_every_set_of_names(headers, origin):
    assert origin_of(tuple(headers.items())) == origin


def test_an_error_is_limited_in_length():
    try:
        raise ValueError("é" * 5000)
    except ValueError as error:
        found = error_text(error)
    assert found.name == "ValueError"
    assert len(found.message.encode()) <= 1024 and len(found.trace.encode()) <= 4096


@pytest.mark.parametrize("is_dead", [False, True])
def test_an_error_with_half_a_surrogate_pair_has_headers(is_dead):
    found = error_text(ValueError("No file caf\udce9"))  # as os.fsdecode makes of a name that is not UTF-8
    headers = dict(headers_after_failure((), STATE, found, "group", is_dead=is_dead))
    assert headers["kafkapy.retry.error"] == b"ValueError: No file caf?"
