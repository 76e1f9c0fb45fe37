"""Administration of the start offsets of share groups, which the share coordinator stores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kafkapy.coordinator.group.member_group import of_kind
from kafkapy.coordinator.group.share_group import ShareGroup, TopicPartitions
from kafkapy.coordinator.group.share_offset_changes import begin_alteration, begin_deletion, end_deletion
from kafkapy.coordinator.group.share_requests import ShareGroups
from kafkapy.coordinator.record import CoordinatorResult
from kafkapy.coordinator.runtime import ErrorResponder
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.replica.share.persister import UNINITIALIZED_START_OFFSET, SharePartitionKey, StateSummary
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.coordinator.group.group_shard import GroupShard

UNKNOWN = -1


class EndOffsets(Protocol):
    """The interface of an object that asks the leaders of partitions for their high watermarks."""

    def find(self, partition: TopicPartition, on_offset: Callable[[int], None]) -> None:
        """Calls `on_offset` with the high watermark of the partition, or -1 if it is unknown."""


class ShareOffset(NamedTuple):
    """The start offset of a share partition, and the number of records that the group has yet to process (`lag`)."""

    start_offset: int = UNINITIALIZED_START_OFFSET
    leader_epoch: int = 0
    lag: int = UNKNOWN


class ShareOffsets:
    """Serves the requests that describe, alter and delete the start offsets of share groups. Only the reactor's thread
    may use it."""

    def __init__(self, groups: ShareGroups, end_offsets: EndOffsets) -> None:
        self._groups = groups
        self._end_offsets = end_offsets

    # -- describing

    def initialized(self, group_id: str) -> Mapping[bytes, frozenset[int]]:
        """Returns the partitions of the group that have a state, by topic id. If the group does not exist or is not a
        share group, the result is empty.

        Raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS if this broker cannot serve the group.
        """
        try:
            return self._groups.existing(group_id).states.assignable
        except ApiError as error:
            if error.error is not Error.GROUP_ID_NOT_FOUND:
                raise
            return {}

    def describe(
        self, keys: Collection[SharePartitionKey], on_offsets: Callable[[Mapping[SharePartitionKey, ShareOffset]], None]
    ) -> None:
        """Calls `on_offsets` once with the start offset, leader epoch and lag of each share partition in `keys`. A
        partition without a state has the start offset -1."""
        found: dict[SharePartitionKey, ShareOffset] = {}

        def done(key: SharePartitionKey, offset: ShareOffset) -> None:
            found[key] = offset
            if len(found) == len(keys):
                on_offsets(found)

        if not keys:
            on_offsets(found)
        for key in keys:
            self._describe(key, lambda offset, key=key: done(key, offset))  # type: ignore[misc]

    def _describe(self, key: SharePartitionKey, on_offset: Callable[[ShareOffset], None]) -> None:
        """Reads the state of one share partition and then its high watermark, from which the lag is computed; then
        calls `on_offset`."""
        topic = self._groups.settings.image().topics.by_id.get(key.topic_id)

        def summarized(summary: StateSummary | None, error: Error) -> None:
            if summary is None or summary.start_offset == UNINITIALIZED_START_OFFSET or topic is None:
                on_offset(ShareOffset())
                return
            start, epoch, complete = summary.start_offset, summary.leader_epoch, summary.delivery_complete_count
            if complete < 0:
                on_offset(ShareOffset(start, epoch))
                return

            def ended(end_offset: int) -> None:
                lag = UNKNOWN if end_offset < 0 else max(0, end_offset - start - complete)
                on_offset(ShareOffset(start, epoch, lag))

            self._end_offsets.find(TopicPartition(topic.name, key.partition), ended)

        self._groups.persister.summarize(key, summarized)

    # -- altering

    def alter(
        self,
        group_id: str,
        offsets: Mapping[bytes, Mapping[int, int]],
        on_errors: Callable[[Mapping[tuple[bytes, int], Error]], None],
        refuse: ErrorResponder,
    ) -> None:
        """Sets the start offsets of partitions of a group that has no members. A group that does not exist is created.

        `offsets` maps each topic id to the new start offsets by partition id. Either `on_errors` is called with the
        error of each (topic id, partition id), or `refuse(error, message)` if the whole request is refused, for example
        because the group has members.
        """
        topics = self._groups.settings.image().topics.by_id
        wall_ms = self._groups.clock.wall_ms()
        named = {
            topic_id: TopicPartitions(topics[topic_id].name, frozenset(partitions), wall_ms)
            for topic_id, partitions in offsets.items()
        }

        def begun(state_epoch: int) -> None:
            self._groups.initialize(group_id, state_epoch, offsets, on_errors)

        def operation(shard: GroupShard) -> CoordinatorResult[int]:
            group = shard.groups.get(group_id)
            found = ShareGroup(group_id) if group is None else of_kind(group, ShareGroup)
            return begin_alteration(found, named, is_new=group is None)

        self._groups.coordinator.execute(group_id, operation, begun, refuse)

    # -- deleting

    def delete(
        self,
        group_id: str,
        topics: Mapping[bytes, str] | None,
        on_errors: Callable[[Mapping[bytes, Error]], None],
        refuse: ErrorResponder,
    ) -> None:
        """Deletes the states of topics of a group without members. `topics` maps ids to names; None means all topics.

        Either `on_errors` is called with the error of each topic id that has states, or `refuse(error, message)` if the
        whole request is refused, for example because the group has members.
        """
        by_id = self._groups.settings.image().topics.by_id

        def begin(shard: GroupShard) -> CoordinatorResult[dict[bytes, frozenset[int]]]:
            group = shard.shares.existing(group_id)
            counts = {each: len(by_id[each].partitions) for each in group.states.deleting if each in by_id}
            return begin_deletion(group, topics, counts)

        def begun(to_delete: Mapping[bytes, frozenset[int]]) -> None:
            self._delete_states(group_id, to_delete, on_errors)

        self._groups.coordinator.execute(group_id, begin, begun, refuse)

    def delete_all(self, group_ids: Sequence[str], on_done: Callable[[Mapping[str, Error]], None]) -> None:
        """Deletes all states of share groups that are about to be deleted; then calls `on_done`.

        `on_done` gets an error for each group whose states could not all be deleted; the caller must not delete such a
        group. If `group_ids` is empty, `on_done` is called at once.
        """
        if not group_ids:
            on_done({})
            return
        failed: dict[str, Error] = {}
        remaining = len(group_ids)

        def done(group_id: str, errors: Iterable[Error]) -> None:
            nonlocal remaining
            failed.update((group_id, error) for error in errors if error)
            remaining -= 1
            if not remaining:
                on_done(failed)

        for group_id in group_ids:
            self.delete(
                group_id,
                None,
                lambda errors, group_id=group_id: done(group_id, errors.values()),  # type: ignore[misc]
                lambda error, message, group_id=group_id: done(group_id, [error]),  # type: ignore[misc]
            )

    def _delete_states(
        self,
        group_id: str,
        to_delete: Mapping[bytes, Iterable[int]],
        on_errors: Callable[[Mapping[bytes, Error]], None],
    ) -> None:
        """Deletes the states of the partitions in `to_delete` (topic id -> partition ids), and removes the topics whose
        states were all deleted from the group; then calls `on_errors` with the error of each topic id, NONE after
        success."""
        errors = dict.fromkeys(to_delete, Error.NONE)
        keys = [
            SharePartitionKey(group_id, topic_id, number)
            for topic_id, numbers in to_delete.items()
            for number in numbers
        ]
        remaining = len(keys)

        def deleted(key: SharePartitionKey, error: Error) -> None:
            nonlocal remaining
            remaining -= 1
            if error:
                errors[key.topic_id] = error
            if not remaining:
                self._end_deletion(group_id, errors, on_errors)

        if not keys:
            self._end_deletion(group_id, errors, on_errors)
        for key in keys:
            self._groups.persister.delete(key, lambda error, message, key=key: deleted(key, error))  # type: ignore[misc]

    def _end_deletion(
        self, group_id: str, errors: Mapping[bytes, Error], on_errors: Callable[[Mapping[bytes, Error]], None]
    ) -> None:
        """Removes the topics whose error is NONE from the group; then calls `on_errors` with the error of each topic
        id."""
        done = {topic_id for topic_id, error in errors.items() if error is Error.NONE}
        if not done:
            on_errors(errors)
            return

        def failed(error: Error, message: str | None) -> None:
            on_errors(dict.fromkeys(errors, error))

        self._groups.coordinator.execute(
            group_id,
            lambda shard: end_deletion(shard.shares.existing(group_id), done),
            lambda response: on_errors(errors),
            failed,
        )
