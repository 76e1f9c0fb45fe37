"""Fetched bytes, read record by record: offsets, control batches, aborted transactions, damage."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest

from kafkapy._core.bytes.message_set import build_message_set
from kafkapy._core.bytes.record_batch import RecordBatch, RecordBatchBuilder
from kafkapy._core.bytes.wire import Reader
from kafkapy._core.client.fetched_records import FetchedRecords, RecordView, record_view, record_views
from kafkapy.errors import ApiError, Error


def batch(base_offset, values, **settings):
    builder = RecordBatchBuilder(base_offset, **settings)
    for at, value in enumerate(values):
        builder.append(1000 + at, b"k", value, [("h", b"1")] if at == 0 else ())
    return builder.build()


def marker(base_offset, producer_id, kind):
    builder = RecordBatchBuilder(base_offset, producer_id=producer_id, is_transactional=True, is_control=True)
    builder.append(1, b"\x00\x00" + kind.to_bytes(2, "big"), b"\x00\x00\x00\x00\x00\x00")
    return builder.build()


@pytest.mark.parametrize("codec", range(5))
def test_from_the_middle_of_a_batch_and_in_portions(codec):
    data = batch(10, [b"a", b"b", b"c"], compression=codec) + batch(13, [b"d", None], compression=codec)
    fetched = FetchedRecords(data, "t", 2, 11)
    assert fetched.end_offset == 15
    assert [(each.offset, each.value) for each in fetched.take(2)] == [(11, b"b"), (12, b"c")]
    assert (fetched.next_offset, fetched.is_exhausted) == (13, False)
    last = fetched.take(10)
    assert [(each.offset, each.value, each.headers) for each in last] == [(13, b"d", (("h", b"1"),)), (14, None, ())]
    assert (last[0].topic, last[0].partition, last[0].timestamp, last[0].timestamp_type) == ("t", 2, 1000, 0)
    assert fetched.is_exhausted and fetched.next_offset == 15


def test_an_incomplete_tail_is_left_for_the_next_fetch():
    whole, cut = batch(0, [b"a"]), batch(1, [b"b" * 100])
    fetched = FetchedRecords(whole + cut[:-1], "t", 0, 0)
    assert fetched.end_offset == 1
    assert [each.value for each in fetched.take(10)] == [b"a"]
    assert fetched.is_exhausted


def test_log_append_time():
    data = bytearray(batch(0, [b"a", b"b"], timestamp_type=1))
    assert [(each.timestamp, each.timestamp_type) for each in FetchedRecords(data, "t", 0, 0).take(9)] == [
        (1001, 1),
        (1001, 1),
    ]


ABORTED_AND_COMMITTED = (
    batch(0, [b"aborted"], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    + batch(1, [b"committed"], producer_id=2, producer_epoch=0, base_sequence=0, is_transactional=True)
    + batch(2, [b"plain"])
    + marker(3, 1, 0)
    + batch(4, [b"later"], producer_id=1, producer_epoch=0, base_sequence=1, is_transactional=True)
    + marker(5, 2, 1)
    + marker(6, 1, 1)
)


@pytest.mark.parametrize(
    ("read_committed", "expected"),
    [(True, [b"committed", b"plain", b"later"]), (False, [b"aborted", b"committed", b"plain", b"later"])],
)
def test_aborted_transactions_and_markers(read_committed, expected):
    fetched = FetchedRecords(ABORTED_AND_COMMITTED, "t", 0, 0, aborted=[(0, 1)], read_committed=read_committed)
    assert [each.value for each in fetched.take(100)] == expected
    assert fetched.next_offset == 7


def test_damage_is_met_where_it_is():
    damaged = bytearray(batch(0, [b"a"]) + batch(1, [b"b"]))
    damaged[-1] ^= 1
    fetched = FetchedRecords(damaged, "t", 0, 0)
    assert [each.value for each in fetched.take(10)] == [b"a"]
    assert (fetched.next_offset, fetched.is_exhausted) == (1, False)
    with pytest.raises(ApiError) as found:
        fetched.take(10)
    assert found.value.error is Error.CORRUPT_MESSAGE
    assert [each.value for each in FetchedRecords(damaged, "t", 0, 0, check_crcs=False).take(1)] == [b"a"]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats(magic):
    data = build_message_set([(5, 100, b"k", b"a"), (6, 101, None, b"b")], magic=magic)
    fetched = FetchedRecords(data, "t", 0, 6)
    (record,) = fetched.take(10)
    assert (record.offset, record.key, record.value) == (6, None, b"b")
    assert (record.topic, record.partition, record.leader_epoch) == ("t", 0, -1)
    assert fetched.take(10) == [] and fetched.is_exhausted and fetched.next_offset == 7


@pytest.mark.parametrize("make", [lambda view: FetchedRecords(view, "t", 0, 0), RecordBatch, Reader])
def test_a_collection_leaves_the_pinned_view_alone(make):
    """The garbage collector would otherwise release the memoryview of an unreachable cycle, although it is exported."""

    class Holder:
        pass

    holder = Holder()
    holder.itself = holder
    holder.view = memoryview(bytearray(batch(0, [b"a" * 10_000])))
    holder.reader = make(holder.view)
    del holder
    gc.collect()


class View(RecordView):
    __slots__ = ()


class Holder:
    """An object that a weak reference can name."""


def test_views_show_the_records_and_note_the_last_offset_of_each_partition():
    records = [
        *FetchedRecords(batch(0, [b"a", b"b"]), "t", 0, 0).take(9),
        *FetchedRecords(batch(7, [b"c"]), "t", 1, 0).take(9),
        "an event",
        *FetchedRecords(batch(5, [b"d"]), "u", 1, 0).take(9),
        *FetchedRecords(batch(2, [b"e"]), "t", 0, 0).take(9),
    ]
    offsets = {"t": {1: 3, 2: 4}}
    views = record_views(View, records, offsets)
    assert views[3] == "an event"
    shown = [each for each in views if each != "an event"]
    assert {each.__class__ for each in shown} == {View}
    assert [each._record for each in shown] == [each for each in records if each != "an event"]
    assert {(each._error, each._latency) for each in shown} == {(None, None)}
    assert offsets == {"t": {0: 2, 1: 7, 2: 4}, "u": {1: 5}}
    assert record_view(View, records[0])._record is records[0]
    assert record_views(View, [], offsets) == []


def test_views_read_a_record_or_an_object_with_the_same_attributes():
    (record,) = FetchedRecords(batch(4, [b"a"]), "t", 3, 0).take(9)
    view = record_view(View, record)
    assert (view.topic(), view.partition(), view.offset(), view.key(), view.value()) == ("t", 3, 4, b"k", b"a")
    assert view.error() is None
    view._record = SimpleNamespace(topic="u", partition=5, offset=6, key=b"k", value="v")
    view._error = "an error"
    assert (view.topic(), view.partition(), view.offset(), view.key(), view.value()) == ("u", 5, 6, b"k", "v")
    assert view.error() == "an error"


def test_the_garbage_collector_does_not_visit_views():
    (record,) = FetchedRecords(batch(0, [b"a"]), "t", 0, 0).take(9)
    views = [record_view(View, record), *record_views(View, [record], {})]
    assert [gc.is_tracked(each) for each in views] == [False, False]
    holder = weakref.ref(holding := Holder())
    views.append(record_view(View, record.with_content(holding, None)))
    del holding
    assert holder() is not None
    views.clear()
    assert holder() is None, "views that are not tracked are freed with the last reference"


def test_views_are_of_a_subclass_of_record_view():
    (record,) = FetchedRecords(batch(0, [b"a"]), "t", 0, 0).take(9)
    for refused in (lambda: record_view(str, record), lambda: record_views(str, [record], {})):
        with pytest.raises(TypeError, match="str is not a subclass of RecordView"):
            refused()
    for record_missing in (None, "no record"):
        with pytest.raises(TypeError):
            record_view(View, record_missing)
