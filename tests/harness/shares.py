"""Share partitions over real logs. The test plays the share coordinator, the members and the clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.replica.share.in_flight import AckBatch
from kafkapy.replica.share.persister import PersistedState, SharePartitionKey
from kafkapy.replica.share.share_fetch import ShareFetch
from kafkapy.replica.share.share_partition import SharePorts
from kafkapy.replica.share.share_partitions import SharePartitions
from kafkapy.server.share_services import ShareServices
from kafkapy.types import TopicIdPartition
from tests.harness.handler import HandlerHarness
from tests.harness.replica import partition_image

GROUP = "g"


class Settings:
    """The settings of the group, which a test changes."""

    is_enabled = True
    max_sessions = 10

    def __init__(self) -> None:
        self.lock_ms, self.limit, self.max_locks = 30_000, 5, 2000
        self.reset, self.is_committed = "earliest", False

    def record_lock_duration_ms(self, group_id: str) -> int:
        return self.lock_ms

    def delivery_count_limit(self, group_id: str) -> int:
        return self.limit

    def max_record_locks(self, group_id: str) -> int:
        return self.max_locks

    def offset_reset(self, group_id: str) -> str:
        return self.reset

    def reads_committed(self, group_id: str) -> bool:
        return self.is_committed

    def may_renew(self, group_id: str) -> bool:
        return True


class Coordinator:
    """A coordinator whose response to a read is `state`, or an error if `error` is set.

    Writes are appended to `writes`, and are answered with `error`.
    """

    def __init__(self) -> None:
        self.state = PersistedState(1, -1)
        self.error = Error.NONE
        self.writes: list[Any] = []

    def read(self, key, leader_epoch, on_state) -> None:
        on_state(None if self.error else self.state, self.error)

    def write(self, key, change, on_done) -> None:
        self.writes.append(change)
        on_done(self.error, None)


class ShareHarness(HandlerHarness):
    """A share group that consumes partition 0 of the topic `t`."""

    def __init__(self, root, *, configs=None, overrides=None, **image) -> None:
        super().__init__(root, brokers=(1, 2), overrides=overrides)
        self.topic = self.put_topic("t", [partition_image(**image)], configs=configs)
        self.settings, self.coordinator = Settings(), Coordinator()
        ports = SharePorts(self.coordinator, self.settings, self.scheduler.schedule, self.clock)  # type: ignore[arg-type]
        self.shares = SharePartitions(self.manager, ports)
        groups: Any = SimpleNamespace(settings=self.settings)
        unused: Any = None
        self.services.shares = ShareServices(groups, unused, unused, unused, self.shares)

    @property
    def log(self) -> Any:
        return self.partition().log

    def share_partition(self) -> Any:
        """Returns the share partition, loading it if necessary, or the error because of which it cannot be loaded."""
        return self.shares.find_or_load(GROUP, TopicIdPartition(self.topic.topic_id, "t", 0))

    def share_fetch(self, member="a", *, wait_ms=0, min_bytes=1, max_records=500, is_wanted=True) -> list[Any]:
        """Sends a ShareFetch. Returns the list to which the results of the fetch are added."""
        found: list[Any] = []
        fetch = ShareFetch(
            member, wait_ms, min_bytes, 1 << 20, max_records, 500, False, lambda: is_wanted, found.extend
        )
        self.shares.fetch(fetch, [self.share_partition()])
        return found

    def acquire(self, member="a", **options) -> list[tuple[int, int, int]]:
        """Sends a ShareFetch that does not wait. Returns what the member has acquired: first and last offset, and
        delivery count."""
        (result,) = self.share_fetch(member, **options)
        assert result.error is Error.NONE, result
        return [tuple(each) for each in result.acquired]

    def acknowledge(self, member: str, *batches: tuple[int, int, list[int]]) -> Error:
        answers: list[Error] = []
        self.share_partition().acknowledge(
            member, [AckBatch(*each) for each in batches], lambda error, message: answers.append(error)
        )
        return answers[0]

    def window(self) -> list[tuple[int, int, str, int]]:
        """Returns the runs in flight: first and last offset, state and delivery count."""
        runs = self.share_partition().in_flight.runs
        return [(run.first, run.last, run.state.name, run.count) for run in runs]

    def key(self) -> SharePartitionKey:
        return SharePartitionKey(GROUP, self.topic.topic_id, 0)

    def append_at(self, timestamp_ms: int, value: bytes) -> None:
        """Appends a record with this timestamp."""
        builder = RecordBatchBuilder()
        builder.append(timestamp_ms, None, value)
        self.log.append_as_leader(bytearray(builder.build()), 0)
        self.log.high_watermark = self.log.log_end_offset
