"""The leader epoch cache: assignment, look-ups, truncation, and its checkpoint (KIP-101, KIP-279)."""

import pytest

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache


@pytest.fixture
def cache(tmp_path):
    return LeaderEpochCache(str(tmp_path), Filesystem())


def test_end_of_epoch_is_the_start_of_the_next(cache):
    cache.assign(0, 0)
    cache.assign(1, 120)
    assert cache.end_offset_for(0, 200) == (120, 0)
    assert cache.end_offset_for(1, 200) == (200, 1)
    assert cache.end_offset_for(2, 200) == (-1, -1)
    assert cache.end_offset_for(-1, 200) == (-1, -1)


def test_an_epoch_that_wrote_nothing_answers_the_one_before(cache):
    cache.assign(2, 10)
    cache.assign(5, 40)
    assert cache.end_offset_for(4, 90) == (40, 2)
    assert cache.end_offset_for(1, 90) == (10, 1)
    assert [cache.epoch_for_offset(offset) for offset in (9, 10, 39, 40, 80)] == [-1, 2, 2, 5, 5]


def test_contradicting_entries_go(cache):
    cache.assign(1, 10)
    cache.assign(2, 20)
    assert not cache.assign(2, 25)
    cache.assign(3, 15)
    assert cache.entries == ((1, 10), (3, 15))
    cache.assign(3, 12)
    assert cache.entries == ((1, 10), (3, 12))
    with pytest.raises(ValueError, match="epoch -1"):
        cache.assign(-1, 30)


def test_truncation_from_both_ends(cache):
    for epoch, offset in ((0, 0), (1, 11), (2, 23)):
        cache.assign(epoch, offset)
    cache.truncate_from_start(15)
    assert cache.entries == ((1, 15), (2, 23))
    cache.truncate_from_end(23)
    assert cache.entries == ((1, 15),)
    cache.truncate_from_start(3)
    assert cache.entries == ((1, 15),)


def test_the_checkpoint_is_loaded_as_it_was_written(cache, tmp_path):
    cache.assign(0, 0)
    cache.assign(3, 50)
    cache.write(log_end_offset=51)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 50\n"
    loaded = LeaderEpochCache(str(tmp_path), Filesystem())
    loaded.load()
    assert loaded.entries == cache.entries


@pytest.mark.parametrize("entries", [[(1, 0), (1, 5)], [(1, 5), (2, 5)], [(2, 0), (1, 5)], [(1, 6), (2, 5)]])
def test_entries_out_of_order_are_a_bug_and_not_written(cache, tmp_path, entries):
    cache._entries += entries
    with pytest.raises(AssertionError):
        cache.write(log_end_offset=10)
    assert not (tmp_path / "leader-epoch-checkpoint").exists()


def test_an_epoch_without_a_batch_can_wait(cache, tmp_path):
    cache.assign(0, 0)
    cache.write(log_end_offset=10)
    cache.assign(1, 10)
    cache.write(log_end_offset=10)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    cache.write(log_end_offset=11)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 10\n"


def test_a_batch_confirms_or_corrects_what_was_loaded(cache):
    for epoch, offset in ((0, 0), (1, 11), (2, 23)):
        cache.assign(epoch, offset)
    cache.confirm(0, 0, 10, 0)
    cache.confirm(1, 12, 22, 11)  # compacted: offset 11 has no record any more
    cache.confirm(-1, 23, 30, 23)  # of a client before 0.11
    assert cache.entries == ((0, 0), (1, 11), (2, 23))
    cache.confirm(0, 11, 14, 11)
    assert cache.entries == ((0, 0),)
    cache.confirm(1, 15, 20, 15)
    cache.confirm(3, 21, 30, 21)
    assert cache.entries == ((0, 0), (1, 15), (3, 21))


def test_a_batch_corrects_an_entry_in_its_middle(cache):
    cache.assign(0, 1)
    cache.confirm(0, 0, 0, 0)
    assert cache.entries == ((0, 0),)
    cache.assign(2, 5)
    cache.confirm(0, 1, 8, 1)
    assert cache.entries == ((0, 0),)
