"""A compacted log, a cleaner over it on the test's own thread, and an oracle that knows which records must remain."""

import random
import struct
from typing import Any, cast

from kafkapy._core.bytes.message_set import build_message_set, iterate_records
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.storage.log_cleaner import CleanerWorker
from kafkapy.storage.log_cleaner_manager import LogCleanerManager
from kafkapy.storage.log_cleaner_pass import CleaningTools
from kafkapy.storage.log_cleaner_reader import CleanerBuffer
from tests.harness.log import LogHarness

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.bytes": str(1 << 20),
    "delete.retention.ms": "1000",
    "index.interval.bytes": "200",
    "segment.ms": str(10**12),
}


class FewLogs:
    """The part of a LogManager that the cleaner uses."""

    def __init__(self, harness, logs):
        self.harness = harness
        self._logs = {log.topic_partition: log for log in logs}

    def logs(self):
        return list(self._logs.values())

    def get_log(self, partition):
        return self._logs.get(partition)

    def remove(self, partition):
        del self._logs[partition]

    def add(self, log):
        self._logs[log.topic_partition] = log

    def take_offline(self, path, error):
        self.harness._on_io_error(path, error)


class CleanerHarness(LogHarness):
    """One log, and a cleaner whose `run_on_owner` is a plain call."""

    def __init__(self, root, *, filesystem=None, overrides=None, map_bytes=1 << 16, buffer_bytes=1 << 16):
        super().__init__(root, filesystem=filesystem)
        self.overrides = {**COMPACTED, **(overrides or {})}
        self.map_bytes = map_bytes
        self.buffer_bytes = buffer_bytes
        self.counted = 0
        self.before_swap = lambda: None
        self.reopen()

    def reopen(self, **keywords):
        self.log_ = self.log(self.overrides, **keywords)
        self.log_.high_watermark = self.log_.log_end_offset
        self.logs = cast(Any, FewLogs(self, [self.log_]))
        self.manager = LogCleanerManager(self.logs, self.clock, self.on_owner)
        self.worker = CleanerWorker(self.logs, self.clock, self.tools())

    def on_owner(self, work):
        self.before_swap()
        return work()

    def tools(self):
        def count(size):
            self.counted += size

        return CleaningTools(
            OffsetMap(self.map_bytes),
            CleanerBuffer(self.buffer_bytes, count),
            self.manager,
            self.filesystem,
            count,
            lambda: None,
            lambda delay_ms, work: self.scheduled.append(work),
        )

    def clean(self):
        """Runs a pass of the cleaner if one is due; returns whether one was due."""
        self.log_.high_watermark = self.log_.log_end_offset
        return self.worker.clean_filthiest()

    def append(self, records, *, from_client=True):
        info = self.log_.append_as_leader(bytearray(records), 0, from_client=from_client)
        self.log_.high_watermark = self.log_.log_end_offset
        return info

    def put(self, pairs, **keywords):
        """Appends a batch of (key, value) pairs; returns the offset of the first."""
        builder = RecordBatchBuilder(**keywords)
        for key, value in pairs:
            builder.append(self.clock.wall_ms(), key, value)
        return self.append(builder.build()).first_offset

    def put_old(self, pairs, *, magic, compression=0):
        """Appends pairs in an old format to the segment directly, because a broker no longer writes this format."""
        first = self.log_.log_end_offset
        timestamp = self.clock.wall_ms() if magic else -1
        records = [(first + index, timestamp, key, value) for index, (key, value) in enumerate(pairs)]
        message = build_message_set(records, magic=magic, compression=compression)
        active = self.log_.segments.active
        active.open_for_append()
        position = active.file.append((message,))
        active.size = position + len(message)
        active.index_batch(position, len(message), first + len(pairs) - 1, timestamp)
        self.log_.log_end_offset = first + len(pairs)
        self.log_.high_watermark = self.log_.log_end_offset
        return first

    def end_transaction(self, producer_id, *, commit):
        self.append(self.marker(producer_id, 0, commit=commit), from_client=False)

    def records(self):
        """Returns (offset, key, value, timestamp) of every record in the segment files, data and markers."""
        return [
            (record.offset, record.key, record.value, record.timestamp) for batch in self.batches() for record in batch
        ]

    def batches(self):
        return [batch for segment in self.log_.segments for batch in batches_of(segment)]


class OldBatch:
    """A message of magic 0 or 1 with the attributes of a batch that tests read."""

    is_control = is_transactional = False
    has_delete_horizon = False
    producer_id = -1

    def __init__(self, data):
        self.records = list(iterate_records(data))
        self.base_offset, self.last_offset = self.records[0].offset, self.records[-1].offset
        self.record_count = len(self.records)

    def __iter__(self):
        return iter(self.records)

    def is_valid(self):
        return True


def batches_of(segment):
    with open(segment.path(".log"), "rb") as file:
        data = file.read()[: segment.size]
    position, found = 0, []
    while position < len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        piece = data[position : position + size]
        found.append(OldBatch(piece) if piece[16] < 2 else next(iter(iterate_batches(piece))))
        position += size
    return found


