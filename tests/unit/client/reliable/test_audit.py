"""The counts of an audit and their comparison, and records whose time to live has passed."""

from __future__ import annotations

import pytest

from kafkapy.client.reliable import audit
from kafkapy.client.reliable.audit import (
    ABORTED,
    APPENDED,
    CONSUMED,
    PRODUCED,
    AuditReporter,
    AuditTable,
    ConsumerAudit,
    Count,
    pack_count,
    unpack_count,
)
from kafkapy.client.reliable.time_to_live import TimeToLive
from tests.mock_clock import MockClock
from tests.unit.client.reliable.simulated_record import SimulatedRecord


class Channel:
    """A side channel that stores the counts that are written to it."""

    def __init__(self):
        self.counts = []

    def put(self, output):
        self.counts.append(unpack_count(output.value))
        return True

    def flush(self, timeout):
        return True

    def close(self, timeout):
        """Does nothing."""


def test_counts_are_written_by_bucket():
    channel = Channel()
    reporter = AuditReporter("c", group="g", channel=channel)
    ConsumerAudit(reporter).on_consume([SimulatedRecord(timestamp=at) for at in (9999, 10_000, 19_999, 20_000)])
    assert reporter.close()
    assert [(each.bucket_ms, each.number, each.group) for each in channel.counts] == [
        *((0, 1, "g"), (10_000, 2, "g"), (20_000, 1, "g"))
    ]


def test_a_count_that_was_not_written_is_added_to_the_next_one():
    channel = Channel()
    reporter = AuditReporter("c", channel=channel)
    reporter.count(PRODUCED, "t", 5, 3)
    reporter.report()
    [count] = channel.counts
    reporter._take_back(audit.Output("a", pack_count(count)))
    reporter.count(PRODUCED, "t", 6)
    reporter.report()
    assert channel.counts[1].number == 4


def test_the_buckets_of_a_reporter_are_bounded(monkeypatch):
    monkeypatch.setattr(audit, "MOST_BUCKETS", 2)
    reporter = AuditReporter("c", channel=Channel())
    for at in range(0, 50_000, 10_000):
        reporter.count(PRODUCED, "t", at, 2)
    assert reporter.uncounted == 6


def test_gaps_and_surplus_are_named_by_group():
    table = AuditTable()
    for count in (
        Count(PRODUCED, "p1", "", "t", 0, 6),
        Count(PRODUCED, "p2", "", "t", 0, 4),
        Count(CONSUMED, "c1", "full", "t", 0, 10),
        Count(CONSUMED, "c2", "less", "t", 0, 7),
        Count(CONSUMED, "c3", "more", "t", 0, 11),
        Count(PRODUCED, "p1", "", "t", 10_000, 1),
        Count(CONSUMED, "c1", "full", "t", 20_000, 1),
    ):
        assert unpack_count(pack_count(count)) == count
        table.add(count)
    found = [(each.bucket_ms, each.group, each.missing) for each in table.differences(0, 20_000)]
    assert found == [(0, "less", 3), (0, "more", -1), (10_000, "full", 1), (10_000, "less", 1), (10_000, "more", 1)]
    assert {each.between for each in table.differences(0, 20_000)} == {"produced, consumed"}
    [silent] = table.differences(0, 10_000, ["silent"])
    assert (silent.missing, silent.clients) == (10, (("produced by p1", 6), ("produced by p2", 4)))


def test_gaps_and_surplus_are_named_on_both_sides_of_the_brokers():
    table = AuditTable()
    for count in (
        Count(PRODUCED, "p", "", "t", 0, 9),  # before the brokers began to count
        Count(CONSUMED, "c", "g", "t", 0, 8),
        Count(PRODUCED, "p", "", "t", 10_000, 10),
        Count(APPENDED, "p-1", "", "t", 10_000, 8),
        Count(CONSUMED, "c", "g", "t", 10_000, 8),
        Count(PRODUCED, "p", "", "t", 20_000, 10),  # the brokers have none of them
        Count(PRODUCED, "p", "", "t", 30_000, 5),
        Count(APPENDED, "p-1", "", "t", 30_000, 5),
        Count(APPENDED, "", "", "t", 30_000, 1),
        Count(CONSUMED, "c", "g", "t", 30_000, 5),
        Count(PRODUCED, "p", "", "t", 40_000, 4),  # after the brokers ceased to count
    ):
        table.add(count)
    found = [(each.bucket_ms, each.between, each.group, each.missing) for each in table.differences(0, 50_000)]
    assert found == [
        (0, "produced, consumed", "g", 1),
        (10_000, "produced, appended", "", 2),
        (20_000, "produced, appended", "", 10),
        (30_000, "produced, appended", "", -1),
        (30_000, "appended, consumed", "g", 1),
        (40_000, "produced, consumed", "g", 4),
    ]
    last = list(table.differences(30_000, 40_000))[-1]
    assert last.clients == (("appended by unknown clients", 1), ("appended by p-1", 5), ("consumed by c", 5))


@pytest.mark.parametrize(("consumed", "missing"), [(7, None), (10, None), (6, 1), (8, -1), (11, -4)])
def test_a_group_may_read_the_records_of_aborted_transactions_or_not(consumed, missing):
    table = AuditTable()
    for count in (
        Count(PRODUCED, "p", "", "t", 0, 10),
        Count(APPENDED, "p", "", "t", 0, 10),
        Count(ABORTED, "p", "", "t", 0, 3),
        Count(CONSUMED, "c", "g", "t", 0, consumed),
    ):
        table.add(count)
    found = [each.missing for each in table.differences(0, 10_000)]
    assert found == ([] if missing is None else [missing])


@pytest.mark.parametrize("content", [None, b"", b"\x01", b"\x92\x01\x02", b"\xc1"])
def test_other_bytes_are_no_count(content):
    with pytest.raises(ValueError, match="audit"):
        unpack_count(content)


def test_the_lifetime_is_counted_from_the_timestamp():
    clock = MockClock()
    now_ms = clock.wall_ms()
    lifetime = TimeToLive(clock)
    headers = (("ttl-ms", b"100"),)
    records = [
        SimulatedRecord(timestamp=now_ms - 99, headers=headers),
        SimulatedRecord(timestamp=now_ms - 100, headers=headers),
        SimulatedRecord(timestamp=now_ms - 100, headers=(("ttl-ms", b"-1"),)),
        SimulatedRecord(timestamp=now_ms - 100, headers=(("ttl-ms", b"1"), ("ttl-ms", b"500"))),
        SimulatedRecord(timestamp=0),
    ]
    kept = lifetime.on_consume(records)
    assert kept == [records[0], *records[2:]]
    assert (lifetime.expired["t"], lifetime.invalid["t"]) == (1, 1)
