"""A log compared with a list: reads agree after any appends, truncations, rolls, flushes, kills and restarts."""

import tempfile

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.harness.log import LogHarness, batch, values_of

CONFIG = {"segment.bytes": 1024 * 1024, "index.interval.bytes": 1000}


class LogMachine(RuleBasedStateMachine):
    """The model: `records` contains (value, leader epoch) by offset; epochs never fall."""

    def __init__(self):
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.harness = LogHarness(self.directory.name)
        self.log = self.harness.log(CONFIG)
        self.records = []
        self.start = 0
        self.epoch = 0

    def teardown(self):
        self.log.close()
        self.directory.cleanup()

    @rule(
        count=st.integers(1, 30), size=st.sampled_from((0, 50, 9000)), fill=st.integers(0, 255), codec=st.integers(0, 4)
    )
    def append(self, count, size, fill, codec):
        value = bytes([fill]) * size
        info = self.log.append_as_leader(batch(count, value=value, compression=codec), self.epoch)
        assert info.first_offset == len(self.records)
        self.records += [(value, self.epoch)] * count
        assert info.last_offset == len(self.records) - 1

    @rule()
    def new_leader(self):
        self.epoch += 1
        self.log.assign_epoch_start_offset(self.epoch, self.log.log_end_offset)

    @rule()
    def roll(self):
        self.log.roll()

    @rule()
    def flush(self):
        self.log.flush()
        assert self.log.recovery_point == len(self.records)

    @precondition(lambda self: len(self.records) > self.start)
    @rule(data=st.data())
    def truncate(self, data):
        offset = data.draw(st.integers(self.start, len(self.records)))
        self.log.truncate_to(offset)
        assert self.log.log_end_offset <= offset
        del self.records[self.log.log_end_offset :]
        self.start = self.log.log_start_offset

    @rule(data=st.data())
    def move_start(self, data):
        self.log.high_watermark = self.log.log_end_offset
        self.start = data.draw(st.integers(self.start, len(self.records)))
        self.log.maybe_increment_log_start_offset(self.start)
        self.log.delete_old_segments()

    @rule(clean=st.booleans())
    def reopen(self, clean):
        recovery_point = self.log.recovery_point
        if clean:
            self.log.close()
            recovery_point = self.log.recovery_point
        self.harness.is_clean = clean
        self.log = self.harness.log(CONFIG, recovery_point=recovery_point, log_start_offset=self.start)
        self.epoch = max(self.epoch, self.log.latest_epoch)

    @rule(data=st.data(), max_bytes=st.sampled_from((1, 500, 100_000)))
    def read(self, data, max_bytes):
        offset = data.draw(st.integers(self.start, len(self.records)))
        found = values_of(self.log.read(offset, max_bytes))
        assert bool(found) == (offset < len(self.records)), "the first batch is returned, however large it is"
        if found:
            assert found[0][0] <= offset
        for number, value in found:
            if number >= self.start:
                assert value == self.records[number][0]

    @invariant()
    def ends_agree(self):
        assert self.log.log_end_offset == len(self.records)
        assert self.log.log_start_offset == self.start
        assert self.log.recovery_point <= self.log.log_end_offset

    @invariant()
    def indexes_point_at_batches(self):
        for segment in self.log.segments:
            index = segment.offset_index
            for entry_offset, position in (index.entry(slot) for slot in range(index.entries)):
                assert segment.find(entry_offset)[::3] == (position, entry_offset)

    @invariant()
    def epochs_agree(self):
        for offset in {self.start, (self.start + len(self.records)) // 2, len(self.records) - 1}:
            if self.start <= offset < len(self.records):
                assert self.log.leader_epochs.epoch_for_offset(offset) == self.records[offset][1]


LogMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogModel = LogMachine.TestCase
