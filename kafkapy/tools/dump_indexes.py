"""The files of a segment that kafka-dump-log prints and checks: indexes, producers, aborted transactions."""

from __future__ import annotations

import os
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import TextIO

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_snapshot import CorruptSnapshot, decode_snapshot
from kafkapy.storage.transaction_index import CorruptTransactionIndex, TransactionIndex
from kafkapy.tools.dump_batches import LogContent
from kafkapy.tools.option import ToolError

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class IndexDump:
    """Prints the entries of indexes, and collects the entries that contradict their segments.

    If `is_quiet` is set, the entries are compared with the segments but not printed. If `is_sanity_check` is set, only
    the format of an index is checked, and no entry is compared.
    """

    def __init__(self, output: TextIO, *, is_sanity_check: bool, is_quiet: bool, max_message_size: int) -> None:
        self._write = output.write
        self._is_sanity_check = is_sanity_check
        self._is_quiet = is_quiet
        self._max_message_size = max_message_size
        self._offset_mismatches: dict[str, dict[int, int]] = {}
        self._timestamp_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        self._not_found: dict[str, list[tuple[int, int]]] = {}

    def dump_offset_index(self, path: str) -> None:
        """Prints the entries of an `.index` file, and compares each with the batch that it points to."""
        base_offset = _base_offset(path)
        log = LogContent(_sibling(path, ".log"))
        if os.path.getsize(path) < _OFFSET_ENTRY.size:
            self._write(f"{path} is empty.\n")
            return
        if self._is_sanity_check:
            self._check(path, _OFFSET_ENTRY)
            return
        for offset, position in _offset_entries(path, base_offset):
            batch = next(log.batches(position, self._max_message_size), None)
            if batch is None:
                raise ToolError(f"{path}: entry of offset {offset} points to {position}, where no batch begins")
            if batch.last_offset != offset:
                self._offset_mismatches.setdefault(os.path.abspath(path), {})[offset] = batch.last_offset
            if not self._is_quiet:
                self._write(f"offset: {offset} position: {position}\n")

    def dump_time_index(self, path: str) -> None:
        """Prints the entries of a `.timeindex` file, and compares each entry with a batch of the segment.

        The offset of an entry must be the last offset of a batch, and its timestamp the greatest timestamp in this
        batch.
        """
        base_offset = _base_offset(path)
        log = LogContent(_sibling(path, ".log"))
        if self._is_sanity_check:
            self._check(path, _TIME_ENTRY)
            return
        index = list(_offset_entries(_sibling(path, ".index"), base_offset))
        previous = -1
        for timestamp, offset in _time_entries(path, base_offset):
            self._check_time_entry(os.path.abspath(path), log, index, (timestamp, offset), previous)
            if not self._is_quiet:
                self._write(f"timestamp: {timestamp} offset: {offset}\n")
            previous = timestamp

    def _check_time_entry(
        self, path: str, log: LogContent, index: list[tuple[int, int]], entry: tuple[int, int], previous: int
    ) -> None:
        timestamp, offset = entry
        # A binary search, as a segment of one GB may have a quarter of a million entries in each of its indexes.
        entries_before = bisect_right(index, offset, key=itemgetter(0))
        start = index[entries_before - 1][1] if entries_before else 0
        batch = next((each for each in log.batches(start) if each.last_offset >= offset), None)
        if batch is None or batch.last_offset != offset:
            self._not_found.setdefault(path, []).append((offset, -1 if batch is None else batch.last_offset))
            return
        greatest = max((record.timestamp for record in batch.records()), default=-1)
        if greatest != timestamp:
            self._timestamp_mismatches.setdefault(path, []).append((timestamp, greatest))
        if previous >= timestamp:
            self._out_of_order.setdefault(path, []).append((timestamp, previous))

    def _check(self, path: str, layout: struct.Struct) -> None:
        """Checks the index in the file `path`, whose entries have the format `layout`, and prints that it is valid.

        It makes the same checks as Apache Kafka's broker. The broker of kafkapy makes more checks. Raises ToolError,
        with Kafka's text, for an invalid index.
        """
        is_time_index = layout is _TIME_ENTRY
        kind = "time index" if is_time_index else "index"
        size = os.path.getsize(path)
        entries = list(_entries(path, layout))
        if entries:
            first, last = entries[0], entries[-1]
            start = f"Corrupt {kind} found, {kind} file ({path}) has non-zero size but the last"
            base = _base_offset(path)
            if is_time_index and last[0] < first[0]:
                raise ToolError(f"{start} timestamp is {last[0]} which is less than the first timestamp {first[0]}")
            relative = last[1] if is_time_index else last[0]
            if relative < 0:
                than = "first offset" if is_time_index else "base offset"
                raise ToolError(f"{start} offset is {base + relative} which is less than the {than} {base}")
        if size % layout.size:
            raise ToolError(
                f"{kind.capitalize()} file {path} is corrupt, found {size} bytes which is neither positive nor a "
                f"multiple of {layout.size}"
            )
        self._write(f"{path} passed sanity check.\n")

    def print_offset_mismatches(self) -> None:
        """Prints the entries that do not match their batches to standard error, the greatest offsets first."""
        for path, mismatches in self._offset_mismatches.items():
            print(f"Mismatches in :{path}", file=sys.stderr)
            for offset in sorted(mismatches, reverse=True):
                print(f"  Index offset: {offset}, log offset: {mismatches[offset]}", file=sys.stderr)

    def print_time_index_errors(self) -> None:
        """Prints the errors of time indexes to standard error, in the order of Apache Kafka."""
        for path, pairs in self._timestamp_mismatches.items():
            print(f"Found timestamp mismatch in :{path}", file=sys.stderr)
            for timestamp, greatest in pairs:
                print(f"  Index timestamp: {timestamp}, log timestamp: {greatest}", file=sys.stderr)
        for path, pairs in self._out_of_order.items():
            print(f"Found out of order timestamp in :{path}", file=sys.stderr)
            for timestamp, previous in pairs:
                print(f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}", file=sys.stderr)
        for pairs in self._not_found.values():
            print("The following indexed offsets are not found in the log.", file=sys.stderr)
            for offset, found in pairs:
                print(f"Indexed offset: {offset}, found log offset: {found}", file=sys.stderr)


