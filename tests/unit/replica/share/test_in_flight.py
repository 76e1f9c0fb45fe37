"""The window of a share partition: limits of deliveries, and acknowledgements at its start."""

from __future__ import annotations

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.replica.share.in_flight import ACQUIRED, ARCHIVED, AVAILABLE, AckBatch, AckType, Acquired, InFlightRecords

LOG = [(0, 4), (5, 9)]


def acquire(window: InFlightRecords, *, most: int = 100, limit: int = 5, fetch_offset: int = 0) -> list[Acquired]:
    return window.acquire(
        "m", LOG, fetch_offset, 10, max_records=most, max_in_flight=100, limit=limit, batch_size=100
    )  # fmt: skip


def states(window: InFlightRecords) -> list[tuple[int, int, object]]:
    return [(run.first, run.last, run.state) for run in window.runs]


def test_whole_batches_are_acquired_unless_the_number_is_exact() -> None:
    assert acquire(InFlightRecords(0), most=2) == [Acquired(0, 4, 1)]


def test_a_lock_that_expires_archives_the_record_after_the_last_delivery() -> None:
    window = InFlightRecords(0)
    for count in (1, 2):
        assert acquire(window, most=5, limit=2)[0] == Acquired(0, 4, count)
        expired = window.expire(10, 2)
        assert [each.state for each in expired] == [ARCHIVED if count == 2 else AVAILABLE]
        if count == 1:
            assert states(window) == [(0, 4, AVAILABLE)]


def test_a_batch_that_ends_at_the_start_of_the_window_is_acquired() -> None:
    window = InFlightRecords(4)
    found = window.acquire("m", [(4, 4)], 4, 10, max_records=5, max_in_flight=5, limit=5, batch_size=5)
    assert found == [Acquired(4, 4, 1)]
    window.withdraw("m", found)
    again = window.acquire("n", [(2, 4)], 4, 10, max_records=5, max_in_flight=5, limit=5, batch_size=5)
    assert again == [Acquired(4, 4, 1)]


def test_an_acknowledgement_that_ends_at_the_start_of_the_window_still_counts() -> None:
    window = InFlightRecords(0)
    acquire(window)
    window.move_start(4)
    prepared = window.prepare("m", [AckBatch(2, 4, [AckType.ACCEPT])], 5, 20)
    window.commit(prepared)
    window.advance()
    assert window.start_offset == 5
    assert states(window) == [(5, 9, ACQUIRED)]


@pytest.mark.parametrize("start", [0, 4])
def test_an_offset_that_was_not_acquired_yet_cannot_be_acknowledged(start: int) -> None:
    window = InFlightRecords(start)
    with pytest.raises(ApiError) as caught:
        window.prepare("m", [AckBatch(start, start, [AckType.ACCEPT])], 5, 20)
    assert caught.value.error is Error.INVALID_REQUEST


def test_a_record_in_two_acknowledgements_of_a_request_refuses_both() -> None:
    window = InFlightRecords(0)
    acquire(window)
    with pytest.raises(ApiError) as caught:
        window.prepare("m", [AckBatch(0, 4, [AckType.ACCEPT]), AckBatch(0, 9, [AckType.REJECT])], 5, 20)
    assert caught.value.error is Error.INVALID_RECORD_STATE
    assert {(run.state, run.pending) for run in window.runs} == {(ACQUIRED, None)}
    assert window.complete_count == 0


def test_the_types_of_acknowledgement_have_the_numbers_of_the_protocol() -> None:
    assert [each.name for each in sorted(AckType)] == ["GAP", "ACCEPT", "RELEASE", "REJECT", "RENEW"]
    assert [int(each) for each in sorted(AckType)] == [0, 1, 2, 3, 4]
