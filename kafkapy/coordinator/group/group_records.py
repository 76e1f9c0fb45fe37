"""Writes and replays the records in `__consumer_offsets` that consumer, share and streams groups have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafkapy.coordinator.group.consumer_member import LEAVE_EPOCH
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import decode_coordinator_key, decode_coordinator_value, encode_coordinator

# (group, key, value or None): applies a record to its group. Returns True if the record deletes the group.
Replay = Callable[[Any, Any, Any], object]


# -- writing


def group_record(key: Any, value: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), encode_coordinator(value, 0))


def tombstone(key: Any) -> CoordinatorRecord:
    return CoordinatorRecord(encode_coordinator(key), None)


def tombstones(key_classes: Iterable[Any], **ids: str) -> list[CoordinatorRecord]:
    """Returns one tombstone for each key class, in the order of `key_classes`; `ids` are the fields of every key."""
    return [tombstone(key_class(**ids)) for key_class in key_classes]


# -- reading


def replay(replays: Mapping[int, Replay], group: Any, kind: int, key_bytes: bytes, value_bytes: bytes | None) -> bool:
    """Applies a record of type `kind` to its group. Returns True if the record is the tombstone that deletes the group.

    `replays` maps each record type to a function that is called with the group, the decoded key and the decoded value
    (None for a tombstone). A record of another type has no effect.
    """
    apply = replays.get(kind)
    if apply is None:
        return False
    value = None if value_bytes is None else decode_coordinator_value(kind, value_bytes)
    return apply(group, decode_coordinator_key(key_bytes), value) is True


def replay_group_epoch(group: Any, key: Any, value: Any) -> bool:
    if value is None:
        return True
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    return False


def replay_target_epoch(group: Any, key: Any, value: Any) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def target_replay(target_from: Callable[[Any], Any]) -> Replay:
    """Returns a function that applies the record of a member's target assignment, or its tombstone, to a group.

    `target_from` is called with the decoded value of the record and returns the target.
    """

    def apply(group: Any, key: Any, value: Any) -> None:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = target_from(value)

    return apply


def subscription_replay(member_class: Any, fields_from: Callable[[Any], Mapping[str, Any]]) -> Replay:
    """Returns a function that applies the record of a member's subscription to a group; a tombstone removes the member.

    `fields_from` is called with the decoded value of the record and returns the fields of `member_class` to set.
    """

    def apply(group: Any, key: Any, value: Any) -> None:
        if value is None:
            group.remove(key.member_id)
        else:
            old = group.members.get(key.member_id) or member_class(key.member_id)
            group.put(old._replace(**fields_from(value)))

    return apply


def current_replay(
    member_class: Any, fields_from: Callable[[Any], Mapping[str, Any]], no_fields: Mapping[str, Any]
) -> Replay:
    """Returns a function that applies the record of a member's current assignment to a group.

    `fields_from` is called with the decoded value of the record and returns the fields of `member_class` to set, except
    the epochs, which are set in any case. A tombstone sets the epochs to -1, and the fields `no_fields`.
    """

    def apply(group: Any, key: Any, value: Any) -> None:
        old = group.members.get(key.member_id)
        if value is not None:
            epochs = {"member_epoch": value.member_epoch, "previous_member_epoch": value.previous_member_epoch}
            group.put((old or member_class(key.member_id))._replace(**epochs, **fields_from(value)))
        elif old is not None:
            epochs = dict.fromkeys(("member_epoch", "previous_member_epoch"), LEAVE_EPOCH)
            group.put(old._replace(**epochs, **no_fields))

    return apply


def with_assignment_epochs(entry: Any, member_epoch: int) -> dict[int, int]:
    """Returns the epoch in which each partition of a record's entry was assigned, by partition id.

    Records of Apache Kafka before 4.3 have no assignment epochs; `member_epoch`, the member epoch in the same record,
    is then the epoch of every partition.
    """
    epochs = entry.assignment_epochs
    if epochs is None or len(epochs) != len(entry.partitions):
        epochs = [member_epoch] * len(entry.partitions)
    return dict(zip(entry.partitions, epochs, strict=True))