def _base_offset(path: str) -> int:
    name = os.path.basename(path).split(".")[0]
    if not name.isdigit():
        raise ToolError(f'For input string: "{name}"')
    return int(name)


def _sibling(path: str, suffix: str) -> str:
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.join(directory, name.split(".")[0] + suffix)


def _entries(path: str, layout: struct.Struct) -> Iterator[tuple[int, int]]:
    with open(path, "rb") as file:
        content = file.read()
    whole = len(content) - len(content) % layout.size
    return layout.iter_unpack(memoryview(content)[:whole])


def _offset_entries(path: str, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yields the (offset, position) of each entry of an offset index, whose entries are relative to `base_offset`.

    Stops at an entry of zeros that is not the first entry; such entries fill the rest of a preallocated file.
    """
    for number, (relative, position) in enumerate(_entries(path, _OFFSET_ENTRY)):
        if relative == 0 and number:
            return
        yield base_offset + relative, position


def _time_entries(path: str, base_offset: int) -> Iterator[tuple[int, int]]:
    for number, (timestamp, relative) in enumerate(_entries(path, _TIME_ENTRY)):
        if relative == 0 and number:
            return
        yield timestamp, base_offset + relative


def dump_producer_snapshot(path: str, output: TextIO) -> None:
    """Prints a `.snapshot` file, which contains the state of the producers of a log as of an offset.

    If the file is damaged, it prints an error message to standard error.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        entries = list(decode_snapshot(path, content))
    except CorruptSnapshot as error:
        print(error, file=sys.stderr)
        return
    for entry in entries:
        first = entry.transaction_first_offset
        output.write(
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {f'OptionalLong[{first}]' if first >= 0 else 'OptionalLong.empty'} "
            f"lastTimestamp: {entry.last_timestamp}"
        )
        last = entry.last_batch
        if last is not None:
            output.write(
                f" firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} "
                f"lastOffset: {last.last_offset} offsetDelta: {last.last_offset - last.first_offset} "
                f"timestamp: {last.timestamp}"
            )
        output.write("\n")


def dump_transaction_index(path: str, output: TextIO) -> None:
    """Prints a `.txnindex` file, which contains the aborted transactions that ended in the segment.

    Raises ToolError for a damaged file.
    """
    try:
        entries = TransactionIndex(path, Filesystem()).entries()
    except CorruptTransactionIndex as error:
        raise ToolError(str(error)) from None
    for entry in entries:
        output.write(
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}\n"
        )
