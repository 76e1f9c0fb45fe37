"""The mirror: copies topics from one cluster to another, each record exactly once, and translates groups' offsets.

One transaction in the target contains the copies of the records of a poll, the positions in the source, and the pairs
of source offset and target offset. The positions are in a compacted topic of the target, so that a mirror that starts
again continues there. A second mirror with the same names fences the first.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy._core.client.record_accumulator import DeliveryFuture
from kafkapy.client.admin import Admin
from kafkapy.client.closing import Closing
from kafkapy.client.consumer import Consumer, ConsumerRecords
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.errors import AuthenticationError, RequestTimedOut, TransactionError, WakeupError
from kafkapy.client.producer import Producer
from kafkapy.client.reliable.chain_topics import ensure_topic, partition_count
from kafkapy.client.reliable.mirror_offsets import (
    PATH,
    OffsetMap,
    pack_position,
    pack_runs,
    parse_position_key,
    position_key,
    runs_of,
    unpack_position,
    unpack_runs,
)
from kafkapy.client.reliable.relay import IDLE_WAIT_S, RELAY_TIMEOUT_MS, admin_keys, consumer_keys, producer_keys
from kafkapy.client.reliable.takeover import NamedTransaction
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.errors import ApiError, Error
from kafkapy.types import ZERO_UUID, TopicPartition, uuid_to_string

log = logging.getLogger("kafkapy.client")

OFFSETS_RETENTION_MS = 14 * 24 * 3600 * 1000
_REFRESH_S = 10.0
_RETRY_PAUSE_S = 0.3
_LAST_COMMIT_S = 5.0
# Another attempt has the same result.
_PERMANENT = frozenset(
    (
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.UNSUPPORTED_VERSION,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.INVALID_RECORD,
        Error.POLICY_VIOLATION,
    )
)
_Copied = list[tuple[int, DeliveryFuture]]


class Mirror(Closing):
    """Copies the topics of one cluster whose names match a pattern. `run` is called by one thread, `stop` by any.

    source, target: the configurations of the clients of the cluster that is read and of the cluster with the copies.
    rename: the name of a copied topic, in which `{source}` and `{topic}` are replaced; "{topic}" keeps names.
    source_name, target_name: names of the clusters. If a target's name is given, copies have a header
        `kafkapy.mirror.path`, which names the clusters that they were copied from, and records with the target's name
        in this header are not copied. Two clusters can therefore mirror each other.
    groups: the pattern of groups whose offsets are translated; None for none.

    A copy is in the partition with the number of its original if the target topic has that many partitions, and
    otherwise in the partition that its key determines. In the second case offsets are not translated.
    """

    def __init__(
        self,
        source: Mapping[str, Any],
        target: Mapping[str, Any],
        include: str,
        *,
        exclude: str | None = None,
        rename: str = "{topic}",
        source_name: str = "source",
        target_name: str | None = None,
        groups: str | None = None,
        most_records: int = 2000,
    ) -> None:
        self._source, self._target = dict(source), dict(target)
        self._include = re.compile(include)
        self._exclude = None if exclude is None else re.compile(exclude)
        self._rename = rename
        self._source_name = source_name
        self._target_name = target_name
        self._groups = None if groups is None else re.compile(groups)
        self._base = f"__kafkapy_mirror.{source_name}"
        self._is_stopping = False
        self._producer: Producer | None = None
        self._counts_of_target: dict[str, int] = {}  # target topic -> partitions
        self._positions: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, str] = {}  # the source topic's id to which a position belongs, if known
        self._maps: dict[TopicPartition, OffsetMap] = {}
        self._refresh_at_s = 0.0
        self._transaction = NamedTransaction(f"the name {source_name} of the source (--source-name)")
        self.counts: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "max.poll.records": most_records,
                **consumer_keys(source),
                "enable.auto.commit": False,
                "key.deserializer": "bytes",
                "value.deserializer": "bytes",
                "allow.auto.create.topics": False,
            }
        )

    def stop(self) -> None:
        """Makes `run` return after the present transaction."""
        self._is_stopping = True
        self._consumer.wakeup()

    def close(self) -> None:
        """Closes the connections."""
        self._drop_producer()
        self._consumer.close()

    def run(self) -> None:
        """Mirrors until `stop` is called; waits for clusters that cannot be reached.

        `counts` has the numbers of records that were copied, of records that were skipped because they came from the
        target cluster, of translated offsets of groups (`groups`), and of committed and aborted transactions. Raises
        NameTaken if another mirror with the same name of the source has taken over, and errors that are not retriable,
        such as AuthenticationError.
        """
        while not self._is_stopping:
            try:
                self.run_once()
            except WakeupError:
                continue
            except AuthenticationError:
                raise
            except (ApiError, TransactionError) as error:
                self._transaction.check(error, self._producer)
                if isinstance(error, ApiError) and error.error in _PERMANENT:
                    raise
                self.counts["aborted"] += 1
                log.warning("The mirror continues at its last transaction: %s", error)
                self._drop_producer()
                time.sleep(_RETRY_PAUSE_S)
        if self._consumer.config["group.id"] is not None:
            self._consumer.forget_wakeup()  # `stop` may have been called while no method of the consumer waited
            with suppress(ApiError, WakeupError):
                self._consumer.commit(self._read_positions(), _LAST_COMMIT_S)

    def run_once(self) -> int:
        """Copies the records of one poll in one transaction; returns their number."""
        if self._producer is None:
            self._begin()
        if time.monotonic() >= self._refresh_at_s:
            self._refresh_at_s = time.monotonic() + _REFRESH_S
            self._refresh()
            self._synchronize_groups()
        if not self._consumer.assignment():
            time.sleep(_RETRY_PAUSE_S)
            return 0
        records = self._consumer.poll(IDLE_WAIT_S)
        if records:
            self._copy(records)
        return len(records)

    def translate(self, partition: TopicPartition, offset: int) -> int | None:
        """Returns the offset in the target's partition that corresponds to an offset of the source's partition.

        Returns None if no record of the partition has been copied, as far as the mirror knows.
        """
        found = self._maps.get(partition)
        return None if found is None else found.translate(offset)

    # Internal

    def _read_positions(self) -> dict[TopicPartition, int]:
        """Returns the positions to commit for the mirror's group at the source, so that tools can show its lag.

        The mirror itself continues at the positions that it has stored in the target.
        """
        assigned = self._consumer.assignment()
        return {partition: offset for partition, offset in self._positions.items() if partition in assigned}

    @property
    def _positions_topic(self) -> str:
        return f"{self._base}.positions"

    @property
    def _offsets_topic(self) -> str:
        return f"{self._base}.offsets"

    def _begin(self) -> None:
        """Takes over the transactional id, and reads the stored positions and offset maps from the target's topics."""
        with Admin(admin_keys(self._target)) as admin:
            ensure_topic(admin, self._positions_topic, 1, {"cleanup.policy": "compact"})
            ensure_topic(admin, self._offsets_topic, 1, {"retention.ms": str(OFFSETS_RETENTION_MS)})
        producer = Producer(
            {
                "transaction.timeout.ms": RELAY_TIMEOUT_MS * 3,
                "linger.ms": 20,
                "compression.type": "lz4",
                "max.block.ms": 15_000,
                **producer_keys(self._target),
                "transactional.id": f"kafkapy-mirror-{self._source_name}",
                "enable.idempotence": True,
                "acks": "all",
            }
        )
        try:
            producer.init_transactions()
            self._positions, self._topic_ids, self._maps = {}, {}, {}
            for each in scan(self._target, dict.fromkeys(all_partitions(self._target, self._positions_topic))):
                if each.value is not None:
                    partition = parse_position_key(each.key)
                    self._positions[partition], self._topic_ids[partition] = unpack_position(each.value)
            for each in scan(self._target, dict.fromkeys(all_partitions(self._target, self._offsets_topic))):
                offset_map = self._maps.setdefault(parse_position_key(each.key), OffsetMap())
                for run in unpack_runs(each.value):
                    offset_map.add(run)
        except BaseException:
            producer.close(0)
            raise
        self._producer = producer
        self._seek(self._consumer.assignment())
        self._refresh_at_s = 0.0

    def _seek(self, partitions: frozenset[TopicPartition] | set[TopicPartition]) -> None:
        for each in partitions:
            if each in self._positions:
                self._consumer.seek(each, self._positions[each])
            elif self._consumer.config["auto.offset.reset"] == "latest":
                self._consumer.seek_to_end([each])
            else:
                self._consumer.seek_to_beginning([each])

    def _refresh(self) -> None:
        """Finds the topics to copy; creates each missing target topic with as many partitions as its original."""
        with Admin(admin_keys(self._source)) as admin:
            topics = [name for name in admin.list_topics() if self._is_wanted(name)]
            described = admin.describe_topics(topics).values if topics else {}
        with Admin(admin_keys(self._target)) as admin:
            for name, description in described.items():
                copy = self.copy_of(name)
                count = len(description.partitions)
                present = partition_count(admin, copy)
                self._counts_of_target[copy] = present or ensure_topic(admin, copy, count, {})
        wanted = {
            TopicPartition(name, each.partition) for name, found in described.items() for each in found.partitions
        }
        added = wanted - self._consumer.assignment()
        if wanted != self._consumer.assignment():
            self._consumer.assign(wanted)
        ids = {name: uuid_to_string(found.topic_id) for name, found in described.items() if found.topic_id != ZERO_UUID}
        former = self._forget_former({each: ids.get(each.topic, "") for each in wanted})
        self._seek(added - former)
        if former:
            self._consumer.seek_to_beginning(former)

    def _forget_former(self, topic_ids: Mapping[TopicPartition, str]) -> set[TopicPartition]:
        """Forgets the positions in former topics, whose names now belong to others; returns their partitions.

        `topic_ids` has the present id of each partition's topic, "" if it is unknown.
        """
        former = set()
        for partition, topic_id in topic_ids.items():
            before = self._topic_ids.get(partition, "")
            if before and topic_id and before != topic_id:
                log.warning("%s was deleted and created again: it is copied from its beginning", partition.topic)
                self._positions.pop(partition, None)
                former.add(partition)
            self._topic_ids[partition] = topic_id or before
        return former

    def _is_wanted(self, topic: str) -> bool:
        is_excluded = self._exclude is not None and self._exclude.fullmatch(topic) is not None
        is_own = topic.startswith("__kafkapy_mirror.")
        return self._include.fullmatch(topic) is not None and not is_excluded and not is_own

    def copy_of(self, topic: str) -> str:
        """Returns the name of a topic's copy."""
        return self._rename.format(source=self._source_name, topic=topic)

    def _copy(self, records: ConsumerRecords) -> None:
        producer = self._producer
        assert producer is not None
        self._transaction.begin(producer)
        copied: dict[TopicPartition, _Copied] = {}
        positions: dict[TopicPartition, int] = {}
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            if record.offset < self._positions.get(partition, 0):
                self._topic_ids[partition] = ""  # the consumer has gone back to the beginning of a new topic already
            positions[partition] = record.offset + 1
            headers = record.headers
            if self._target_name is not None:
                path = (dict(headers).get(PATH) or b"").decode("utf-8", "replace").split(",")
                if self._target_name in path:
                    self.counts["skipped"] += 1
                    continue
                passed = ",".join([*(each for each in path if each), self._source_name])
                headers = (*(each for each in headers if each[0] != PATH), (PATH, passed.encode()))
            future = self._send(producer, record, headers)
            copied.setdefault(partition, []).append((record.offset, future))
        producer.flush()
        self._write_offsets(producer, copied, positions)
        while True:
            try:
                producer.commit_transaction()
                break
            except RequestTimedOut as error:
                if self._is_stopping:
                    raise
                log.warning("The commit is repeated: %s", error)
        self._positions.update(positions)
        self.counts["copied"] += sum(map(len, copied.values()))
        self.counts["transactions"] += 1
        if self._consumer.config["group.id"] is not None:
            self._consumer.commit_async(self._read_positions())

    def _send(self, producer: Producer, record: ConsumerRecord, headers: Any) -> DeliveryFuture:
        copy = self.copy_of(record.topic)
        number = record.partition if record.partition < self._counts_of_target[copy] else None
        timestamp = record.timestamp if record.timestamp >= 0 else None
        return producer.send(copy, record.value, record.key, partition=number, timestamp=timestamp, headers=headers)

    def _write_offsets(
        self, producer: Producer, copied: dict[TopicPartition, _Copied], positions: dict[TopicPartition, int]
    ) -> None:
        for partition, pairs in copied.items():
            results = [(offset, future.result()) for offset, future in pairs]
            if all(each.partition == partition.partition for _, each in results):
                runs = list(runs_of((offset, each.offset) for offset, each in results))
                producer.send(self._offsets_topic, pack_runs(runs), position_key(partition))
                offset_map = self._maps.setdefault(partition, OffsetMap())
                for run in runs:
                    offset_map.add(run)
        for partition, offset in positions.items():
            content = pack_position(offset, self._topic_ids.get(partition, ""))
            producer.send(self._positions_topic, content, position_key(partition))

    def _synchronize_groups(self) -> None:
        """Commits, in the target, the translated offsets of the source's groups.

        Leaves out the groups that have members in the target, and the partitions for which the group's offset there is
        the same or greater.
        """
        if self._groups is None:
            return
        with Admin(admin_keys(self._source)) as admin:
            names = [each.group_id for each in admin.list_groups() if self._groups.fullmatch(each.group_id)]
            committed = admin.list_group_offsets(names).values if names else {}
        if not names:
            return
        with Admin(admin_keys(self._target)) as admin:
            present = admin.list_group_offsets(names).values
            states = admin.describe_groups(names)
            for name, offsets in committed.items():
                description = states.values.get(name)
                if description is not None and description.members:
                    continue
                wanted: dict[TopicPartition, OffsetAndMetadata | int] = {}
                for partition, found in offsets.items():
                    translated = self.translate(partition, found.offset)
                    copy = TopicPartition(self.copy_of(partition.topic), partition.partition)
                    before = present.get(name, {}).get(copy)
                    if translated is not None and (before is None or before.offset < translated):
                        wanted[copy] = translated
                if wanted:
                    admin.alter_group_offsets(name, wanted).check()
                    self.counts["groups"] += len(wanted)

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)
