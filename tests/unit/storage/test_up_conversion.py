"""Message sets of old clients become one batch: kept fields, refusals, and the limit of a wrapper's content."""

import pytest

from kafkapy._core.bytes.message_set import build_message, build_message_set
from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.errors import ApiError, Error
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.up_conversion import up_convert
from tests.harness.log import NOW_MS, LogHarness, topic_config

RECORDS = [(0, NOW_MS, b"k", b"v"), (1, NOW_MS + 5, None, b"w"), (2, NOW_MS + 1, b"", None)]


def converted(data, **overrides):
    config = LogConfig(topic_config({key.replace("_", "."): value for key, value in overrides.items()}))
    return RecordBatch(up_convert(bytearray(data), config))


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize("magic", [0, 1])
def test_keys_values_timestamps_and_codec_are_kept(magic, codec):
    batch = converted(build_message_set(RECORDS, magic=magic, compression=codec))
    assert (batch.compression, batch.base_offset, batch.record_count, batch.producer_id) == (codec, 0, 3, -1)
    expected = [(offset, timestamp if magic else -1, key, value) for offset, timestamp, key, value in RECORDS]
    assert [(record.offset, record.timestamp, record.key, record.value) for record in batch] == expected


def test_the_codec_of_the_topic_wins():
    data = build_message_set(RECORDS, magic=1, compression=1)
    assert converted(data, compression_type="zstd").compression == 4
    assert converted(data, compression_type="uncompressed").compression == 0


def test_a_bomb_in_a_wrapper_is_not_unpacked():
    data = build_message_set([(0, NOW_MS, None, bytes(40_000_000))], magic=1, compression=1)
    with pytest.raises(ApiError) as caught:
        converted(data, max_message_bytes=100_000)
    assert caught.value.error is Error.MESSAGE_TOO_LARGE
    with pytest.raises(ApiError) as caught:
        converted(data, max_message_bytes=100)
    assert caught.value.error is Error.MESSAGE_TOO_LARGE


def test_an_append_numbers_what_was_converted(tmp_path):
    log = LogHarness(tmp_path).log()
    for magic in (0, 1):
        info = log.append_as_leader(bytearray(build_message_set(RECORDS, magic=magic)), 3)
        assert (info.first_offset, info.last_offset) == (3 * magic, 3 * magic + 2)
    assert log.log_end_offset == 6
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(bytearray(build_message(0, NOW_MS, None, b"x", magic=1)[:-1] + b"y"), 3)
    assert caught.value.error is Error.CORRUPT_MESSAGE
    assert log.log_end_offset == 6