class Workload:
    """A random workload of keyed records, and what a reader of committed records must find at its end."""

    def __init__(self, harness, chance, *, old_formats=True, cleaning=True):
        self.harness = harness
        self.chance = chance
        self.old_formats = old_formats
        self.cleaning = cleaning
        self.latest = {}  # key -> (offset, value): the newest that is not aborted
        self.markers = []  # (offset, producer id, commit)
        self.open = {}  # producer id -> [(key, offset, value)]
        self.sequences = {}
        self.stamped = {}  # offset -> (key, value, timestamp) of everything ever written

    def step(self):
        chance, harness = self.chance, self.harness
        action = chance.randrange(20)
        if action == 0:
            harness.log_.roll()
        elif action == 1:
            if self.cleaning:
                harness.clean()
        elif action == 2:
            harness.clock.advance(chance.choice((1, 400, 1500)))
        elif action <= 4 and self.open:
            self.end(chance.choice(list(self.open)))
        elif action <= 6 and self.old_formats and not self.open:
            self.write_old()
        else:
            self.write()

    def pairs(self):
        chance = self.chance
        return [
            (
                b"k%d" % chance.randrange(12),
                None if chance.random() < 0.25 else b"v%d" % chance.randrange(10**6) * chance.choice((1, 1, 40)),
            )
            for _ in range(chance.randint(1, 6))
        ]

    def write_old(self):
        magic = self.chance.randrange(2)
        pairs = self.pairs()
        first = self.harness.put_old(pairs, magic=magic, compression=self.chance.choice((0, 1, 2, 3)))
        self.note(first, pairs, -1 if magic == 0 else None)

    def write(self):
        producer = self.chance.choice((-1, -1, 7, 8, 9))
        keywords = {"compression": self.chance.choice((0, 0, 0, 1, 2, 3, 4))}
        pairs = self.pairs()
        if producer >= 0:
            sequence = self.sequences.get(producer, 0)
            keywords |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            keywords["is_transactional"] = producer != 9
            self.sequences[producer] = sequence + len(pairs)
        first = self.harness.put(pairs, **keywords)
        self.note(first, pairs, None, producer if producer in (7, 8) else -1)

    def note(self, first, pairs, timestamp, transaction=-1):
        now = self.harness.clock.wall_ms() if timestamp is None else timestamp
        for offset, (key, value) in enumerate(pairs, first):
            self.stamped[offset] = (key, value, now)
            if transaction >= 0:
                self.open.setdefault(transaction, []).append((key, offset, value))
            else:
                self.keep(key, offset, value)

    def keep(self, key, offset, value):
        if offset > self.latest.get(key, (-1, None))[0]:
            self.latest[key] = (offset, value)

    def finish(self):
        """Ends all transactions and rolls the log, so that all records can be cleaned."""
        for producer in list(self.open):
            self.end(producer)
        self.harness.log_.roll()

    def end(self, producer, commit=None):
        commit = self.chance.random() < 0.6 if commit is None else commit
        self.markers.append((self.harness.log_.log_end_offset, producer, commit))
        self.harness.end_transaction(producer, commit=commit)
        written = self.open.pop(producer)
        if commit:
            for key, offset, value in written:
                self.keep(key, offset, value)


def run_workload(root, seed, *, steps=40, old_formats=True, map_bytes=None):
    """Runs a random workload, during which the cleaner sometimes runs, and then the cleaner until no pass is due.

    Returns the workload for `check_cleaned`.
    """
    chance = random.Random(seed)
    harness = CleanerHarness(
        root,
        overrides={"segment.bytes": str(chance.choice((1 << 20, 1 << 20, 1 << 21)))},
        map_bytes=map_bytes or chance.choice((24 * 5, 24 * 12, 1 << 16)),
        buffer_bytes=chance.choice((4096, 1 << 16)),
    )
    workload = Workload(harness, chance, old_formats=old_formats)
    for _ in range(steps):
        workload.step()
    workload.finish()
    clean_all(harness)
    return workload


def clean_all(harness, limit=1000):
    """Runs passes until none is due; each must make progress."""
    while harness.clean():
        limit -= 1
        assert limit, "the cleaner never comes to an end"


def check_cleaned(workload):
    """Checks what `check_kept` does, and that no outdated record is left."""
    found = check_kept(workload)
    wanted = {offset for offset, _ in workload.latest.values()}
    outdated = found - wanted
    assert not outdated, f"outdated offsets {sorted(outdated)} remain"


def check_reads(log):
    """Checks that each offset and each timestamp is found through the indexes where the segment files have it."""
    records = [record for segment in log.segments for batch in batches_of(segment) for record in batch]
    for record in records:
        batch = next(iter(iterate_batches(log.read(record.offset, 1).records.read())))
        assert batch.base_offset <= record.offset <= batch.last_offset
    for timestamp in {record.timestamp for record in records}:
        first = next(record for record in records if record.timestamp >= timestamp)
        found = log.fetch_offset_by_timestamp(timestamp)
        assert found is not None
        assert (found.timestamp, found.offset) == (first.timestamp, first.offset)


def check_kept(workload):
    """Checks that records are as written and no newest value is lost; returns the offsets of the data."""
    harness = workload.harness
    assert not harness.manager.uncleanable_partitions
    assert not harness.failures
    last_offset = -1
    found = {}
    control_offsets = set()
    for batch in harness.batches():
        assert batch.is_valid()
        assert batch.base_offset > last_offset
        last_offset = batch.last_offset
        for record in batch:
            assert batch.base_offset <= record.offset <= batch.last_offset
            if batch.is_control:
                control_offsets.add(record.offset)
                continue
            assert workload.stamped[record.offset] == (record.key, record.value, record.timestamp)
            found[record.offset] = (record.key, record.value)
    assert control_offsets <= {offset for offset, _, _ in workload.markers}
    for key, (offset, value) in workload.latest.items():
        if value is not None:
            assert found.get(offset) == (key, value), f"the newest value of {key} is lost"
    return set(found)
