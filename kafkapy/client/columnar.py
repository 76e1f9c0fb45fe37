"""Reading records as columns: Arrow record batches straight from fetched bytes, without a Python object per record.

`Consumer.poll_arrow` gives what a consumer is to read next; a `RangeReader` reads a range of offsets, for programs that
divide a topic themselves (Spark's executors). Both decode without the interpreter lock, and while they do so the next
fetch is on its way. An `ArrowBatch` is taken by whatever knows Arrow's PyCapsule interface, without a copy:
`pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`. kafkapy itself needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy.client.configuration import consumer_config
from kafkapy.client.fetcher import Fetcher
from kafkapy.client.network import Network
from kafkapy.client.subscription import PartitionState, Subscription
from kafkapy.errors import ApiError, ConfigError
from kafkapy.types import Clock, TopicPartition

# Spark's Kafka source has these columns; headers are the eighth.
PLAIN_COLUMNS = COLUMNS[:7]
MOST_ROWS = 65_536
MOST_BYTES = 64 << 20
# Fetches, metadata and look-ups do not wait for each other's answers.
_IN_FLIGHT_LIMIT = 100
# What suits one who reads a range as fast as it comes.
_RANGE_DEFAULTS = {"max.partition.fetch.bytes": 4 << 20, "fetch.max.bytes": 64 << 20, "auto.offset.reset": "none"}


def collect_columns(network: Network, fetcher: Fetcher, make: Callable[[], ArrowBatch]) -> list[ArrowBatch]:
    """What is there, as one batch of columns for each partition that has something; moves the positions.

    Raises what was found wrong, once, if there are no rows before it.
    """
    with network.seat:
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
    """Fills a batch from a partition's buffers, until it is full or nothing is there; moves the position.

    The seat is free while records are decoded. The networking then only adds buffers behind the first one, or drops
    them all, which its `generation` tells.
    """
    while not batch.is_full and len(batch) < batch.max_rows:
        with network.seat:
            if not state.buffers or state.is_paused:
                break
            fetched, generation, is_last = state.buffers[0], state.generation, len(state.buffers) == 1
        if is_last:
            network.try_drive()  # the next fetch leaves before this one is decoded
        fetched.fill(batch)
        with network.seat:
            if generation != state.generation:
                break
            state.take_from(fetched)
    return batch


class RangeReader:
    """Reads ranges of offsets, one after the other, by connections of its own.  For one thread at a time.

    `properties` are a consumer's keys; a group is of no use. With `auto.offset.reset` none, as it is unless it is set,
    a range that the log no longer has, or not yet, raises NoOffsetForPartition.
    """

    def __init__(
        self, properties: Mapping[str, Any] | None = None, *, clock: Clock | None = None, **settings: Any
    ) -> None:
        given = {**(properties or {}), **{key.replace("_", "."): value for key, value in settings.items()}}
        if given.get("group.id") is not None:
            raise ConfigError("group.id has no place here: ranges are read without a group")
        config = consumer_config({**_RANGE_DEFAULTS, **given})
        self._network = Network(config, in_flight_limit=_IN_FLIGHT_LIMIT, clock=clock)
        self._network.metadata.allow_creation = False
        self._subscription = Subscription()
        self._fetcher = Fetcher(self._network, self._subscription, config)
        self._state: PartitionState | None = None  # of the range that is read, or was read last
        self._network.tasks.append(self._fetcher)
        self._network.start()

    @property
    def position(self) -> int | None:
        """Behind the last record that the last range gave: where to go on after an error. None before the first one."""
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
        """The records from offset `start` up to, not including, `until`, as batches of at most `max_rows` rows and
        about `max_bytes`. The columns are some of `arrow_batch.COLUMNS`; none at all counts rows.

        Fetches go on while a batch is worked on. Ends when the position has reached `until`, also if the records there
        are gone (compaction) or are not to be seen (aborted, control). TimeoutError when nothing comes for `timeout`
        seconds; ApiError for damage; NoOffsetForPartition.
        """
        chosen = tuple(columns)
        state = self._begin(TopicPartition(*partition), start, until)
        try:
            while state.position is None or state.position < until:
                batch = ArrowBatch(chosen, max_rows=max_rows, max_bytes=max_bytes, timestamp_unit=timestamp_unit)
                if len(fill_columns(self._network, state, batch)):
                    yield batch
                else:
                    self._wait(state, until, timeout)
        finally:
            with self._network.seat:
                self._subscription.assign_manually(())

    def close(self) -> None:
        """Ends the connections. May be called again."""
        self._network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, where: TopicPartition, start: int, until: int) -> PartitionState:
        with self._network.seat:
            self._fetcher.errors.clear()
            self._subscription.assign_manually(())
            self._subscription.assign_manually([where])
            self._network.metadata.set_topics({where.topic})
            state = self._subscription.state(where)
            state.jump(start)
            state.until_offset = until
        self._state = state
        return state

    def _wait(self, state: PartitionState, until: int, timeout: float) -> None:
        """Until something has come, or the end is reached; raises what the fetcher complains of."""

        def is_there() -> bool:
            return self._fetcher.has_records or (state.position is not None and state.position >= until)

        if not self._network.wait_until(is_there, timeout):
            raise TimeoutError(f"Nothing came within {timeout} s: position {state.position} of a range up to {until}")
        if not state.buffers:
            self._fetcher.raise_error()
