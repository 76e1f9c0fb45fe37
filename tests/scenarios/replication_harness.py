"""Replicas of one partition on several nodes: real logs and partitions, the real fetcher, and one fetch at a time.

    lead NODE epoch=N [isr=A,B]   the controller's change; every running node applies it
    produce NODE VALUE...         one batch for each value, with acks=1
    fetch NODE                    one request of the node's fetcher, and what its leader responds
    send NODE                     the same, but the response is lost
    kill NODE | start NODE        a process dies, and starts again with its log
    start NODE as-before-epochs   ... as a follower did before KIP-101: it truncates to its high watermark
    lose NODE OFFSET              the killed node's disk loses its records from an offset on
    delete NODE OFFSET            DeleteRecords and retention on a leader
    unclean NODE epoch=N          the same as lead; a reminder that records may be lost

Every command prints the replicas that it has changed: values | high watermark | leader epochs with start offsets.
"""

from __future__ import annotations

import re
from pathlib import Path

from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataCache
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.replica.fetch import FetchParams, FetchPartition
from kafkapy.replica.fetcher.fetch_session import FetchPlan
from kafkapy.replica.fetcher.followed_partition import Phase
from kafkapy.replica.fetcher.leader_fetcher import LeaderFetcher, LeaderOffset, OffsetQuery
from kafkapy.replica.fetcher.partition_log import AppendCounters, PartitionLog
from kafkapy.replica.list_offsets import LATEST_TIMESTAMP
from kafkapy.replica.partition import Partition
from kafkapy.replica.replica_context import ReplicaContext
from kafkapy.types import TopicPartition
from tests.harness.log import LogHarness, batch, values_of
from tests.harness.replica import ScriptedController, broker
from tests.mock_scheduler import MockScheduler

NAME = TopicPartition("t", 0)
TOPIC_ID = b"t" * 16
BACKOFF_MS = 1000


class Node:
    """One broker with its replica; `partition` is None while the process does not run."""

    def __init__(self, root: Path, node_id: int, metadata: MetadataCache) -> None:
        root.mkdir()
        self.node_id = node_id
        self.metadata = metadata
        self.logs = LogHarness(root)
        self.scheduler = MockScheduler(self.logs.clock)
        self.fetcher = LeaderFetcher(BACKOFF_MS)
        self.partition: Partition | None = None
        self.high_watermark = 0
        self.lost_from: int | None = None
        self.start(0)

    def start(self, high_watermark: int) -> None:
        log = self.logs.log()
        if self.lost_from is not None:
            log.truncate_to(self.lost_from)
            self.lost_from = None
        log.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        context = ReplicaContext(
            self.node_id, self.logs.clock, self.metadata, self.scheduler.schedule, ScriptedController(), 30000
        )
        self.partition = Partition(NAME, TOPIC_ID, log, context)
        self.fetcher = LeaderFetcher(BACKOFF_MS)

    def kill(self) -> None:
        assert self.partition is not None
        self.high_watermark = self.partition.log.high_watermark
        self.partition.log.close()
        self.partition = None

    def describe(self) -> str:
        if self.partition is None:
            return "down"
        log = self.partition.log
        start = log.log_start_offset
        found = values_of(log.read(start, 1 << 20)) if log.log_end_offset > start else []
        values = " ".join(value.decode() for offset, value in found if offset >= start)
        first = f"from {start}: " if start else ""
        epochs = " ".join(f"{epoch}@{offset}" for epoch, offset in log.leader_epochs.entries)
        return f"{first}{values or 'empty'} | high {log.high_watermark} | epochs {epochs or 'none'}"


