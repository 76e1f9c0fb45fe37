"""The batches and records of a segment or snapshot, in the format of kafka-dump-log."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, TextIO

from kafkapy._core.bytes.compression import CODEC_NAMES
from kafkapy._core.bytes.message_set import LegacyRecord, iterate_messages, iterate_records
from kafkapy._core.bytes.record_batch import (
    BATCH_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    SMALLEST_LENGTH,
    RecordBatch,
)
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.message_json import json_text, message_json
from kafkapy.protocol.messages.data_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kafkapy.storage.producer_entry import LARGEST_SEQUENCE
from kafkapy.tools.dump_decoders import RecordDecoder
from kafkapy.tools.option import ToolError
from kafkapy.tools.progress import Progress

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
# Control records: type -> (text before the value, class of the value).
_CONTROL_TEXTS: dict[int, tuple[str, Any]] = {
    2: ("LeaderChange:", LeaderChangeMessage),
    3: ("SnapshotHeader", SnapshotHeaderRecord),
    4: ("SnapshotFooter", SnapshotFooterRecord),
    5: ("KRaftVersion", KRaftVersionRecord),
    6: ("KRaftVoters", VotersRecord),
}


class ShownRecord(NamedTuple):
    """A record of any message format; `legacy` is the message of magic 0 or 1, or None for a record of magic 2."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    header_names: tuple[str, ...]
    legacy: LegacyRecord | None


class FileBatch:
    """A batch in a file: a record batch, or a message or wrapper message of the old formats."""

    def __init__(self, content: memoryview, position: int, size: int) -> None:
        self.position = position
        self.size = size
        self.magic = content[position + MAGIC_AT]
        self._content = content[position : position + size]
        if self.magic >= BATCH_MAGIC:
            self.batch: RecordBatch | None = RecordBatch(self._content)
            self.legacy: LegacyRecord | None = None
            self.last_offset = self.batch.last_offset
            self.is_control = self.batch.is_control
        else:
            self.batch = None
            self.legacy = next(iterate_messages(self._content))
            self.last_offset = self.legacy.offset
            self.is_control = False

    @property
    def timestamp_type(self) -> str:
        if self.magic == 0:
            return "NoTimestampType"
        return TIMESTAMP_TYPES[(self.batch or self.legacy).timestamp_type]  # type: ignore[union-attr]

    def records(self) -> Iterator[ShownRecord]:
        """Yields all records, decompressed. Raises ApiError or ProtocolViolation for records that cannot be read."""
        if self.batch is not None:
            for record in self.batch:
                names = tuple(name for name, _ in record.headers)
                yield ShownRecord(record.offset, record.timestamp, record.key, record.value, names, None)
        else:
            for old in iterate_records(self._content):
                yield ShownRecord(old.offset, old.timestamp, old.key, old.value, (), old)

    def summary(self) -> str:
        """Returns the line that describes the batch."""
        if self.batch is not None:
            batch = self.batch
            horizon = f"OptionalLong[{batch.base_timestamp}]" if batch.has_delete_horizon else "OptionalLong.empty"
            start = (
                f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
                f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
                f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
                f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
                f"isTransactional: {_java(batch.is_transactional)} "
                f"isControl: {_java(batch.is_control)} deleteHorizonMs: {horizon}"
            )
            timestamp, crc, codec, valid = batch.max_timestamp, batch.crc, batch.compression, batch.is_valid()
        else:
            old = self.legacy
            assert old is not None
            start = f"offset: {old.offset}"
            timestamp, crc, codec, valid = old.timestamp, old.crc, old.compression, old.is_valid()
        return (
            f"{start} position: {self.position} {self.timestamp_type}: {timestamp} size: {self.size} "
            f"magic: {self.magic} compresscodec: {_codec_name(codec)} crc: {crc} isvalid: {_java(valid)}"
        )


def _codec_name(codec: int) -> str:
    """Returns the name of a codec; a damaged batch may have a number that is not that of any codec."""
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"UNKNOWN({codec})"


def _java(value: bool) -> str:
    return "true" if value else "false"


