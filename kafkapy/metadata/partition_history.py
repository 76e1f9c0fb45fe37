"""The history of one partition: its leaders and ISRs, and the record and the reason of each change.

The functions have no side effects. Records do not name their reasons. The reasons are derived from the change itself
and from the records of brokers in the same batch, because the controller writes the changes of one decision together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafkapy.metadata.history import LoggedRecord, MetadataHistory
from kafkapy.metadata.image import TOPIC_RESOURCE, MetadataImage
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.metadata.topics_image import DIRECTORY_LOST, NO_LEADER, RECOVERING, PartitionImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import uuid_to_string


class BrokerEvent(NamedTuple):
    """A record about a broker, and its meaning in words, such as "broker 1 was fenced"."""

    broker_id: int
    record: LoggedRecord
    text: str


class PartitionEvent(NamedTuple):
    """One event in a partition's history.

    `what` says what changed; `why` is the reason, or "" if the records do not show one; `because` is the record that
    caused the change, or None. `partition` is the state after the event, or None if the event does not change the
    partition or deletes it.
    """

    record: LoggedRecord
    what: str
    why: str = ""
    because: LoggedRecord | None = None
    partition: PartitionImage | None = None


def explain_partition(history: MetadataHistory, topic: str, partition: int) -> Iterator[PartitionEvent]:
    """Yields the events that concern a partition, in order: changes of the partition, of its brokers and of the
    controller.

    A topic that was deleted and created again has one history.
    """
    return _Explanation(history, topic, partition).events()


class _Explanation:
    """Reads a history once and makes the events of one partition from it."""

    def __init__(self, history: MetadataHistory, topic: str, partition: int) -> None:
        self._history = history
        self._topic = topic
        self._number = partition
        self._image: MetadataImage = history.base
        self._loader = MetadataLoader(history.base)
        self._state = history.base.topics.partition(topic, partition)
        self._topic_id = _topic_id(history.base, topic)
        self._brokers_of_batch = _brokers_by_batch(history)

    def events(self) -> Iterator[PartitionEvent]:
        for record in self._history.effective():
            if record.is_control:
                yield from self._control(record)
                continue
            explain = _EXPLANATIONS.get(type(record.message).__name__)
            if explain is None:
                self._loader.replay(record.message)
            else:
                yield from explain(self, record)

    def _replay(self, record: LoggedRecord) -> None:
        """Applies the record, and sets `_image` (the metadata) and `_state` (the partition) to the state after it."""
        self._loader.replay(record.message)
        self._image = self._loader.delta.to_image(record.offset + 1, record.epoch)
        self._loader = MetadataLoader(self._image)
        self._state = self._image.topics.partition(self._topic, self._number)

    def _control(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        leader = getattr(record.message, "leader_id", None)
        if leader is not None:
            yield PartitionEvent(record, f"controller {leader} became active in epoch {record.epoch}")

    def _topic_created(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        if record.message.name == self._topic:
            self._topic_id = record.message.topic_id
            yield PartitionEvent(record, f"topic {self._topic} was created, id {uuid_to_string(self._topic_id)}")
        self._loader.replay(record.message)

    def _topic_removed(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        self._loader.replay(record.message)
        if record.message.topic_id == self._topic_id:
            self._topic_id = b""
            self._state = None
            yield PartitionEvent(record, f"topic {self._topic} was deleted")

    def _partition_created(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        if record.message.topic_id != self._topic_id or record.message.partition_id != self._number:
            self._loader.replay(record.message)
            return
        self._replay(record)
        if self._state is not None:
            yield PartitionEvent(record, f"created: {describe_partition(self._state)}", partition=self._state)

    def _partition_changed(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        before = self._state
        if record.message.topic_id != self._topic_id or record.message.partition_id != self._number or before is None:
            self._loader.replay(record.message)
            return
        self._replay(record)
        if self._state is not None:
            why, because = self._reason(record, before, self._state)
            yield PartitionEvent(record, describe_change(before, self._state), why, because, self._state)

    def _elr_cleared(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        before = self._state
        self._replay(record)
        if before is not None and self._state is not None and before != self._state:
            why = "min.insync.replicas was changed"
            yield PartitionEvent(record, describe_change(before, self._state), why, None, self._state)

    def _config(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        self._loader.replay(record.message)
        message = record.message
        if (message.resource_type, message.resource_name) == (TOPIC_RESOURCE, self._topic):
            what = f"{message.name} was removed" if message.value is None else f"{message.name}={message.value}"
            yield PartitionEvent(record, f"configuration of the topic: {what}")

    def _broker(self, record: LoggedRecord) -> Iterator[PartitionEvent]:
        events = self._brokers_of_batch[record.base_offset]
        self._loader.replay(record.message)
        if self._state is None:
            return
        for event in events:
            if event.record is record and event.broker_id in self._state.replicas:
                yield PartitionEvent(record, event.text)

    def _reason(
        self, record: LoggedRecord, before: PartitionImage, after: PartitionImage
    ) -> tuple[str, LoggedRecord | None]:
        """Returns in words why `record` changed the partition ("" if unknown), and the record about a broker that
        caused the change.

        The second result is None if the change was not caused by a record about a broker, such as its fencing.
        """
        nearby = self._brokers_of_batch[record.base_offset]
        involved = {before.leader, after.leader}.union(
            set(before.isr) ^ set(after.isr), set(before.elr) ^ set(after.elr)
        )
        cause = next((each for each in nearby if each.broker_id in involved), None)
        if before.replicas != after.replicas or before.adding_replicas != after.adding_replicas:
            return _reassignment(before, after), None
        election = _election(before, after, record.message.leader)
        if cause is not None:
            return "; ".join(filter(None, (cause.text, election))), cause.record
        if election:
            return election, None
        return _in_sync_change(before, after), None


def _topic_id(image: MetadataImage, topic: str) -> bytes:
    found = image.topics.by_name.get(topic)
    return b"" if found is None else found.topic_id


def describe_partition(state: PartitionImage) -> str:
    """Returns the state of a partition in words: leader, leader epoch, ISR, replicas, and other replica lists."""
    parts = [
        f"leader {_leader(state)} (epoch {state.leader_epoch})",
        f"ISR {_ids(state.isr)}",
        f"replicas {_ids(state.replicas)}",
    ]
    if state.adding_replicas:
        parts.append(f"adding {_ids(state.adding_replicas)}")
    if state.removing_replicas:
        parts.append(f"removing {_ids(state.removing_replicas)}")
    if state.elr:
        parts.append(f"eligible leaders {_ids(state.elr)}")
    if state.last_known_elr:
        parts.append(f"last known leader {_ids(state.last_known_elr)}")
    if state.leader_recovery_state == RECOVERING:
        parts.append("recovering from an unclean election")
    return ", ".join(parts)


def describe_change(before: PartitionImage, after: PartitionImage) -> str:
    """Returns in words what differs between two states of a partition, such as "leader 1 -> 2, ISR 1,2 -> 2"."""
    parts = []
    if before.leader != after.leader:
        parts.append(f"leader {_leader(before)} -> {_leader(after)}")
    if before.leader_epoch != after.leader_epoch:
        parts.append(f"leader epoch {before.leader_epoch} -> {after.leader_epoch}")
    for name, old, new in (
        ("ISR", before.isr, after.isr),
        ("replicas", before.replicas, after.replicas),
        ("adding", before.adding_replicas, after.adding_replicas),
        ("removing", before.removing_replicas, after.removing_replicas),
        ("eligible leaders", before.elr, after.elr),
        ("last known leader", before.last_known_elr, after.last_known_elr),
    ):
        if old != new:
            parts.append(f"{name} {_ids(old)} -> {_ids(new)}")
    if before.leader_recovery_state != after.leader_recovery_state:
        is_recovering = after.leader_recovery_state == RECOVERING
        parts.append("recovery begins" if is_recovering else "recovery has ended")
    parts += _moved(before, after)
    return ", ".join(parts) or "no change"


def _moved(before: PartitionImage, after: PartitionImage) -> list[str]:
    old = dict(zip(before.replicas, before.directories, strict=True))
    texts = []
    for replica, directory in zip(after.replicas, after.directories, strict=True):
        if replica in old and old[replica] != directory:
            place = "a lost directory" if directory == DIRECTORY_LOST else f"directory {uuid_to_string(directory)}"
            texts.append(f"replica {replica} in {place}")
    return texts


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def _leader(state: PartitionImage) -> str:
    return "none" if state.leader == NO_LEADER else str(state.leader)


def _reassignment(before: PartitionImage, after: PartitionImage) -> str:
    if not (before.adding_replicas or before.removing_replicas):
        return "a reassignment began"
    if after.adding_replicas or after.removing_replicas:
        return "a reassignment was replaced"
    if set(after.replicas) == set(before.replicas) - set(before.adding_replicas):
        return "the reassignment was cancelled"
    return "the reassignment was completed: the added replicas are in sync"


def _election(before: PartitionImage, after: PartitionImage, named: int) -> str:
    """Returns, in words, how the leader of the state `after` was chosen; "" if there was no election.

    `before` is the state before the record, and `named` is the leader that the record names. If `named` is also the
    leader of `before`, this leader was elected again, in a new epoch.
    """
    leader = after.leader
    if leader == before.leader:
        return "" if named != leader or leader == NO_LEADER else "the same leader in a new epoch"
    if leader == NO_LEADER:
        return "no replica in the ISR can lead" if before.isr else "no eligible replica is available"
    if leader in before.isr:
        if leader == after.preferred_replica and before.leader in after.isr:
            return f"election of the preferred leader {leader}"
        return f"{leader} is the first available replica in the ISR"
    if leader in before.elr:
        return f"{leader} is an eligible leader replica: it has all committed records"
    if leader in before.last_known_elr:
        return f"unclean election of the last known leader {leader}: records may be lost"
    return f"unclean election: {leader} was not in sync, records may be lost"


def _in_sync_change(before: PartitionImage, after: PartitionImage) -> str:
    left, joined = set(before.isr) - set(after.isr), set(after.isr) - set(before.isr)
    parts = []
    if left:
        parts.append(f"leader {_leader(after)} reported that {_ids(sorted(left))} had not caught up in time")
    if joined:
        parts.append(f"leader {_leader(after)} reported that {_ids(sorted(joined))} had caught up")
    return "; ".join(parts)


def broker_event(record: LoggedRecord) -> BrokerEvent | None:
    """Returns the meaning of a record about a broker in words, with the broker; None if the record is not about a
    broker."""
    message = record.message
    kind = type(message).__name__
    if kind == "RegisterBrokerRecord":
        return BrokerEvent(message.broker_id, record, f"broker {message.broker_id} registered (a new start)")
    if kind == "UnregisterBrokerRecord":
        return BrokerEvent(message.broker_id, record, f"broker {message.broker_id} was unregistered")
    if kind == "FenceBrokerRecord":
        return BrokerEvent(message.id, record, f"broker {message.id} was fenced")
    if kind == "UnfenceBrokerRecord":
        return BrokerEvent(message.id, record, f"broker {message.id} was unfenced")
    if kind == "BrokerRegistrationChangeRecord":
        return BrokerEvent(message.broker_id, record, f"broker {message.broker_id} {_registration_change(message)}")
    return None


def _registration_change(message: Any) -> str:
    parts = []
    if message.fenced > 0:
        parts.append("was fenced: it had stopped, or its heartbeats had")
    elif message.fenced < 0:
        parts.append("was unfenced")
    if message.in_controlled_shutdown > 0:
        parts.append("asked for a controlled shutdown")
    if message.log_dirs:
        parts.append(f"has {len(message.log_dirs)} log directories online")
    if message.cordoned_log_dirs is not None:
        parts.append(f"has {len(message.cordoned_log_dirs) or 'no'} cordoned log directories")
    return " and ".join(parts) or "changed its registration"


def _brokers_by_batch(history: MetadataHistory) -> dict[int, list[BrokerEvent]]:
    found: dict[int, list[BrokerEvent]] = defaultdict(list)
    for record in history.records:
        event = None if record.is_control else broker_event(record)
        if event is not None:
            found[record.base_offset].append(event)
    return found


_Explain = Callable[[_Explanation, LoggedRecord], Iterator[PartitionEvent]]
_EXPLANATIONS: dict[str, _Explain] = {
    "TopicRecord": _Explanation._topic_created,
    "RemoveTopicRecord": _Explanation._topic_removed,
    "PartitionRecord": _Explanation._partition_created,
    "PartitionChangeRecord": _Explanation._partition_changed,
    "ClearElrRecord": _Explanation._elr_cleared,
    "ConfigRecord": _Explanation._config,
    "RegisterBrokerRecord": _Explanation._broker,
    "UnregisterBrokerRecord": _Explanation._broker,
    "FenceBrokerRecord": _Explanation._broker,
    "UnfenceBrokerRecord": _Explanation._broker,
    "BrokerRegistrationChangeRecord": _Explanation._broker,
}
