"""Offset and time index return the same as a plain list, through appends, truncations, closing and reopening."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.offset_index import OffsetIndex
from kafkapy._core.bytes.time_index import TimeIndex
from tests.reference.index import Entries

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(-1, 5)),
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("truncate"), st.integers(-2, 40)),
        st.tuples(st.just("lookup"), st.integers(-2, 200)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from([0, 1000, 2**40]))
def test_offset_index_agrees_with_a_list(steps, base):
    with TemporaryDirectory() as directory:
        path = str(Path(directory, "index"))
        index, expected = OffsetIndex(path, base, 100), Entries((base, 0))
        for step, argument in steps:
            last = expected.entries[-1] if expected.entries else (base, 0)
            if step == "append":
                entry = (last[0] + argument, last[1] + 17)
                possible = base <= entry[0] and len(expected.entries) < 12 and (not expected.entries or argument > 0)
                assert appended(index.append, *entry) == possible
                if possible:
                    expected.entries.append(entry)
            elif step == "truncate":
                index.truncate_to(base + argument)
                expected.truncate(0, base + argument)
            elif step == "lookup":
                assert index.lookup(base + argument) == expected.lookup(base + argument)
            elif step == "reopen":
                index.close()
                index = OffsetIndex(path, base, 100)
                index.sanity_check()
                index.resize(100)
            else:
                index.reset()
                expected.entries.clear()
            assert [index.entry(slot) for slot in range(len(index))] == expected.entries
            assert index.last_offset == (expected.entries[-1][0] if expected.entries else base)
        index.close()


@settings(max_examples=100, deadline=None)
@given(STEPS, st.sampled_from([0, 1000, 2**40]))
def test_time_index_agrees_with_a_list(steps, base):
    with TemporaryDirectory() as directory:
        path = str(Path(directory, "timeindex"))
        index, expected = TimeIndex(path, base, 150), Entries((-1, base))
        for step, argument in steps:
            timestamp, offset = expected.entries[-1] if expected.entries else (-1, base)
            if step == "append":
                entry = (timestamp + argument, offset + argument // 2)
                room = len(expected.entries) < 11
                possible = room and (not expected.entries or argument >= 0)
                added = appended(index.maybe_append, *entry)
                assert added is (argument > 0 if possible else False)
                if added:
                    expected.entries.append(entry)
            elif step == "truncate":
                index.truncate_to(base + argument)
                expected.truncate(1, base + argument)
            elif step == "lookup":
                assert index.lookup(argument) == expected.lookup(argument)
            elif step == "reopen":
                index.close()
                index = TimeIndex(path, base, 150)
                index.sanity_check()
                index.resize(150)
            else:
                index.reset()
                expected.entries.clear()
            assert [index.entry(slot) for slot in range(len(index))] == expected.entries
            assert index.last_entry == (expected.entries[-1] if expected.entries else (-1, base))
        index.close()


def appended(append, *arguments):
    """Returns whether an entry was added."""
    try:
        return append(*arguments) is not False
    except ValueError:
        return False