class LogContent:
    """A memory-mapped file of batches. Its batches refer to the mapping."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None

    def batches(self, position: int = 0, limit: int | None = None) -> Iterator[FileBatch]:
        """Yields the complete batches from `position` on, within `limit` bytes (None: to the end of the file).

        Raises ToolError for a batch whose size is too small for a batch.
        """
        if self._map is None:
            return
        content = memoryview(self._map)
        end = self.size if limit is None else min(self.size, position + limit)
        while position + MAGIC_AT < end:
            size = int.from_bytes(content[position + LENGTH_AT : position + LOG_OVERHEAD], "big", signed=True)
            if size < SMALLEST_LENGTH:
                raise ToolError(
                    f"Found record size {size} smaller than minimum record overhead ({SMALLEST_LENGTH}) in file "
                    f"{self.path}."
                )
            if position + LOG_OVERHEAD + size > end:
                return
            yield FileBatch(content, position, LOG_OVERHEAD + size)
            position += LOG_OVERHEAD + size


class BatchPrinter:
    """Prints the batches of files and, if `is_deep` is set, their records.

    output: the text stream to print to.
    decoder: converts keys and values to text; if it is None, keys and values are not printed.
    skips_metadata: whether only the keys and values of records are printed, and no control records.
    max_bytes: how many bytes of each file are read.
    gaps: for each file, a dict with an entry for each gap between the offsets of two successive records: it maps the
        offset before the gap to the offset after the gap.
    """

    def __init__(
        self,
        output: TextIO,
        *,
        is_deep: bool = False,
        decoder: RecordDecoder | None = None,
        skips_metadata: bool = False,
        max_bytes: int = 2**31 - 1,
    ) -> None:
        self._write = output.write
        self._is_deep = is_deep
        self._decoder = decoder
        self._skips_metadata = skips_metadata
        self._max_bytes = max_bytes
        self.gaps: dict[str, dict[int, int]] = {}

    def print_file(self, path: str) -> None:
        """Prints the batches of a file, and the number of invalid bytes at its end."""
        content = LogContent(path)
        valid_bytes = 0
        self._last_offset = -1
        with Progress(content.size, "bytes") as progress:
            for batch in content.batches(0, self._max_bytes):
                self._write(batch.summary() + "\n")
                if self._is_deep:
                    self._print_records(batch, os.path.abspath(path))
                valid_bytes += batch.size
                progress.advance(batch.size)
        trailing = content.size - valid_bytes
        if trailing > 0 and self._max_bytes == 2**31 - 1:
            self._write(f"Found {trailing} invalid bytes at the end of {os.path.basename(path)}\n")

    def _print_records(self, batch: FileBatch, path: str) -> None:
        for record in batch.records():
            if record.offset != self._last_offset + 1:
                self.gaps.setdefault(path, {})[self._last_offset] = record.offset
            self._last_offset = record.offset
            if not self._skips_metadata:
                self._write(_metadata(batch, record))
            if self._decoder is not None and not batch.is_control:
                self._write(self._contents(record))
            self._write("\n")

    def _contents(self, record: ShownRecord) -> str:
        assert self._decoder is not None
        key, value = self._decoder(record)
        parts = [f"key: {key}"] if key is not None else []
        parts += [f"payload: {value}"] if value is not None else []
        return ("| " if self._skips_metadata else " ") + " ".join(parts) if parts else ""


def _metadata(batch: FileBatch, record: ShownRecord) -> str:
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    text = f"| offset: {record.offset} {batch.timestamp_type}: {record.timestamp} "
    text += f"keySize: {key_size} valueSize: {value_size}"
    if batch.batch is not None:
        text += f" sequence: {_sequence(batch.batch, record)} headerKeys: [{','.join(record.header_names)}]"
    if record.legacy is not None:
        text += f" isValid: {_java(record.legacy.is_valid())} crc: {record.legacy.crc}"
    return text + _control(record) if batch.is_control else text


def _sequence(batch: RecordBatch, record: ShownRecord) -> int:
    if batch.base_sequence < 0:
        return -1
    sequence = batch.base_sequence + record.offset - batch.base_offset
    return sequence if sequence <= LARGEST_SEQUENCE else sequence - LARGEST_SEQUENCE - 1


def _control(record: ShownRecord) -> str:
    """Returns the text of a control record, which ends a transaction or belongs to the metadata quorum."""
    kind = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    value = record.value or b""
    if kind in (0, 1):
        epoch = int.from_bytes(value[2:6], "big", signed=True)
        return f" endTxnMarker: {('ABORT', 'COMMIT')[kind]} coordinatorEpoch: {epoch}"
    if kind not in _CONTROL_TEXTS:
        return f" controlType: UNKNOWN({kind})"
    name, message_class = _CONTROL_TEXTS[kind]
    version = min(int.from_bytes(value[:2], "big"), message_class.HIGHEST_VERSION)
    message = message_class.decode(value, version)
    return f" {name} {json_text(message_json(message, version))}"
