"""The cleaner's inner loops: collecting the keys of 1,000 batches, and filtering them."""

from bench.micro.test_record_batch import LIMITS, build
from kafkapy._core.broker_state.batch_filter import BatchFilter, collect_keys
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy._core.bytes.record_batch import assign_offsets, validate_batches

BATCHES = bytearray(build(count=10) * 1_000)
assign_offsets(BATCHES, validate_batches(BATCHES, **LIMITS), 0, 0)


def collected() -> OffsetMap:
    offsets = OffsetMap(1 << 20)
    offsets.clear()
    collect_keys(offsets, BATCHES, 0, len(BATCHES), 0, 10_000)
    return offsets


def test_collect(benchmark):
    assert benchmark(collected).entries == 10


def test_filter(benchmark):
    offsets = collected()

    def keep_the_last():
        kept = BatchFilter(offsets, wall_ms=10_000, delete_retention_ms=1, round_end=10_000)
        kept.filter_plain(BATCHES, 0, len(BATCHES))
        return kept

    assert benchmark(keep_the_last).records_kept == 10
