"""Reading records as columns: Arrow record batches made from fetched bytes, without a Python object per record.

`Consumer.poll_arrow` returns the next records of a consumer; a `RangeReader` reads a range of offsets, for programs
that divide a topic themselves (Spark's executors). Both decode without the interpreter lock, while the next fetch is
already in flight. Libraries that know Arrow's PyCapsule interface read the results without a copy (pyarrow, polars,
pandas, duckdb); kafkapy needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.arrow_stream import export_stream
from kafkapy.client.closing import Closing
from kafkapy.client.configuration import consumer_config
from kafkapy.client.environment import SYSTEM
from kafkapy.client.fetcher import Fetcher
from kafkapy.client.network import Network
from kafkapy.client.subscription import PartitionState, Subscription
from kafkapy.errors import ApiError, ConfigError
from kafkapy.types import TopicPartition

# Spark's Kafka source has these columns; headers are the eighth.
PLAIN_COLUMNS = COLUMNS[:7]
MOST_ROWS = 65_536
MOST_BYTES = 64 << 20
# Fetches, metadata and look-ups do not wait for each other's responses.
_IN_FLIGHT_LIMIT = 100
# The defaults of a RangeReader, which reads a range as fast as possible.
_RANGE_DEFAULTS = {"max.partition.fetch.bytes": 4 << 20, "fetch.max.bytes": 64 << 20, "auto.offset.reset": "none"}


class ArrowBatches:
    """The record batches that `Consumer.poll_arrow` returned; all have the same columns. The object does not change
    after its construction.

    It has a length, can be iterated and indexed, and is false if it has no batches. It is also an Arrow stream
    (PyCapsule interface), even if it is empty: `pyarrow.table(batches)`, `polars.DataFrame(batches)`. A library that
    reads the stream shares the batches' memory. It is not a list, because these libraries treat lists as rows.
    """

    __slots__ = ("_batches", "_template")

    def __init__(self, batches: Iterable[ArrowBatch], template: ArrowBatch) -> None:
        """Stores the batches; `template` is a batch without rows that defines the columns."""
        self._batches = tuple(batches)
        self._template = template

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[ArrowBatch]:
        return iter(self._batches)

    def __getitem__(self, index: int) -> ArrowBatch:
        return self._batches[index]

    def __repr__(self) -> str:
        return f"<ArrowBatches of {len(self)} batches, {self.row_count} rows: {', '.join(self._template.columns)}>"

    @property
    def row_count(self) -> int:
        """The number of records in all batches."""
        return sum(map(len, self._batches))

    def __arrow_c_schema__(self) -> object:
        """Returns the columns' names and types as a PyCapsule of an ArrowSchema."""
        return self._template.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the batches as a PyCapsule of an ArrowArrayStream; `requested_schema` is ignored."""
        return export_stream(self._template, self._batches)


def collect_columns(network: Network, fetcher: Fetcher, make: Callable[[], ArrowBatch]) -> list[ArrowBatch]:
    """Returns the records that the fetcher has buffered, and moves the positions past them.

    The result has one batch for each partition with buffered records. `make()` returns an empty batch. If no records
    are buffered, raises the error that the fetcher has reported; each error is raised once.
    """
    with network.lock:
        ready = fetcher.ready_states()
        if not ready:
            fetcher.raise_error()
    found: list[ArrowBatch] = []
    for state in ready:
        try:
            batch = fill_columns(network, state, make())
        except ApiError:
            if found:
                break
            raise
        if len(batch):
            found.append(batch)
    return found


def fill_columns(network: Network, state: PartitionState, batch: ArrowBatch) -> ArrowBatch:
    """Fills a batch from a partition's buffers until the batch is full or the buffers are empty, and returns the same
    batch.

    Advances the partition's position after each buffer. `Network.lock` is not held while records are decoded. During
    that time another thread may append buffers. It may also change the position, which drops all buffers and raises the
    partition's `generation`; the batch then ends, and the new position stays.
    """
    while not batch.is_full and max(len(batch), batch.scanned) < batch.max_rows:
        with network.lock:
            if not state.buffers or state.is_paused:
                break
            fetched, generation, is_last = state.buffers[0], state.generation, len(state.buffers) == 1
        if is_last:
            network.try_step()  # sends the next fetch before this one is decoded
        scanned = batch.scanned
        try:
            fetched.fill(batch)
        except ApiError:
            if len(batch):
                break  # the caller gets the rows of earlier buffers first; then the next call raises the error again
            raise
        with network.lock:
            network.metrics.topic(fetched.topic).records.add(batch.scanned - scanned)
            if generation != state.generation:
                break
            state.advance(fetched)
            state.measure(network.metrics)
    return batch


class RangeReader(Closing):
    """Reads ranges of offsets as columns, one range after the other. Used by one thread at a time.

    `properties` and keyword arguments are those of a `Consumer`, without a group; `group.id` raises ConfigError. With
    `auto.offset.reset=none`, the default here, a range that is outside of the log raises NoOffsetForPartition.
    """

    _environment = SYSTEM

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        given = {**(properties or {}), **{key.replace("_", "."): value for key, value in settings.items()}}
        if given.get("group.id") is not None:
            raise ConfigError("group.id cannot be set: a RangeReader reads without a group")
        config = consumer_config({**_RANGE_DEFAULTS, **given})
        self._network = Network(config, in_flight_limit=_IN_FLIGHT_LIMIT, environment=self._environment)
        self._network.metadata.allow_creation = False
        self._subscription = Subscription()
        self._fetcher = Fetcher(self._network, self._subscription, config)
        self._state: PartitionState | None = None  # of the range that is read, or was read last
        self._network.tasks.append(self._fetcher)
        self._network.start()

    @property
    def position(self) -> int | None:
        """The offset from which to continue after an error: the offset after the last record that was returned.

        After a whole range it is `until` or a later offset. While `read_ranges` reads several ranges, it is an offset
        in the partition of the last batch. It is None before the first range is read; if several ranges are read, it is
        None until the first batch.
        """
        return None if self._state is None else self._state.position

    def read(
        self,
        partition: TopicPartition | tuple[str, int],
        start: int,
        until: int,
        *,
        columns: Iterable[str] = PLAIN_COLUMNS,
        max_rows: int = MOST_ROWS,
        max_bytes: int = MOST_BYTES,
        timestamp_unit: str = "us",
        timeout: float = 120.0,
    ) -> Iterator[ArrowBatch]:
        """Returns an iterator over the records from offset `start` up to, but not including, `until`.

        Each batch has at most `max_rows` rows and about `max_bytes` bytes of keys, values and headers. `columns` are
        some of key, value, topic, partition, offset, timestamp, timestampType, headers; without columns the rows are
        only counted. `timestamp_unit` is "us" or "ms". The iterator blocks while it waits for records, and the next
        fetch is in flight while the caller uses a batch. It ends when the position has reached `until`, even if records
        there were compacted, aborted, or are control records. Raises RequestTimedOut (a TimeoutError) if nothing
        arrives for `timeout` seconds; ApiError for a corrupt batch; NoOffsetForPartition if the log does not have the
        range.
        """
        whole = TopicPartition(*partition)
        batches = self.read_ranges(
            {whole: (start, until)},
            columns=columns,
            max_rows=max_rows,
            max_bytes=max_bytes,
            timestamp_unit=timestamp_unit,
            timeout=timeout,
            pause=timeout,
        )
        return (batch for batch in batches if batch is not None)

    def read_ranges(
        self,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        columns: Iterable[str] = PLAIN_COLUMNS,
        max_rows: int = MOST_ROWS,
        max_bytes: int = MOST_BYTES,
        timestamp_unit: str = "us",
        timeout: float | None = 120.0,
        pause: float = 1.0,
        needle: bytes = b"",
    ) -> Iterator[ArrowBatch | None]:
        """Returns an iterator over the records of several partitions, which are fetched together.

        `ranges` has the first offset and the exclusive end of each partition. A batch has records of one partition; the
        batches of one partition are in the order of offsets. None is returned when no record has arrived for `pause`
        seconds, so that the caller can end the iteration. The other arguments and the errors are those of `read`, but
        if `timeout` is None, the iterator waits without a time limit. If a `needle` is given, most records whose key,
        value and headers do not contain these bytes are skipped before they are decoded; a batch may then have no rows,
        and its `scanned` is the number of records that were read for it.
        """
        chosen = tuple(columns)
        states = self._begin(ranges)
        silent_s = 0.0
        try:
            while states := [state for state in states if not _is_read(state)]:
                has_read = False
                for state in states:
                    batch = ArrowBatch(
                        chosen, max_rows=max_rows, max_bytes=max_bytes, timestamp_unit=timestamp_unit, needle=needle
                    )
                    if state.buffers and fill_columns(self._network, state, batch).scanned:
                        self._state = state
                        has_read = True
                        yield batch
                if has_read:
                    silent_s = 0.0
                elif not self._wait(states, pause):
                    silent_s += pause
                    if timeout is not None and silent_s >= timeout:
                        positions = ", ".join(
                            f"{state.position} of a range up to {state.until_offset}" for state in states
                        )
                        raise self._network.timed_out(f"No record arrived within {timeout} s: position {positions}")
                    yield None
        finally:
            with self._network.lock:
                self._subscription.assign_manually(())

    def close(self) -> None:
        """Closes the connections. May be called again."""
        self._network.close()

    def _begin(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> list[PartitionState]:
        with self._network.lock:
            self._fetcher.errors.clear()
            self._subscription.assign_manually(())
            self._subscription.assign_manually(ranges)
            self._network.metadata.set_topics({each.topic for each in ranges})
            states = []
            for topic_partition, (start, until) in ranges.items():
                state = self._subscription.state(topic_partition)
                state.jump(start)
                state.until_offset = until
                states.append(state)
        self._state = states[0] if len(states) == 1 else None
        return states

    def _wait(self, states: list[PartitionState], timeout: float) -> bool:
        """Blocks until records are buffered or a position has reached the end of its range, and returns True.

        Returns False if `timeout` seconds pass before that. If no records are buffered, raises the error that the
        fetcher reports, if there is one.
        """

        def is_available() -> bool:
            return self._fetcher.has_records or any(map(_is_read, states))

        is_in_time = self._network.wait_until(is_available, timeout)
        if not any(state.buffers for state in states):
            self._fetcher.raise_error()
        return is_in_time


def _is_read(state: PartitionState) -> bool:
    """Returns whether the partition's position has reached the end of the range that is being read."""
    return state.position is not None and state.until_offset is not None and state.position >= state.until_offset