class ReplicationHarness:
    def __init__(self, root: Path, names: str) -> None:
        self.ids = {name: number for number, name in enumerate(names, 1)}
        brokers = {number: broker(number) for number in self.ids.values()}
        metadata = MetadataCache(EMPTY_IMAGE._replace(brokers=brokers))
        self.nodes = {name: Node(root / name, number, metadata) for name, number in self.ids.items()}
        self.image: PartitionImage | None = None
        self.partition_epoch = 0
        self.shown: dict[str, str] = {}

    def run(self, command: str) -> list[str]:
        """Returns the lines that the command causes."""
        name, *words = command.split()
        lines = getattr(self, f"do_{name}")(*words) or []
        for node_name, node in self.nodes.items():
            described = node.describe()
            if self.shown.get(node_name, "empty | high 0 | epochs none") != described:
                lines.append(f"{node_name}: {described}")
            self.shown[node_name] = described
        return lines

    def do_lead(self, name: str, *options: str) -> None:
        given = dict(option.split("=") for option in options)
        running = [each for each, node in self.nodes.items() if node.partition is not None]
        isr = given["isr"].split(",") if "isr" in given else running
        replicas = tuple(self.ids.values())
        self.partition_epoch += 1
        self.image = PartitionImage(
            replicas,
            (bytes(16),) * len(replicas),
            tuple(self.ids[each] for each in isr),
            (),
            (),
            (),
            (),
            self.ids[name],
            0,
            int(given["epoch"]),
            self.partition_epoch,
        )
        for each in running:
            self._apply(self.nodes[each])

    do_unclean = do_lead

    def do_start(self, name: str, mode: str = "") -> None:
        node = self.nodes[name]
        node.start(node.high_watermark)
        if mode == "as-before-epochs":
            assert node.partition is not None
            node.partition.log.leader_epochs.clear()
        else:
            assert not mode
        self._apply(node)

    def _apply(self, node: Node) -> None:
        assert self.image is not None
        partition = node.partition
        assert partition is not None
        if self.image.leader == node.node_id:
            node.fetcher.release(NAME)
            partition.make_leader(self.image, node.logs.clock.monotonic_ms())
        else:
            partition.make_follower(self.image)
            node.fetcher.follow(NAME, TOPIC_ID, self.image.leader_epoch, PartitionLog(partition, AppendCounters()))

    def do_produce(self, name: str, *values: str) -> list[str]:
        partition = self.nodes[name].partition
        assert partition is not None
        for value in values:
            try:
                partition.append_records_to_leader(batch(value=value.encode()), 1, from_client=True)
            except ApiError as error:
                return [f"refused: {error.error.name}"]
        return []

    def do_delete(self, name: str, offset: str) -> None:
        partition = self.nodes[name].partition
        assert partition is not None
        partition.delete_records_on_leader(int(offset))

    def do_kill(self, name: str) -> None:
        self.nodes[name].kill()

    def do_lose(self, name: str, offset: str) -> None:
        self.nodes[name].lost_from = int(offset)

    def do_wait(self, name: str, milliseconds: str) -> None:
        self.nodes[name].logs.clock.advance(int(milliseconds))

    def do_send(self, name: str) -> list[str]:
        return self.do_fetch(name, is_lost=True)

    def do_fetch(self, name: str, *, is_lost: bool = False) -> list[str]:
        """Plays one request and its response."""
        node = self.nodes[name]
        assert self.image is not None
        monotonic_ms = node.logs.clock.monotonic_ms()
        plan = node.fetcher.next_request(monotonic_ms)
        if plan is None:
            failed = any(state.phase is Phase.FAILED for state in node.fetcher.partitions.values())
            return [f"{name} waits for metadata" if failed else f"{name} waits for its back-off"]
        leader = next(each for each in self.nodes.values() if each.node_id == self.image.leader).partition
        if leader is None:
            node.fetcher.on_failure(monotonic_ms)
            return ["connection refused"]
        if isinstance(plan, OffsetQuery):
            end = plan.timestamp == LATEST_TIMESTAMP
            offset = leader.log.log_end_offset if end else leader.log.log_start_offset
            node.fetcher.on_offsets(plan, {NAME: LeaderOffset(Error.NONE, offset)}, monotonic_ms)
            return [f"{'end' if end else 'start'} of the leader's log: {offset}"]
        position = node.fetcher._session.held.get(NAME)
        if position is None:
            node.fetcher.on_fetched(FetchResponse(session_id=0), monotonic_ms)
            return ["nothing to fetch"]
        data, line = read(leader, node.node_id, plan, position)
        if is_lost:
            node.fetcher.on_failure(monotonic_ms)
            return [f"offset {position.fetch_offset} -> lost"]
        topics = [FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
        node.fetcher.on_fetched(FetchResponse(session_id=0, responses=topics), monotonic_ms)
        asked = f"offset {position.fetch_offset}, epoch {position.last_fetched_epoch}"
        return [f"{asked} -> {line}"]


def read(leader, node_id, plan, position):
    """Returns the leader's response to a fetch, and a line that describes it."""
    assert isinstance(plan, FetchPlan)
    params = FetchParams(replica_id=node_id, replica_epoch=100 + node_id, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
    asked = FetchPartition(
        "t", 0, position.fetch_offset, 1 << 20, topic_id=TOPIC_ID, current_leader_epoch=position.leader_epoch,
        last_fetched_epoch=position.last_fetched_epoch, log_start_offset=position.log_start_offset,
    )  # fmt: skip
    try:
        result, fetched = leader.fetch_records(params, asked, 1 << 20, min_one_message=True, update_state=True)
    except ApiError as error:
        return FetchResponse.PartitionData(partition_index=0, error_code=error.error), error.error.name
    records = (
        b"" if fetched is None else fetched.records if isinstance(fetched.records, bytes) else fetched.records.read()
    )
    data = FetchResponse.PartitionData(
        partition_index=0,
        high_watermark=result.high_watermark,
        log_start_offset=result.log_start_offset,
        records=memoryview(records),
    )
    if result.diverging_epoch is not None:
        end = result.diverging_epoch
        data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
        return data, f"epoch {end.epoch} ends at {end.offset}"
    count = 0 if fetched is None else len(values_of(fetched))
    return data, f"{count} record{'s' * (count != 1)}, high {result.high_watermark}"


def nodes_of(transcript: list[str]) -> str:
    """Returns the names of the nodes that the transcript uses, as one letter each."""
    return "".join(sorted({letter for line in transcript for letter in re.findall(r"\b[A-E]\b", line)}))
