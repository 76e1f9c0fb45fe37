"""Fetch: reads partitions for consumers and followers, with or without a session.

The response has at most `max_bytes` of records, but at least one whole batch if there is one to read. If there are
fewer bytes than `min_bytes` and no error, the response is delayed. Within a session (`server/fetch_session`) the
response has only the partitions that have changed.

Version notes: versions 0 to 3 get message sets of magic 0 or 1, converted on the handler pool. Version 4 adds
isolation levels; 7 adds sessions (KIP-227) and an error for the whole response. Before 10 a topic with zstd is refused.
From 11 on consumers may read from followers (KIP-392). Version 12 adds diverging epochs (KIP-595), 13 topic ids, and 16
the addresses of leaders (KIP-951).

Permissions: Read on the topic for consumers, ClusterAction on the cluster for followers. Every request is checked, also
in a session.

Not implemented: remote (tiered) storage.

The usual fetches of consumers and followers do not reach this module: compiled code (the gate, `_core/gate/fetch_gate`)
serves them without Python.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy._core.bytes.compression import ZSTD
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.replica.fetch import FetchParams, FetchPartition, FetchResult
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.security.acl import Operation
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import denied_topics, is_cluster_allowed
from kafkapy.server.fetch_in_old_format import LARGEST_CONVERSION_BYTES, fetch_in_old_format
from kafkapy.server.fetch_session import FetchContext, Results
from kafkapy.server.large_fetches import FetchClient
from kafkapy.server.leader_hints import LeaderHints
from kafkapy.server.request_context import NOT_HELD, RequestContext

# The size of a flexible response without topics, and of a topic with one partition in it without its name and records.
# Other versions and further partitions of a topic differ by a few bytes.
EMPTY_RESPONSE_BYTES = 16
READ_PARTITION_BYTES = 42
_WRONG_LEADER = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


def fetch_error(request: FetchRequest, version: int, error: Error, message: str | None) -> FetchResponse:
    """Returns a response that has `error` at the top level and for every partition.

    Clients without sessions read only the errors of the partitions.
    """
    return FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=partition.partition, error_code=error, high_watermark=-1, records=b""
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@serves(ApiKey.FETCH, 0, 18, on_error=fetch_error)
def handle_fetch(context: RequestContext, request: FetchRequest) -> None:
    version = context.api_version
    services = context.services
    manager = services.replica_manager
    by_id = services.metadata.image.topics.by_id

    def topic_name(topic_id: bytes) -> str | None:
        topic = by_id.get(topic_id)
        return None if topic is None else topic.name

    params = fetch_params(context, request)
    if params.is_from_follower:
        context.connection.note_follower_fetch()

    def client() -> FetchClient:
        return FetchClient(context.client_id or "", str(context.principal), context.connection.peer_host)

    session = services.fetch_sessions.open(
        request, version, topic_name, is_follower=params.is_from_follower, client=client
    )
    to_read: list[FetchPartition] = []
    refused: Results = []
    wanted = session.partitions
    if services.authorizer is not None:
        wanted = _permitted(context, params, wanted, refused)
    for partition in wanted:
        if partition.topic_partition in manager.partitions:
            to_read.append(partition)
        elif partition.topic is None:
            refused.append((partition, FetchResult(Error.UNKNOWN_TOPIC_ID, aborted_transactions=[])))
        elif manager.find_partition(partition.topic_partition) is Error.UNKNOWN_TOPIC_OR_PARTITION:
            refused.append((partition, FetchResult(Error.UNKNOWN_TOPIC_OR_PARTITION, aborted_transactions=[])))
        else:
            to_read.append(partition)

    def respond(results: Results) -> None:
        if version < FetchRequest.FIRST_VERSION_WITH_ZSTD:
            results = [(asked, refuse_zstd(manager, asked, result)) for asked, result in results]
        count_results(context, params, results)
        if not params.is_from_follower and version >= FetchRequest.FIRST_VERSION_WITH_BATCHES:
            services.large_fetches.note(client, params, results, manager.partitions, services.clock)
        if refused:
            count_results(context, params, refused)
        found = results + refused if refused else results
        if params.is_from_follower:
            manager.count_replicated(results)
        throttle_ms = charge_fetch(context, params, found)
        if throttle_ms:
            context.respond(throttled_response(session), throttle_ms)
        else:
            context.respond(fetch_response(context, session, found))

    if version < FetchRequest.FIRST_VERSION_WITH_BATCHES:
        fetch_in_old_format(context, params, to_read, respond, client)
    elif to_read:
        manager.fetch_messages(params, to_read, respond)
    else:
        respond([])


def _permitted(
    context: RequestContext, params: FetchParams, partitions: Iterable[FetchPartition], refused: Results
) -> list[FetchPartition]:
    """Returns the partitions that the client may fetch, including those whose topic id is unknown. Adds each other
    partition to `refused`, with the result TOPIC_AUTHORIZATION_FAILED.
    """
    wanted = list(partitions)
    if params.is_from_follower:
        is_allowed = is_cluster_allowed(context, Operation.CLUSTER_ACTION)
        allowed, denied = (wanted, []) if is_allowed else ([], wanted)
    else:
        names = denied_topics(context, Operation.READ, (each.topic for each in wanted if each.topic is not None))
        allowed = [each for each in wanted if each.topic not in names]
        denied = [each for each in wanted if each.topic in names]
    refused += [(each, FetchResult(Error.TOPIC_AUTHORIZATION_FAILED, aborted_transactions=[])) for each in denied]
    return allowed


def charge_fetch(context: RequestContext, params: FetchParams, results: Results) -> int:
    """Charges the response to the quotas of the consumer, and returns the throttle time in milliseconds.

    The result is 0 for a follower, which these quotas do not limit. If the consumer is throttled, nothing is charged to
    its quota of bytes, because the response will have no records.
    """
    cost = context.cost
    if cost is None:
        return 0
    if params.is_from_follower:
        cost.is_exempt = True
        return 0
    size = EMPTY_RESPONSE_BYTES
    for asked, result in results:
        if len(result.records):
            size += READ_PARTITION_BYTES + len(asked.topic or "") + len(result.records)
    throttle_ms = max(cost.charge_time(), cost.charge_fetch(size))
    if throttle_ms:
        cost.refund_fetch(size)
    return throttle_ms


def throttled_response(session: FetchContext) -> FetchResponse:
    """Returns a response without partitions, which does not advance the session."""
    error, session_id = session.throttled_answer()
    return FetchResponse(error_code=error, session_id=session_id)


def count_results(context: RequestContext, params: FetchParams, results: Results) -> None:
    """Counts the results in the metrics: the fetches of each topic, the bytes sent to consumers, and the errors."""
    counters_of = context.services.replica_manager.counters_of
    for asked, result in results:
        counters = counters_of(asked.topic_partition)
        if result.error:
            counters.count_failed_fetch()
            context.services.request_errors.count(context.api_key, result.error)
        else:
            counters.count_fetch(0 if params.is_from_follower else len(result.records))


def fetch_params(context: RequestContext, request: FetchRequest) -> FetchParams:
    """Returns the parameters of the request, limited by the broker's configuration.

    If the compiled request path (the gate) has already made the request wait for data, the time of this wait is
    subtracted from max_wait_ms.
    """
    version = context.api_version
    has_replica_state = version >= FetchRequest.FIRST_VERSION_WITH_REPLICA_STATE
    max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    if version < FetchRequest.FIRST_VERSION_WITH_BATCHES:
        max_bytes = min(max_bytes, LARGEST_CONVERSION_BYTES)
    if context.cost is not None:
        max_bytes = context.cost.largest_fetch(max_bytes)
    return FetchParams(
        replica_id=request.replica_state.replica_id if has_replica_state else request.replica_id,
        replica_epoch=request.replica_state.replica_epoch if has_replica_state else -1,
        max_wait_ms=request.max_wait_ms - max(0, context.waited_ms),
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation_level=request.isolation_level,
        only_leader=version < FetchRequest.FIRST_VERSION_WITH_RACK_ID,
        # The gate records a follower's positions before it leaves a fetch to Python, to wait for data. It may then
        # refuse to serve the fetch, which is handled here; the positions are recorded already.
        is_recorded=context.waited_ms != NOT_HELD,
        client_rack=request.rack_id,
        listener=context.listener.name,
    )


def fetch_response(context: RequestContext, session: FetchContext, results: Results) -> FetchResponse:
    """Builds the response from the results that the session selects. Consecutive partitions of a topic are in one topic
    entry."""
    version = context.api_version
    error, session_id, to_send = session.answer(results)
    hints = LeaderHints(context.services, context.listener.name)
    topics: list[FetchResponse.FetchableTopicResponse] = []
    previous: object = None
    with_topic_ids = version >= FetchResponse.FIRST_VERSION_WITH_TOPIC_ID
    for asked, result in to_send:
        key: object = asked.topic_id if with_topic_ids else asked.topic
        if key != previous:
            previous = key
            topics.append(FetchResponse.FetchableTopicResponse(topic=asked.topic or "", topic_id=asked.topic_id))
            topics[-1].partitions = []
        data = partition_data(asked, result, version)
        if result.error in _WRONG_LEADER and version >= FetchResponse.FIRST_VERSION_WITH_NODE_ENDPOINTS:
            hint = hints.find(asked.topic_partition)
            data.current_leader = FetchResponse.LeaderIdAndEpoch(
                leader_id=hint.leader_id, leader_epoch=hint.leader_epoch
            )
        topics[-1].partitions.append(data)
    return FetchResponse(
        error_code=error if version >= FetchResponse.FIRST_VERSION_WITH_ERROR_CODE else 0,
        session_id=session_id,
        responses=topics,
        node_endpoints=hints.endpoints(FetchResponse.NodeEndpoint),
    )


def partition_data(asked: FetchPartition, result: FetchResult, version: int) -> FetchResponse.PartitionData:
    aborted = result.aborted_transactions
    data = FetchResponse.PartitionData(
        partition_index=asked.partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None,
        records=result.records,
        preferred_read_replica=result.preferred_read_replica,
    )
    if aborted is not None:
        data.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in aborted
        ]
    diverging = result.diverging_epoch
    if diverging is not None and version >= FetchResponse.FIRST_VERSION_WITH_DIVERGING_EPOCH:
        data.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    return data


def refuse_zstd(manager: ReplicaManager, asked: FetchPartition, result: FetchResult) -> FetchResult:
    """Returns a result with the error UNSUPPORTED_COMPRESSION_TYPE if the topic's compression.type is zstd, otherwise
    `result`.

    It is used for clients that cannot read zstd (Fetch below version 10). The codecs of the batches do not matter.
    """
    partition = manager.partitions.get(asked.topic_partition)
    if partition is not None and partition.log.config.codec == ZSTD:
        return FetchResult(Error.UNSUPPORTED_COMPRESSION_TYPE)
    return result
