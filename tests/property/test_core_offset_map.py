"""The offset map agrees with a dict, and its hash with a slow one."""

from hypothesis import given
from hypothesis import strategies as st

from kafkapy._core.bytes.offset_map import OffsetMap, siphash
from tests.reference import offset_map as reference

KEYS = st.one_of(st.binary(max_size=3), st.binary(max_size=40))


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=600))
def test_hash_agrees_with_the_reference(secret, data):
    assert siphash(secret, data) == reference.siphash(secret, data)


@given(st.integers(2, 40), st.lists(st.tuples(KEYS, st.integers(0, 1 << 40)), max_size=120), st.lists(KEYS))
def test_as_a_dict(slots, puts, others):
    ours = OffsetMap(24 * slots)
    ours.clear()
    oracle = reference.OffsetMap(ours.max_entries)
    assert ours.max_entries == min(int(slots * 0.9), slots - 1)
    for key, offset in puts:
        assert ours.put(key, offset) == oracle.put(key, offset)
        assert ours.latest_offset == oracle.latest_offset
        assert len(ours) == len(oracle.offsets)
    for key in [*others, *(key for key, _ in puts)]:
        assert ours.get(key) == oracle.get(key)
    ours.clear(5)
    assert len(ours) == 0 and ours.latest_offset == -1
    assert all(ours.get(key) == -1 for key, _ in puts)
