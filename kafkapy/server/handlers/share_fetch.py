"""ShareFetch 1-2 and ShareAcknowledge 1-2: the records of share groups (KIP-932).

A session (`server/share_sessions`) has the partitions that a member fetches from this broker. A ShareFetch first
acknowledges records, then acquires others. The response is sent when both are done. In the first epoch of the session
it has all partitions; later it has only the partitions with records, an error or an acknowledgement.

Version notes: from version 2 on consumers may renew locks (KIP-1222) and acquire an exact number of records (KIP-1206).

Permissions: Read on the group, and Read on each topic.

Not implemented: dead letter queues (KIP-1191), which Apache Kafka 4.3 does not have either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kafkapy.replica.share.in_flight import AckBatch, AckType
from kafkapy.replica.share.persister import SharePartitionKey
from kafkapy.replica.share.share_fetch import ShareFetch, ShareResult
from kafkapy.replica.share.share_partition import SharePartition
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.authorization import check_group, denied_topics
from kafkapy.server.fetch_session import FINAL_EPOCH
from kafkapy.server.fetch_session_cache import INITIAL_EPOCH
from kafkapy.server.handlers.share_groups import check_member_id, check_share_groups
from kafkapy.server.leader_hints import LeaderHint, LeaderHints
from kafkapy.server.request_context import RequestContext
from kafkapy.server.share_sessions import PartitionId, SessionKey, ShareSession
from kafkapy.types import TopicIdPartition, TopicPartition

_RECORD_LIMIT = 1  # the ShareAcquireMode that never exceeds `max_records`
_FIRST_VERSION_WITH_RENEWAL = 2
_WRONG_LEADER = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)
_UNKNOWN = (Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_OR_PARTITION)
# A session has at most this number of partitions that do not exist. They get errors until they are created.
MOST_UNKNOWN_PARTITIONS = 1000
# The error, and its message, of the acknowledgements in each partition.
AckResults = dict[PartitionId, tuple[Error, str | None]]


# -- ShareFetch


@serves(ApiKey.SHARE_FETCH, 1, 2, on_error=error_without_message(ShareFetchResponse))
def handle_share_fetch(context: RequestContext, request: ShareFetchRequest) -> None:
    key = _session_key(context, request.group_id, request.member_id)
    is_renewal = context.api_version >= _FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    if is_renewal:
        _check_renewal(request)
    epoch = request.share_session_epoch
    try:
        session = _open_session(context, key, request)
    except ApiError as error:
        if error.error is not Error.SHARE_SESSION_LIMIT_REACHED:
            raise
        # The delay keeps the client from repeating the request at once.
        refusal = ShareFetchResponse(error_code=error.error)
        context.services.reactor.schedule(max(0, request.max_wait_ms), lambda: context.respond(refusal))
        return
    pending = _PendingResponse(context, key, session, epoch)
    named = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    wanted = [] if session is None else session.rotated(epoch)
    permitted, refused = _permitted(context, dict.fromkeys([*wanted, *named]))
    if session is not None:
        session.forget([each for each, error in refused.items() if error in _UNKNOWN][MOST_UNKNOWN_PARTITIONS:])
    acks: dict[PartitionId, list[AckBatch]] = {}
    if _has_acknowledgements(request):
        acks = {
            (topic.topic_id, each.partition_index): _ack_batches(each)
            for topic in request.topics
            for each in topic.partitions
        }
    _acknowledge(context, key, acks, permitted, refused, pending.acknowledged, is_renewal=is_renewal)
    if is_renewal:
        pending.fetched([])
    else:
        _fetch(context, request, key, [each for each in wanted if each in permitted], permitted, refused, pending)


def _open_session(context: RequestContext, key: SessionKey, request: ShareFetchRequest) -> ShareSession | None:
    """Returns the session of the request, or None if the request closes it. Raises ApiError."""
    shares = context.services.shares
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        shares.sessions.get(key)  # raises ApiError if there is no session
        return None
    named = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if epoch == INITIAL_EPOCH:
        if _has_acknowledgements(request):
            raise ApiError(Error.INVALID_REQUEST)
        return shares.sessions.open(key, named, context.connection.id, shares.settings.max_sessions)
    session = shares.sessions.advance(key, epoch)
    forgotten = [(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions]
    session.update(named, forgotten)
    return session


def _has_acknowledgements(request: ShareFetchRequest) -> bool:
    return any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)


def _check_renewal(request: ShareFetchRequest) -> None:
    """Raises ApiError INVALID_REQUEST if a request that renews locks also requests records."""
    names = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = [f"{name} must be set to 0, " for name, value in names.items() if value != 0]
    if wrong:
        raise ApiError(Error.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _fetch(
    context: RequestContext,
    request: ShareFetchRequest,
    key: SessionKey,
    wanted: list[PartitionId],
    permitted: dict[PartitionId, TopicIdPartition],
    refused: dict[PartitionId, Error],
    pending: _PendingResponse,
) -> None:
    """Acquires records of the partitions `wanted`, and passes the results to `pending` when there are enough records or
    when the waiting time of the request has passed.

    All of `wanted` are in `permitted`, which has the id and name of each partition. The results of partitions in
    `refused` are their errors, if the session has these partitions.
    """
    shares = context.services.shares
    failed = [
        ShareResult(SharePartitionKey(key.group_id, *each), error, is_from_partition=False)
        for each, error in refused.items()
        if pending.session is not None and each in pending.session.partitions
    ]
    found: list[SharePartition] = []
    for each in wanted:
        share_partition = shares.partitions.find_or_load(key.group_id, permitted[each])
        if isinstance(share_partition, Error):
            failed.append(ShareResult(SharePartitionKey(key.group_id, *each), share_partition))
        else:
            found.append(share_partition)
    max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    if context.cost is not None:
        max_bytes = context.cost.largest_fetch(max_bytes)
    if not found:
        pending.fetched(failed)
        return
    fetch = ShareFetch(
        member=key.member_id,
        max_wait_ms=0 if failed else request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_records=request.max_records,
        batch_size=request.batch_size,
        is_exact=request.share_acquire_mode == _RECORD_LIMIT,
        is_wanted=lambda: shares.sessions.is_open(pending.session),
        on_results=lambda results: pending.fetched(failed + results),
    )
    shares.partitions.fetch(fetch, found)


class _PendingResponse:
    """The response to a ShareFetch, which is sent when both the acknowledgements and the records are known."""

    def __init__(self, context: RequestContext, key: SessionKey, session: ShareSession | None, epoch: int) -> None:
        self.session = session
        self._context = context
        self._key = key
        self._epoch = epoch
        self._acks: AckResults | None = None
        self._results: list[ShareResult] | None = None

    def acknowledged(self, acks: AckResults) -> None:
        self._acks = acks
        self._respond_if_complete()

    def fetched(self, results: list[ShareResult]) -> None:
        self._results = results
        self._respond_if_complete()

    def _respond_if_complete(self) -> None:
        """Responds if both the results of the acknowledgements and the records are known; otherwise does nothing.

        Before the response, closes the session if the request has the final epoch (-1).
        """
        acks, results = self._acks, self._results
        if acks is None or results is None:
            return
        if self._epoch == FINAL_EPOCH:
            self._context.services.shares.end_session(self._key)
        throttle_ms = self._charge(results)
        if throttle_ms:
            self._withdraw(results)
            results = []
        self._context.respond(self._response(acks, results), throttle_ms)

    def _response(self, acks: AckResults, results: list[ShareResult]) -> ShareFetchResponse:
        """Returns the response, and marks the partitions of `results` that it contains as sent in the session.

        The entry of such a partition also contains the result of its acknowledgements; this result is removed from
        `acks`. The results that remain in `acks` get entries without records.
        """
        context = self._context
        topics: dict[bytes, list[ShareFetchResponse.PartitionData]] = {}
        nodes = LeaderHints(context.services, context.listener.name)
        for result in results:
            partition = (result.key.topic_id, result.key.partition)
            is_new = self.session is not None and self.session.partitions.get(partition, False)
            if not (is_new or result.error or len(result.records) or result.acquired or partition in acks):
                continue
            if self.session is not None and partition in self.session.partitions:
                self.session.partitions[partition] = False
            data = _partition_data(context, result, acks.pop(partition, None), nodes)
            topics.setdefault(result.key.topic_id, []).append(data)
        for (topic_id, number), (error, message) in acks.items():
            result = ShareResult(SharePartitionKey(self._key.group_id, topic_id, number))
            topics.setdefault(topic_id, []).append(_partition_data(context, result, (error, message), nodes))
        settings = context.services.shares.settings
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=settings.record_lock_duration_ms(self._key.group_id),
            responses=[
                ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
            node_endpoints=nodes.endpoints(ShareFetchResponse.NodeEndpoint),
        )

    def _charge(self, results: list[ShareResult]) -> int:
        """Charges the response to the client's quotas, and returns the throttle time (ms).

        Nothing is charged to the quota of bytes if the client is throttled, because the response will have no records.
        """
        cost = self._context.cost
        if cost is None:
            return 0
        size = sum(len(result.records) for result in results)
        throttle_ms = max(cost.charge_time(), cost.charge_fetch(size))
        if throttle_ms:
            cost.refund_fetch(size)
        return throttle_ms

    def _withdraw(self, results: list[ShareResult]) -> None:
        """Makes the acquired records available again: the client is throttled, and its response contains no records."""
        for result in results:
            share_partition = self._context.services.shares.partitions.get(result.key)
            if share_partition is not None:
                share_partition.withdraw(self._key.member_id, result.acquired)


def _partition_data(
    context: RequestContext, result: ShareResult, ack: tuple[Error, str | None] | None, nodes: LeaderHints
) -> ShareFetchResponse.PartitionData:
    """Returns the entry of the response for one partition.

    `ack` is the error and message of its acknowledgements; None if the request acknowledged nothing in it.
    """
    data = ShareFetchResponse.PartitionData(
        partition_index=result.key.partition,
        error_code=result.error,
        records=result.records,
        acquired_records=[
            ShareFetchResponse.AcquiredRecords(
                first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
            )
            for each in result.acquired
        ],
    )
    if result.error and result.is_from_partition:
        data.error_message = result.error.message
    if ack is not None:
        data.acknowledge_error_code, data.acknowledge_error_message = ack
    if result.error in _WRONG_LEADER:
        _set_current_leader(data, ShareFetchResponse.LeaderIdAndEpoch, context, result.key.topic_id, nodes)
    return data


# -- ShareAcknowledge


@serves(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, on_error=error_without_message(ShareAcknowledgeResponse))
def handle_share_acknowledge(context: RequestContext, request: ShareAcknowledgeRequest) -> None:
    key = _session_key(context, request.group_id, request.member_id)
    shares = context.services.shares
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        shares.sessions.get(key)
    elif epoch == INITIAL_EPOCH:
        raise ApiError(Error.INVALID_SHARE_SESSION_EPOCH)
    else:
        shares.sessions.advance(key, epoch)
    acks = {
        (topic.topic_id, each.partition_index): _ack_batches(each)
        for topic in request.topics
        for each in topic.partitions
    }
    permitted, refused = _permitted(context, acks)
    is_renewal = context.api_version >= _FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack

    def done(results: AckResults) -> None:
        if epoch == FINAL_EPOCH:
            shares.end_session(key)
        context.respond(_acknowledge_response(context, key, results))

    _acknowledge(context, key, acks, permitted, refused, done, is_renewal=is_renewal)


def _acknowledge_response(context: RequestContext, key: SessionKey, results: AckResults) -> ShareAcknowledgeResponse:
    topics: dict[bytes, list[ShareAcknowledgeResponse.PartitionData]] = {}
    nodes = LeaderHints(context.services, context.listener.name)
    for (topic_id, number), (error, message) in results.items():
        data = ShareAcknowledgeResponse.PartitionData(partition_index=number, error_code=error, error_message=message)
        if error in _WRONG_LEADER:
            _set_current_leader(data, ShareAcknowledgeResponse.LeaderIdAndEpoch, context, topic_id, nodes)
        topics.setdefault(topic_id, []).append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=context.services.shares.settings.record_lock_duration_ms(key.group_id),
        responses=[
            ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=nodes.endpoints(ShareAcknowledgeResponse.NodeEndpoint),
    )


# -- both


def _session_key(context: RequestContext, group_id: str | None, member_id: str | None) -> SessionKey:
    """Returns the key of the session; raises ApiError if the request is invalid or not permitted."""
    check_share_groups(context)
    if group_id is None:
        raise ApiError(Error.INVALID_REQUEST)
    check_group(context, Operation.READ, group_id)
    return SessionKey(group_id, check_member_id(member_id))


def _permitted(
    context: RequestContext, partitions: Iterable[PartitionId]
) -> tuple[dict[PartitionId, TopicIdPartition], dict[PartitionId, Error]]:
    """Returns the partitions that exist and that the client may read, and the errors of the others."""
    by_id = context.services.metadata.image.topics.by_id
    named = {each: by_id.get(each[0]) for each in partitions}
    denied = denied_topics(context, Operation.READ, (topic.name for topic in named.values() if topic is not None))
    permitted: dict[PartitionId, TopicIdPartition] = {}
    refused: dict[PartitionId, Error] = {}
    for each, topic in named.items():
        if topic is None:
            refused[each] = Error.UNKNOWN_TOPIC_ID
        elif topic.name in denied:
            refused[each] = Error.TOPIC_AUTHORIZATION_FAILED
        elif each[1] not in topic.partitions:
            refused[each] = Error.UNKNOWN_TOPIC_OR_PARTITION
        else:
            permitted[each] = TopicIdPartition(each[0], topic.name, each[1])
    return permitted, refused


def _ack_batches(partition: Any) -> list[AckBatch]:
    return [
        AckBatch(each.first_offset, each.last_offset, each.acknowledge_types)
        for each in partition.acknowledgement_batches
    ]


def _acknowledge(
    context: RequestContext,
    key: SessionKey,
    acks: dict[PartitionId, list[AckBatch]],
    permitted: dict[PartitionId, TopicIdPartition],
    refused: dict[PartitionId, Error],
    on_results: Callable[[AckResults], None],
    *,
    is_renewal: bool,
) -> None:
    """Acknowledges records; calls `on_results` with the error and message of each partition when all acknowledgements
    are durable or refused.

    `acks` are the acknowledged batches by partition. `refused` has the errors of the partitions that the client may not
    use; every other partition is in `permitted`. A partition with invalid batches gets INVALID_REQUEST instead of its
    error in `refused`, unless the topic id is unknown. Locks may be renewed only if `is_renewal` is True.
    """
    results: AckResults = {}
    remaining = len(acks)
    if not remaining:
        on_results(results)
        return
    highest = AckType.RENEW if context.api_version >= _FIRST_VERSION_WITH_RENEWAL else AckType.REJECT
    partitions = context.services.shares.partitions

    def done(partition: PartitionId, error: Error, message: str | None) -> None:
        nonlocal remaining
        results[partition] = error, message if error else None
        remaining -= 1
        if not remaining:
            on_results(results)

    for each, batches in acks.items():
        if each in refused and (refused[each] is Error.UNKNOWN_TOPIC_ID or _are_valid(batches, highest, is_renewal)):
            done(each, refused[each], None)
        elif not _are_valid(batches, highest, is_renewal):
            done(each, Error.INVALID_REQUEST, None)
        elif not batches:
            done(each, Error.NONE, None)
        else:
            share_partition = partitions.get(SharePartitionKey(key.group_id, *each))
            if share_partition is None or not share_partition.is_active:
                error = _not_loaded_error(context, permitted[each].topic_partition)
                done(each, error, error.message)
            else:
                context.services.shares.count_acknowledgements(batches)
                share_partition.acknowledge(
                    key.member_id,
                    batches,
                    lambda error, message, each=each: done(each, error, message or error.message),  # type: ignore[misc]
                )


def _are_valid(batches: list[AckBatch], highest: int, is_renewal: bool) -> bool:
    """Returns whether the batches are in order and have acknowledgement types of at most `highest`.

    The type RENEW is valid only if the request renews locks (`is_renewal`).
    """
    previous = -1
    for first, last, types in batches:
        if first > last or first < previous or not types or (len(types) > 1 and last - first + 1 != len(types)):
            return False
        if min(types) < AckType.GAP or max(types) > highest or (AckType.RENEW in types and not is_renewal):
            return False
        previous = last
    return True


def _not_loaded_error(context: RequestContext, topic_partition: TopicPartition) -> Error:
    """Returns the error for records of a share partition that is not loaded here.

    This is KAFKA_STORAGE_ERROR if the log of the topic partition is offline, UNKNOWN_TOPIC_OR_PARTITION if the topic
    partition does not exist or this broker leads it, and NOT_LEADER_OR_FOLLOWER otherwise.
    """
    found = context.services.replica_manager.find_partition(topic_partition)
    if isinstance(found, Error):
        return found
    return Error.UNKNOWN_TOPIC_OR_PARTITION if found.is_leader else Error.NOT_LEADER_OR_FOLLOWER


def _set_current_leader(
    data: Any, leader_class: Any, context: RequestContext, topic_id: bytes, nodes: LeaderHints
) -> None:
    """Sets the current leader of a partition in `data`, the partition's entry in a response, and adds the leader's
    address to `nodes`.

    `leader_class` is the LeaderIdAndEpoch class of the response. A topic that does not exist has the leader -1.
    """
    topic = context.services.metadata.image.topics.by_id.get(topic_id)
    leader = LeaderHint(-1, -1)
    if topic is not None:
        leader = nodes.find(TopicPartition(topic.name, data.partition_index))
    data.current_leader = leader_class(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
