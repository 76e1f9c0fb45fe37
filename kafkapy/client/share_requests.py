"""The requests of a share session: ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafkapy.client.acknowledgements import AcknowledgementRange, Acknowledgements
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.share_session import SharePartition
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest

ByPartition = Mapping[SharePartition, Acknowledgements]
_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1
_FIRST_VERSION_WITH_RENEWALS = 2
_FIRST_VERSION_WITH_ACQUIRE_MODE = 2


class ShareRequests:
    """Builds the requests of one share consumer. `member_id` identifies the consumer in its group and sessions."""

    def __init__(self, config: ClientConfig, member_id: str) -> None:
        self._config = config
        self._member_id = member_id
        self.has_record_limit = config["share.acquire.mode"].lower() == "record_limit"

    def fetch(
        self,
        version: int,
        epoch: int,
        *,
        added: Iterable[SharePartition],
        forgotten: Iterable[SharePartition],
        acknowledgements: ByPartition,
        wants_records: bool,
    ) -> ShareFetchRequest:
        """Returns a ShareFetch request; without `wants_records` the broker responds to it at once, without records.

        `epoch` is that of the session; `added` and `forgotten` are the partitions to add to the session and to remove
        from it.
        """
        kind = ShareFetchRequest
        config = self._config
        listed: dict[SharePartition, Acknowledgements | None] = dict.fromkeys(added)
        listed.update(acknowledgements)
        request = kind(
            group_id=config["group.id"],
            member_id=self._member_id,
            share_session_epoch=epoch,
            max_wait_ms=config["fetch.max.wait.ms"] if wants_records else 0,
            min_bytes=config["fetch.min.bytes"] if wants_records else 0,
            max_bytes=config["fetch.max.bytes"] if wants_records else 0,
            topics=[
                kind.FetchTopic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in _by_topic(
                    listed,
                    lambda number, ranges: kind.FetchPartition(
                        partition_index=number, acknowledgement_batches=_batches(kind.AcknowledgementBatch, ranges)
                    ),
                ).items()
            ],
            forgotten_topics_data=[
                kind.ForgottenTopic(topic_id=each.topic_id, partitions=[each.topic_partition.partition])
                for each in forgotten
            ],
        )
        request.max_records = request.batch_size = config["max.poll.records"] if wants_records else 0
        if version >= _FIRST_VERSION_WITH_ACQUIRE_MODE:
            request.share_acquire_mode = _RECORD_LIMIT if self.has_record_limit else _BATCH_OPTIMIZED
        return request

    def acknowledge(self, version: int, epoch: int, acknowledgements: ByPartition) -> ShareAcknowledgeRequest:
        """Returns a ShareAcknowledge request; `epoch` is that of the session.

        Raises ApiError UNSUPPORTED_VERSION if acquisition locks are renewed and the broker does not support renewals.
        """
        kind = ShareAcknowledgeRequest
        renews = any(each.renewals for each in acknowledgements.values())
        if renews and version < _FIRST_VERSION_WITH_RENEWALS:
            raise ApiError(Error.UNSUPPORTED_VERSION, "The broker does not support the renewal of acquisition locks")
        request = kind(
            group_id=self._config["group.id"],
            member_id=self._member_id,
            share_session_epoch=epoch,
            topics=[
                kind.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in _by_topic(
                    acknowledgements,
                    lambda number, ranges: kind.AcknowledgePartition(
                        partition_index=number, acknowledgement_batches=_batches(kind.AcknowledgementBatch, ranges)
                    ),
                ).items()
            ],
        )
        if version >= _FIRST_VERSION_WITH_RENEWALS:
            request.is_renew_ack = renews
        return request


def _by_topic(
    listed: Mapping[SharePartition, Acknowledgements | None],
    make: Callable[[int, list[AcknowledgementRange]], Any],
) -> dict[bytes, list[Any]]:
    """Returns `make(partition, ranges)` for each partition, in lists by topic id.

    `ranges` are the acknowledged offsets of the partition; empty if it has no acknowledgements (None).
    """
    topics: dict[bytes, list[Any]] = {}
    for partition, acknowledgements in listed.items():
        ranges = [] if acknowledgements is None else acknowledgements.ranges()
        topics.setdefault(partition.topic_id, []).append(make(partition.topic_partition.partition, ranges))
    return topics


def _batches(make: Callable[..., Any], ranges: Iterable[AcknowledgementRange]) -> list[Any]:
    return [make(first_offset=each.first, last_offset=each.last, acknowledge_types=each.types) for each in ranges]
