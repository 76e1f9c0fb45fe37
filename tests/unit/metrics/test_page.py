"""The native page: long families, and slices with pauses in between."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkapy._core.broker_state.metrics_page import (
    END_OFFSET,
    FILLED_COLUMNS,
    SEGMENTS,
    SIZE,
    MetricsPage,
    PartitionRows,
)
from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy._core.broker_state.topic_counters import COUNTER_NAMES, TopicCounters
from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from tests.harness.log import LogHarness, batch

NUMBERS = [0, 1, -1, 9, 10, 99, 100, 2**63 - 1, -(2**63)]


def test_numbers_are_written_as_python_writes_them():
    rows = PartitionRows([b'{n="%d"}' % number for number in range(len(NUMBERS))], 1)
    for row, number in enumerate(NUMBERS):
        rows.put(row, 0, number)
    page = MetricsPage()
    page.partition_family(b"name", rows, 0)
    expected = [f'name{{n="{row}"}} {number}' for row, number in enumerate(NUMBERS)]
    assert bytes(page).decode().splitlines() == expected
    assert len(page) == len(bytes(page))


def test_a_page_grows_and_does_not_while_it_is_sent():
    page = MetricsPage()
    for _ in range(100):
        page.text(b"x" * 9999)
    assert bytes(page) == b"x" * 999900
    with memoryview(page), pytest.raises(BufferError, match="being sent"):
        page.text(b"y")
    page.text(b"y")
    assert len(page) == 999901


def test_what_has_no_row_goes_to_the_last():
    rows = PartitionRows([b"a", b"b"], 2)
    for row in range(5):
        rows.put(row, 1, 10**row)
    page = MetricsPage()
    page.partition_family(b"", rows, 1)
    assert bytes(page) == b"a 1\nb 11110\n"
    assert (rows.sum(0), rows.sum(1)) == (0, 11111)


def test_logs_say_their_offsets_and_sizes(tmp_path):
    log = LogHarness(tmp_path).log()
    log.append_as_leader(batch(3), 0)
    partition = PartitionState()
    partition.log = log
    rows = PartitionRows([b"a"], FILLED_COLUMNS)
    rows.fill([partition], 0, 1)
    assert (rows.sum(END_OFFSET), rows.sum(SIZE), rows.sum(SEGMENTS)) == (3, log.size, 1)
    assert log.size > 0


def test_errors_of_a_caller():
    page, rows = MetricsPage(), PartitionRows([b"a"], 1)
    for call in (
        lambda: page.partition_family(b"a", rows, 1),
        lambda: page.partition_family(b"a", rows, -1),
        lambda: page.topic_family(b"a", [], len(COUNTER_NAMES)),
        lambda: rows.put(-1, 0, 1),
        lambda: rows.fill([], 0, 0),
        lambda: PartitionRows([], FILLED_COLUMNS).fill([], 0, 0),
    ):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError):
        page.topic_family(b"a", [object()], 0)


def test_topic_families_have_a_line_for_each_topic():
    total = TopicCounters()
    one, other = TopicCounters(b'{topic="one"}', total), TopicCounters(b'{topic="other"}', total)
    one.count_append(3, 100)
    other.count_append(4, 200)
    one.count_failed_append()
    one.count_fetch(50)
    other.count_failed_fetch()
    assert one.as_dict() == {
        "messages_in": 3, "bytes_in": 100, "bytes_out": 50, "produce_requests": 2, "failed_produce_requests": 1,
        "fetch_requests": 1, "failed_fetch_requests": 0,
    }  # fmt: skip
    page = Page()
    page.topics(table.BYTES_IN, [total, one, other], COUNTER_NAMES.index("bytes_in"))
    (family,) = text_string_to_metric_families(bytes(page.native).decode())
    assert [(sample.labels.get("topic"), sample.value) for sample in family.samples] == [
        (None, 300), ("one", 100), ("other", 200),
    ]  # fmt: skip


def test_whoever_renders_is_asked_to_rest_after_every_piece():
    rests = []
    page = Page(lambda: rests.append(len(page.native)))
    page.family(table.DIRECTORY_OFFLINE, [((f"/data/{number}",), 0) for number in range(10)])
    assert len(rests) == 11
    assert rests == sorted(set(rests))
