"""Converts message sets of magic 0 and 1, from produce requests below version 3, to one batch of magic 2.

The rules are those of Apache Kafka 3.9, the last release that accepts them: a set consists of plain messages or of one
wrapper, all of one magic. Keys, values and the codec are kept; messages of magic 0 get the timestamp -1; the client's
offsets are ignored.
"""

from collections.abc import Iterable

from kafkapy._core.bytes.message_set import LegacyRecord, iterate_messages, wrapped_messages
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import ApiError, Error
from kafkapy.storage.log_config import KEEP_CODEC, LogConfig
from kafkapy.types import NO_TIMESTAMP


def up_convert(records: memoryview | bytearray, config: LogConfig) -> bytearray:
    """Returns the messages of a message set as one batch with offsets from 0.

    The codec of the batch is that of the topic's compression.type; for "producer" it is the codec of the message set.
    Raises ApiError, with Kafka's error codes, for messages that are damaged, too large or of different magic, or that
    have an invalid timestamp. The caller validates the batch (keys, timestamps, size) afterwards.
    """
    messages = list(iterate_messages(records))
    for message in messages:
        if message.size_in_bytes > config.max_message_bytes:
            raise ApiError(
                Error.MESSAGE_TOO_LARGE,
                f"The record batch size is {message.size_in_bytes} bytes which exceeds the maximum configured value "
                f"of {config.max_message_bytes}.",
            )
        message.ensure_valid()
        if message.timestamp_type and config.stamps_append_time:
            raise ApiError(
                Error.INVALID_TIMESTAMP,
                "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime.",
            )
    if not messages:
        raise ApiError(Error.INVALID_RECORD, "The message set holds no whole message")
    wrapper = next((message for message in messages if message.compression), None)
    if wrapper is not None and len(messages) > 1:
        raise ApiError(Error.INVALID_RECORD, "Compressed outer record has more than one batch")
    if wrapper is None:
        return _one_batch(messages, 0, config)
    return _one_batch(wrapped_messages(wrapper, config.max_decompressed_bytes), wrapper.compression, config)


def _one_batch(messages: Iterable[LegacyRecord], codec: int, config: LogConfig) -> bytearray:
    keeps_codec = config.codec == KEEP_CODEC
    builder = RecordBatchBuilder(
        compression=codec if keeps_codec else config.codec,
        level=None if keeps_codec else config.compression_level,
    )
    magic = -1
    for message in messages:
        if magic not in (-1, message.magic):
            raise ApiError(Error.INVALID_RECORD, f"Message set mixes magic {magic} and {message.magic}")
        magic = message.magic
        if message.timestamp < NO_TIMESTAMP:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"Invalid negative timestamp {message.timestamp}")
        builder.append(message.timestamp, message.key, message.value)
    return bytearray(builder.build())
