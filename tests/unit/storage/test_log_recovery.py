"""Opening logs: after a clean stop, after a kill, with torn tails, damage, missing indexes and leftovers."""

import os
import shutil
from zlib import crc32

import pytest

from kafkapy._core.bytes.record_batch import iterate_batches
from kafkapy._core.bytes.segment_scan import scan_to_end
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.rebuilt_indexes import OFFSET_ENTRY, RebuiltIndexes
from tests.harness.log import NOW_MS, LogHarness, batch, topic_config, values_of
from tests.lossy_filesystem import LossyFilesystem, PowerFailure

CONFIG = {"segment.bytes": 1024 * 1024, "index.interval.bytes": 4096}


@pytest.fixture
def harness(tmp_path):
    return LogHarness(tmp_path)


def fill(log, batches=40, *, start=0):
    for number in range(start, start + batches):
        records = batch(10, value=bytes([number]) * 6000, producer_id=1, producer_epoch=0, base_sequence=number * 10)
        log.append_as_leader(records, number // 20)


def reopened(harness, *, clean, recovery_point=0, config=CONFIG, **keywords):
    harness.is_clean = clean
    return harness.log(config, recovery_point=recovery_point, **keywords)


def check(log, end_offset, *, start=0):
    """Checks that offsets are dense, indexes point to batches, and epochs and producers agree with the batches."""
    assert log.log_end_offset == end_offset
    offset, seen = start, []
    while offset < end_offset:
        seen += [pair for pair in values_of(log.read(offset, 300_000)) if pair[0] >= offset]
        offset = seen[-1][0] + 1
    assert [number for number, _ in seen] == list(range(start, end_offset))
    for segment in log.segments:
        index = segment.offset_index
        for slot in range(index.entries):
            entry_offset, position = index.entry(slot)
            found = segment.find(entry_offset)
            assert found[0] == position
            assert found[3] == entry_offset
    assert log.producers.map_end_offset == end_offset
    if end_offset:
        assert log.producers.entries[1].last_sequence == end_offset - 1
        assert log.latest_epoch == (end_offset - 1) // 200


def test_clean_stop_reads_nothing_again(harness):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    names = {path.name for path in harness.path.iterdir()}
    assert "00000000000000000400.snapshot" in names
    assert os.path.getsize(harness.path / "00000000000000000340.index") < 4096
    log = reopened(harness, clean=True, recovery_point=400)
    assert log.recovery_point == 400
    assert not log.segments.active.is_open_for_append
    check(log, 400)
    fill(log, 5, start=40)
    check(log, 450)


def test_kill_with_everything_written(harness):
    fill(harness.log(CONFIG))
    log = reopened(harness, clean=False)
    check(log, 400)
    fill(log, 5, start=40)
    check(log, 450)


@pytest.mark.parametrize("cut", [1, 60, 5000, 59_000])
def test_a_torn_tail_is_cut(harness, cut):
    fill(harness.log(CONFIG))
    path = harness.path / "00000000000000000340.log"
    os.truncate(path, path.stat().st_size - cut)
    log = reopened(harness, clean=False, recovery_point=340)
    check(log, 390)
    fill(log, 1, start=39)
    check(log, 400)


def test_a_torn_tail_after_a_clean_stop_is_noticed(harness):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    path = harness.path / "00000000000000000340.log"
    os.truncate(path, path.stat().st_size - 100)
    check(reopened(harness, clean=True, recovery_point=400), 390)


def test_damage_ends_the_log_and_later_segments_go(harness):
    fill(harness.log(CONFIG))
    with open(harness.path / "00000000000000000170.log", "r+b") as file:
        file.seek(60_200 * 3 + 500)
        file.write(b"damage")
    log = reopened(harness, clean=False, recovery_point=170)
    assert list(log.segments.base_offsets) == [0, 170]
    check(log, 200)
    assert not (harness.path / "00000000000000000340.log").exists()


@pytest.mark.parametrize("batches_left", [0, 3])
@pytest.mark.parametrize("has_indexes", [True, False])
def test_a_rolled_segment_whose_end_a_power_failure_took_ends_the_log(harness, batches_left, has_indexes):
    log = harness.log(CONFIG)
    fill(log)
    path = harness.path / "00000000000000000170.log"
    os.truncate(path, path.stat().st_size // 17 * batches_left)
    if not has_indexes:
        for suffix in (".index", ".timeindex"):
            os.truncate(path.with_suffix(suffix), 0)
    log = reopened(harness, clean=False, recovery_point=0)
    end_offset = 170 + 10 * batches_left
    assert list(log.segments.base_offsets) == [0, 170]
    assert not (harness.path / "00000000000000000340.log").exists()
    check(log, end_offset)
    fill(log, 5, start=end_offset // 10)
    check(log, end_offset + 50)


@pytest.mark.parametrize(
    ("config", "recovery_point", "log_start_offset"),
    [({"cleanup.policy": "compact"}, 0, 0), ({}, 340, 0), ({}, 0, 340)],
    ids=["compacted", "below the recovery point", "below the log start offset"],
)
def test_records_that_may_be_missing_do_not_end_the_log(harness, config, recovery_point, log_start_offset):
    fill(harness.log(CONFIG))
    os.truncate(harness.path / "00000000000000000170.log", 0)
    log = reopened(
        harness,
        clean=False,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        config=CONFIG | config,
    )
    assert (log.segments.active.base_offset, log.log_end_offset) == (340, 400)


def test_what_is_below_the_recovery_point_is_not_read(harness):
    fill(harness.log(CONFIG))
    with open(harness.path / "00000000000000000000.log", "r+b") as file:
        file.seek(500)
        file.write(b"damage")
    log = reopened(harness, clean=False, recovery_point=170)
    assert log.log_end_offset == 400


def test_zeros_at_the_end_are_cut(harness):
    fill(harness.log(CONFIG))
    path = harness.path / "00000000000000000340.log"
    os.truncate(path, path.stat().st_size + 100_000)
    check(reopened(harness, clean=False), 400)


@pytest.mark.parametrize("clean", [True, False])
def test_missing_indexes_are_rebuilt(harness, clean):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    for path in [*harness.path.glob("*.index"), *harness.path.glob("*.timeindex"), *harness.path.glob("*.snapshot")]:
        path.unlink()
    os.remove(harness.path / "leader-epoch-checkpoint")
    log = reopened(harness, clean=clean)
    check(log, 400)
    assert log.leader_epochs.entries == ((0, 0), (1, 200))
    assert log.segments.first.offset_index.entries > 0


def test_an_epoch_checkpoint_from_before_a_truncation_gives_way_to_the_batches(harness):
    log = harness.log(CONFIG)
    log.append_as_leader(batch(2), 0)
    log.high_watermark = 2
    log.maybe_increment_log_start_offset(1)
    log.flush()
    assert (harness.path / "leader-epoch-checkpoint").read_text() == "0\n1\n0 1\n"
    log.truncate_to(1)  # takes the whole batch
    assert log.log_start_offset == log.log_end_offset == 0
    log.append_as_leader(batch(1), 0)
    log.append_as_leader(batch(1), 0)
    log = reopened(harness, clean=False, recovery_point=log.recovery_point)
    assert log.leader_epochs.entries == ((0, 0),)


def test_epochs_that_a_truncation_took_do_not_come_back(harness):
    log = harness.log(CONFIG)
    log.append_as_leader(batch(3), 0)
    log.append_as_leader(batch(2), 0)
    log.append_as_leader(batch(2), 2)
    log.flush()
    assert (harness.path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n2 5\n"
    log.truncate_to(3)
    leader = harness.log(CONFIG, name="u", log_start_offset=3)
    leader.truncate_fully_and_start_at(3)
    leader.append_as_leader(batch(4), 1)
    log.append_as_follower(leader.read(3, 1000).records.read())
    log = reopened(harness, clean=False, recovery_point=log.recovery_point)
    assert log.log_end_offset == 7
    assert log.leader_epochs.entries == ((0, 0), (1, 3))


def test_a_damaged_epoch_checkpoint_is_rebuilt(harness):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    (harness.path / "leader-epoch-checkpoint").write_bytes(b"")
    log = reopened(harness, clean=True, recovery_point=400)
    assert log.leader_epochs.entries == ((0, 0), (1, 200))


def test_orphans_and_leftovers_go(harness):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    names = (
        "00000000000000000999.index",
        "00000000000000000999.timeindex",
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000010.index.swap",
    )
    for name in names:
        (harness.path / name).write_bytes(b"x" * 24)
    check(reopened(harness, clean=True, recovery_point=400), 400)
    assert not [name for name in names if (harness.path / name).exists()]


def test_a_finished_swap_replaces_what_it_covers(harness):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    with open(harness.path / "00000000000000000000.log.swap", "wb") as swap:
        for base in (0, 170):
            with open(harness.path / f"{base:020d}.log", "rb") as segment:
                shutil.copyfileobj(segment, swap)
    log = reopened(harness, clean=False)
    assert list(log.segments.base_offsets) == [0, 340]
    check(log, 400)


def segment_files(harness):
    return {path.name: path.read_bytes() for path in harness.path.iterdir() if path.suffix != ".snapshot"}


def positions_of(segment):
    index = segment.offset_index
    return [index.entry(slot) for slot in range(index.entries)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_an_unfinished_swap_at_the_base_of_a_cleaned_log_is_dropped(harness, suffix, clean):
    """The cleaner renames the indexes before the log.

    While `.log.cleaned` exists, the old log is still live, and a new index of the same base offset belongs to another
    file.
    """
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    before = segment_files(harness)
    stem = f"{0:020d}"
    (harness.path / f"{stem}.log.cleaned").write_bytes(b"unfinished")
    (harness.path / f"{stem}{suffix}.swap").write_bytes(bytes([0, 0, 0, 5, 0, 0, 0, 9]))
    log = reopened(harness, clean=clean, recovery_point=400)
    assert segment_files(harness) == before
    check(log, 400)


@pytest.mark.parametrize("clean", [True, False])
def test_a_swap_below_the_cleaned_files_is_finished(harness, clean):
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    whole = positions_of(log.segments.first)
    stem = f"{0:020d}"
    for suffix in (".log", ".index", ".timeindex"):
        os.rename(harness.path / f"{stem}{suffix}", harness.path / f"{stem}{suffix}.swap")
    (harness.path / f"{170:020d}.log.cleaned").write_bytes(b"unfinished")
    log = reopened(harness, clean=clean, recovery_point=400)
    assert not [path for path in harness.path.iterdir() if path.suffix in (".swap", ".cleaned")]
    assert positions_of(log.segments.first) == whole
    check(log, 400)


@pytest.mark.parametrize("clean", [True, False])
def test_the_indexes_of_a_finished_swap_replace_the_old_ones(harness, clean):
    """The power failed after the log was renamed and before its indexes were: the new indexes replace the old ones."""
    log = harness.log(CONFIG)
    fill(log)
    log.close()
    new = positions_of(log.segments.first)
    stem = f"{0:020d}"
    for suffix in (".index", ".timeindex"):
        os.rename(harness.path / f"{stem}{suffix}", harness.path / f"{stem}{suffix}.swap")
        shutil.copy(harness.path / f"{170:020d}{suffix}", harness.path / f"{stem}{suffix}")
    log = reopened(harness, clean=clean, recovery_point=400)
    assert not list(harness.path.glob("*.swap"))
    assert positions_of(log.segments.first) == new
    check(log, 400)


def test_a_finished_swap_takes_its_aborted_transactions_along(harness):
    """The transaction indexes of the old segments are deleted with them; the index of the swap remains."""
    log = harness.log(CONFIG)
    for producer_id in (1, 2):
        transactional = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True}
        log.append_as_leader(batch(2, base_sequence=0, **transactional), 0)
        log.append_as_leader(harness.marker(producer_id, 0, commit=False), 0, from_client=False)
        log.roll()
    log.close()
    stem = f"{0:020d}"
    for suffix in (".log", ".txnindex"):
        with open(harness.path / f"{stem}{suffix}.swap", "wb") as swap:
            for base in (0, 3):
                swap.write((harness.path / f"{base:020d}{suffix}").read_bytes())
    for suffix in (".index", ".timeindex"):
        shutil.copy(harness.path / f"{stem}{suffix}", harness.path / f"{stem}{suffix}.swap")
    log = reopened(harness, clean=True, recovery_point=6)
    assert list(log.segments.base_offsets) == [0, 6]
    assert log.collect_aborted_transactions(0, 6) == [(1, 0, 2, 3), (2, 3, 5, 6)]
    assert sorted(path.name for path in harness.path.glob("*.txnindex")) == [f"{stem}.txnindex"]


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_finished_swap_without_aborted_transactions_removes_those_of_its_base(harness, is_empty):
    log = harness.log(CONFIG)
    log.append_as_leader(batch(2, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True), 0)
    log.append_as_leader(harness.marker(1, 0, commit=False), 0, from_client=False)
    log.roll()
    log.append_as_leader(batch(), 0)
    log.close()
    stem = f"{0:020d}"
    for suffix in (".log", ".index", ".timeindex"):
        content = (harness.path / f"{stem}{suffix}").read_bytes()
        (harness.path / f"{stem}{suffix}.swap").write_bytes(b"" if is_empty else content)
    log = reopened(harness, clean=True, recovery_point=4)
    assert list(log.segments.base_offsets) == [0, 3]
    assert log.segments.first.size == (harness.path / f"{stem}.log").stat().st_size
    assert not list(harness.path.glob("*.txnindex"))


class RecordingFilesystem(Filesystem):
    """A filesystem that records the order of removals, renames and directory syncs."""

    __slots__ = ("calls",)

    def __init__(self):
        self.calls = []

    def sync_directory(self, path):
        self.calls.append("sync")
        super().sync_directory(path)

    def rename(self, source, target):
        self.calls.append(os.path.basename(source))
        super().rename(source, target)

    def unlink(self, path):
        self.calls.append(os.path.basename(path))
        super().unlink(path)


def test_the_unfinished_swap_is_durably_gone_before_the_cleaned_files(tmp_path):
    """A power failure in between must not leave the `.swap` file without the `.cleaned` that marks it as incomplete."""
    harness = LogHarness(tmp_path, filesystem=RecordingFilesystem())
    log = harness.log(CONFIG)
    fill(log, 2)
    log.close()
    stem = f"{0:020d}"
    for name in (f"{stem}.log.cleaned", f"{stem}.index.swap", f"{stem}.timeindex.swap"):
        (harness.path / name).write_bytes(b"unfinished")
    harness.filesystem.calls.clear()
    reopened(harness, clean=True, recovery_point=20)
    calls = harness.filesystem.calls
    assert sorted(calls[:2]) == [f"{stem}.index.swap", f"{stem}.timeindex.swap"]
    assert calls[2:] == ["sync", f"{stem}.log.cleaned", "sync"]


def test_a_finished_swap_is_renamed_log_first_and_made_durable(tmp_path):
    harness = LogHarness(tmp_path, filesystem=RecordingFilesystem())
    log = harness.log(CONFIG)
    fill(log, 2)
    log.close()
    stem = f"{0:020d}"
    for suffix in (".log", ".index", ".timeindex"):
        os.rename(harness.path / f"{stem}{suffix}", harness.path / f"{stem}{suffix}.swap")
    harness.filesystem.calls.clear()
    check(reopened(harness, clean=True, recovery_point=20), 20)
    calls = harness.filesystem.calls
    assert calls[0] == f"{stem}.log.swap"
    assert sorted(calls[1:-1]) == [f"{stem}.index.swap", f"{stem}.timeindex.swap"]
    assert calls[-1] == "sync"


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_missing_below_the_recovery_point_is_rebuilt_after_a_kill(harness, suffix):
    fill(harness.log(CONFIG))
    (harness.path / f"{0:020d}{suffix}").unlink()
    log = reopened(harness, clean=False, recovery_point=340)
    check(log, 400)
    assert log.segments.first.offset_index.entries > 0
    assert log.segments.first.time_index.entries > 0


@pytest.mark.parametrize("base_offset", [0, 89])
def test_a_batch_whose_offsets_go_back_ends_the_log(harness, base_offset):
    """Recovery reads a megabyte at a time; the batch is the first of its chunk."""
    config = {**CONFIG, "segment.bytes": 4 << 20, "max.message.bytes": 2 << 20}
    log = harness.log(config)
    log.append_as_leader(batch(90, value=bytes(10_000)), 0)
    log.append_as_leader(batch(20, value=bytes(10_000)), 0)
    first_size = log.read(0, 1).records.length
    assert first_size < 1 << 20 < log.size
    with open(harness.path / f"{0:020d}.log", "r+b") as file:
        file.seek(first_size)
        file.write(base_offset.to_bytes(8, "big"))
    log = reopened(harness, clean=False, config=config)
    assert (log.log_end_offset, log.size) == (90, first_size)


def test_records_without_a_timestamp_have_no_entry_in_the_time_index():
    indexes = RebuiltIndexes(0, LogConfig(topic_config({"index.interval.bytes": 0})))
    for offset in range(3):
        indexes.add(100 * offset, 100, offset, -1)
    indexes.finish()
    assert (indexes.max_timestamp, indexes.offset_of_max_timestamp) == (-1, -1)
    assert (len(indexes.offsets), len(indexes.times)) == (2 * OFFSET_ENTRY.size, 0)


def test_long_index_files_of_an_empty_segment(harness):
    log = harness.log(CONFIG)
    log.segments.active.open_for_append()
    assert os.path.getsize(harness.path / "00000000000000000000.index") > 1 << 20
    log = reopened(harness, clean=False)
    fill(log)
    check(log, 400)


def test_an_empty_directory_begins_at_its_start_offset(harness):
    log = harness.log(CONFIG, log_start_offset=77)
    assert (log.log_start_offset, log.log_end_offset) == (77, 77)
    assert list(log.segments.base_offsets) == [77]


def test_an_end_below_the_start_offset_begins_anew(harness):
    fill(harness.log(CONFIG), 3)
    log = reopened(harness, clean=False, log_start_offset=1000)
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1000)
    assert not (harness.path / "00000000000000000000.log").exists()


def test_transactions_are_found_again(harness):
    log = harness.log(CONFIG)
    open_transaction = {"producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log.append_as_leader(batch(2, producer_id=1, **open_transaction), 0)
    log.append_as_leader(batch(2, producer_id=2, **open_transaction), 0)
    log.append_as_leader(harness.marker(1, 0, commit=False), 0, from_client=False)
    log = reopened(harness, clean=False)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2
    assert log.collect_aborted_transactions(0, 5) == [(1, 0, 4, 2)]
    log.append_as_leader(harness.marker(2, 0, commit=True), 0, from_client=False)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 6


def test_preallocated_segments(harness):
    config = {**CONFIG, "preallocate": "true"}
    log = harness.log(config)
    fill(log)
    assert os.path.getsize(harness.path / "00000000000000000340.log") == 1024 * 1024
    check(reopened(harness, clean=False, config=config), 400)


def test_old_formats_stay_readable(harness):
    def old(offset, magic, timestamp, value):
        body = bytes([magic, 0]) + (timestamp.to_bytes(8, "big") if magic else b"")
        body += (2**32 - 1).to_bytes(4, "big") + len(value).to_bytes(4, "big") + value
        return offset.to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + crc32(body).to_bytes(4, "big") + body

    harness.path.mkdir()
    data = old(0, 0, 0, b"zero") + old(1, 1, 1_487_165_556_824, b"c") + old(2, 1, 1_487_165_689_780, b"f")
    (harness.path / "00000000000000000000.log").write_bytes(data + old(3, 1, 5, b"torn")[:-1])
    log = reopened(harness, clean=False)
    assert log.log_end_offset == 3
    assert log.read(0, 1000).records.read() == data
    assert log.fetch_offset_by_timestamp(1_487_165_556_825) == (1_487_165_689_780, 2, -1)
    assert log.append_as_leader(batch(), 0).first_offset == 3
    with open(harness.path / "00000000000000000000.log", "rb") as file:
        assert scan_to_end(file.fileno(), 0, log.size)[1] == 4


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", [b"\xff", b"\x00", b"\x7f", b"\x01", None])
@pytest.mark.parametrize("base", [0, 17])
def test_a_damaged_index_after_a_clean_stop(harness, caplog, suffix, damage, base):
    """The first use detects the damage and empties the index; every record is found without the index."""
    settings = {"index.interval.bytes": 0, "segment.bytes": 1 << 20}
    log = harness.log(settings)
    for number in range(20):
        log.append_as_leader(batch(1, timestamp=NOW_MS + number, value=bytes(60_000)), 0)
    log.close()
    assert list(log.segments.base_offsets) == [0, 17]
    path = harness.path / f"{base:020d}{suffix}"
    content = path.read_bytes()
    assert content
    path.write_bytes(content[:-5] if damage is None else damage * len(content))
    harness.is_clean = True
    again = harness.log(settings)
    for offset in range(20):
        fetched = again.read(offset, 100, max_offset=20, min_one_message=True)
        assert next(iterate_batches(fetched.records.read())).base_offset == offset
    if suffix == ".index":
        assert "Emptying the damaged index" in caplog.text or "is torn" in caplog.text
    assert again.append_as_leader(batch(1, value=b"more"), 0).first_offset == 20
    assert not harness.failures
    again.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", [b"", b"\1", b"\0" * 33])
def test_a_damaged_transaction_index_is_rebuilt(harness, caplog, clean, damage):
    """Without the index, reads of committed records would return aborted ones. Kafka does the same."""
    log = harness.log(CONFIG)
    log.append_as_leader(batch(2, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True), 0)
    log.append_as_leader(harness.marker(1, 0, commit=False), 0, from_client=False)
    log.roll()
    log.append_as_leader(batch(), 0)
    log.close()
    path = harness.path / f"{0:020d}.txnindex"
    content = path.read_bytes()
    path.write_bytes(damage + content)
    log = reopened(harness, clean=clean, recovery_point=4)
    assert log.collect_aborted_transactions(0, 4) == [(1, 0, 2, 3)]
    assert path.read_bytes() == content
    assert ("txnindex: " in caplog.text) is bool(damage)


def test_aborted_transactions_whose_records_a_power_failure_took_are_forgotten(harness):
    log = harness.log(CONFIG)
    log.append_as_leader(batch(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True), 0)
    log.append_as_leader(harness.marker(7, 0, commit=False), 0, from_client=False)
    log.close()
    for suffix in (".log", ".index", ".timeindex"):
        os.truncate(harness.path / f"{0:020d}{suffix}", 0)
    log = reopened(harness, clean=False)
    assert log.log_end_offset == 0
    assert log.segments.active.transaction_index.entries() == []


def test_the_deletions_of_a_recovery_are_durable_before_other_records_are(tmp_path):
    """After another power failure, a deleted segment came back and hid the records that had replaced its own."""
    root = tmp_path / "before"
    root.mkdir()
    harness = LogHarness(root)
    log = harness.log()
    for offset in range(20):
        if offset == 10:
            log.roll()
        log.append_as_leader(batch(), 0)
    path = harness.path / f"{0:020d}.log"
    os.truncate(path, path.stat().st_size - 1)
    harness = LogHarness(root, filesystem=LossyFilesystem(str(root)))
    log = harness.log()
    assert log.log_end_offset == 9
    for _ in range(6):
        log.append_as_leader(batch(value=b"new"), 1)
    harness.filesystem.fail_at = harness.filesystem.syncs + 1  # the records are synced, but not the directory
    with pytest.raises(PowerFailure):
        log.flush()
    harness.filesystem.pull_the_plug(str(tmp_path / "after"))
    harness.filesystem.close()
    log = LogHarness(tmp_path / "after").log()
    assert {value for offset in range(9, 15) for _, value in values_of(log.read(offset, 10_000))} == {b"new"}
    assert log.log_end_offset == 15
