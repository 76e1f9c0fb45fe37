"""A share consumer's requests to the brokers: fetches, acknowledgements, and the end of the sessions."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from kafkapy._core.client.fetched_records import AcquiredOffsets, FetchedRecords
from kafkapy.client.acknowledgements import Acknowledgements
from kafkapy.client.cluster import NO_LEADER, Node
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.network import NEVER, Network
from kafkapy.client.sender import STALE_METADATA
from kafkapy.client.share_deliveries import FetchedShare, ShareDeliveries, ShareSource, ToSend
from kafkapy.client.share_requests import ShareRequests
from kafkapy.client.share_session import FINAL_EPOCH, SharePartition, ShareSession
from kafkapy.client.subscription import Subscription
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from kafkapy.protocol.messages.share_fetch import ShareFetchResponse
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

_LOST_SESSION = frozenset(
    (Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH, Error.SHARE_SESSION_LIMIT_REACHED)
)
# A partition's acknowledgement is not repeated after these errors, because its records were released.
_MOVED = frozenset(
    (
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
    )
)
# These errors of a partition's fetch are not raised; the next fetch repeats it.
_IGNORED = frozenset((Error.UNKNOWN_LEADER_EPOCH, Error.UNKNOWN_SERVER_ERROR))
_INVALID_RESPONSE = "Acknowledgement not successful due to invalid response from broker"
# Called once for each partition of a commit, with the lock held.
OnAcknowledged = Callable[[ShareSource, Acknowledgements, ApiError | None], object]


def ignore_result(source: ShareSource, acknowledgements: Acknowledgements, error: ApiError | None) -> None:
    """Ignores the result of acknowledgements for which no caller waits."""


class Commit:
    """The acknowledgements that one call sends to one broker.

    `waiting` has those that have no result yet. `is_final` marks the last commit to the broker; this commit ends the
    session. `on_result(source, acknowledgements, error)` is called for each partition with a result: `source` is its
    ShareSource (broker and partition), and `error` is None after a success.
    """

    def __init__(self, waiting: ToSend, deadline_ms: int, on_result: OnAcknowledged, *, is_final: bool) -> None:
        self.waiting = waiting
        self.deadline_ms = deadline_ms
        self.on_result = on_result
        self.is_final = is_final
        self.attempts = 0
        self.not_before_ms = 0


class ShareNode:
    """The share session at one broker, and the commits and acknowledgements to send to it.

    While a request is in flight, `is_busy` is True, and no other request is sent to the broker.
    """

    def __init__(self) -> None:
        self.session = ShareSession()
        self.is_busy = False
        self.not_before_ms = 0
        self.piggybacked: ToSend = {}  # acknowledgements that the next fetch contains
        self.commits: deque[Commit] = deque()


class ShareFetcher:
    """Sends the fetches and acknowledgements of a share consumer, and owns its share sessions. It is a `Task`: the
    client's network loop calls `run` in every pass, with `Network.lock` held.

    `wants_records` is True while the application waits for records; records are fetched only then, because their locks
    expire while they are buffered. `errors` contains the errors that the next poll raises.
    `on_completed(source, acknowledgements, error)` is called for every partition whose acknowledgements have a result:
    `source` is its ShareSource (broker and partition), and `error` is None after a success.
    """

    def __init__(
        self,
        network: Network,
        subscription: Subscription,
        config: ClientConfig,
        requests: ShareRequests,
        deliveries: ShareDeliveries,
        on_completed: OnAcknowledged,
    ) -> None:
        self._network = network
        self._subscription = subscription
        self._requests = requests
        self._deliveries = deliveries
        self._on_completed = on_completed
        self._check_crcs: bool = config["check.crcs"]
        self._nodes: dict[int, ShareNode] = {}
        self._last_limited = NO_LEADER  # with a record limit: the broker that records were fetched from last
        self.wants_records = False
        self.errors: list[ApiError] = []

    @property
    def is_idle(self) -> bool:
        """Returns whether no request is in flight and no acknowledgement waits."""
        return not any(each.is_busy or each.commits or each.piggybacked for each in self._nodes.values())

    # Called by the application's thread, with the lock held

    def fetch(self, acknowledgements: ToSend, deadline_ms: int) -> None:
        """Starts to fetch records, and returns at once; fetches are sent until records arrive. The acknowledgements are
        sent to each broker with the next ShareFetch.

        If `acknowledgements` renew locks, they are sent alone and nothing is fetched, because the application first
        gets the renewed records again. These acknowledgements are repeated after retriable errors until `deadline_ms`
        (monotonic). Without renewals `deadline_ms` is not used.
        """
        if any(each.renewals for each in acknowledgements.values()):
            self.commit(acknowledgements, deadline_ms)
            return
        self.wants_records = True
        for source, each in acknowledgements.items():
            if self._has_moved(source):
                self._fail(source, each, ApiError(Error.NOT_LEADER_OR_FOLLOWER), ignore_result)
                continue
            piggybacked = self._node(source.node_id).piggybacked
            earlier = piggybacked.get(source)
            piggybacked[source] = each if earlier is None else earlier.followed_by(each)

    def commit(self, acknowledgements: ToSend, deadline_ms: int, on_result: OnAcknowledged = ignore_result) -> None:
        """Sends acknowledgements without fetching; they are repeated after retriable errors until `deadline_ms`
        (monotonic).

        `on_result(source, acknowledgements, error)` is called for each partition: `source` is its ShareSource (broker
        and partition), and `error` is None after a success. It is called before `commit` returns for a partition whose
        leader is no longer the broker that has delivered the records.
        """
        by_node: dict[int, ToSend] = {}
        for source, each in acknowledgements.items():
            if self._has_moved(source):
                self._fail(source, each, ApiError(Error.NOT_LEADER_OR_FOLLOWER), on_result)
            else:
                by_node.setdefault(source.node_id, {})[source] = each
        for node_id, waiting in by_node.items():
            self._node(node_id).commits.append(Commit(waiting, deadline_ms, on_result, is_final=False))

    def close(self, acknowledgements: ToSend, deadline_ms: int) -> None:
        """Sends the last acknowledgements with the requests that end the sessions. These requests fail after
        `deadline_ms` (monotonic).
        """
        self.wants_records = False
        for source, each in acknowledgements.items():
            piggybacked = self._node(source.node_id).piggybacked
            earlier = piggybacked.get(source)
            piggybacked[source] = each if earlier is None else earlier.followed_by(each)
        for node in self._nodes.values():
            last, node.piggybacked = node.piggybacked, {}
            node.commits.append(Commit(last, deadline_ms, ignore_result, is_final=True))

    def _node(self, node_id: int) -> ShareNode:
        found = self._nodes.get(node_id)
        if found is None:
            found = self._nodes[node_id] = ShareNode()
        return found

    def _has_moved(self, source: ShareSource) -> bool:
        """Returns whether the broker that has delivered the records is known not to lead the partition any more."""
        leader = self._network.cluster.leader(*source.partition.topic_partition)
        return source.node_id not in self._network.cluster.nodes or leader not in (source.node_id, NO_LEADER)

    # Called by the network

    def run(self, monotonic_ms: int) -> int:
        """Sends the next acknowledgements, or otherwise a fetch, to each broker that has no request in flight.

        Returns the monotonic time (ms) at which to run again.
        """
        due = NEVER
        for node_id, node in self._nodes.items():
            if not node.is_busy and node.commits:
                due = min(due, self._send_commits(node_id, node, monotonic_ms))
        if self.wants_records:
            due = min(due, self._send_fetches(monotonic_ms))
        return due

    # Acknowledging

    def _send_commits(self, node_id: int, node: ShareNode, monotonic_ms: int) -> int:
        """Sends the broker's next commit. Commits before it that cannot be sent end with an error.

        Returns the monotonic time (ms) at which to try again; NEVER if a request is in flight or no commit is left.
        """
        while node.commits and not node.is_busy:
            commit = node.commits[0]
            has_nothing = not commit.waiting and not (commit.is_final and node.session.is_open)
            if has_nothing or not node.session.is_open or node_id not in self._network.cluster.nodes:
                self._end(node, commit, ApiError(Error.NOT_LEADER_OR_FOLLOWER))
            elif monotonic_ms >= commit.deadline_ms:
                self._end(node, commit, ApiError(Error.REQUEST_TIMED_OUT))
            elif monotonic_ms < commit.not_before_ms:
                return min(commit.not_before_ms, commit.deadline_ms)
            elif not self._network.is_ready(node_id):
                return min(self._network.ready_from_ms(node_id), commit.deadline_ms)
            else:
                self._send_commit(node_id, node, commit)
        return NEVER

    def _send_commit(self, node_id: int, node: ShareNode, commit: Commit) -> None:
        node.is_busy = True
        commit.attempts += 1
        epoch = FINAL_EPOCH if commit.is_final else node.session.epoch
        sent = {source.partition: each for source, each in commit.waiting.items()}

        def on_response(response: ShareAcknowledgeResponse | None, version: int, error: Exception | None) -> None:
            node.is_busy = False
            if response is None:
                node.session.lose()
                self._end(node, commit, _as_api_error(error))
            else:
                self._acknowledged(node_id, node, commit, response)
                if commit.is_final:
                    node.session.lose()

        self._network.submit(
            node_id,
            ApiKey.SHARE_ACKNOWLEDGE,
            lambda version: self._requests.acknowledge(version, epoch, sent),
            on_response,
        )

    def _acknowledged(self, node_id: int, node: ShareNode, commit: Commit, response: ShareAcknowledgeResponse) -> None:
        """Handles the response to a ShareAcknowledge: ends the acknowledgements that have a result, and retries the
        others, or ends them with an error if they cannot be retried."""
        error = Error.of(response.error_code)
        if error in _LOST_SESSION:
            node.session.lose()
        else:
            node.session.confirm()
        if error:
            if not error.retriable or commit.is_final:
                self._end(node, commit, ApiError(error, response.error_message))
            else:
                self._retry(commit)
            return
        lock_timeout_ms = response.acquisition_lock_timeout_ms or None
        has_retries = False
        for partition, part in self._parts(response, {source.partition for source in commit.waiting}):
            source = ShareSource(node_id, partition)
            if source not in commit.waiting:
                continue
            failure = Error.of(part.error_code)
            if failure in _MOVED:
                self._update_leader(partition.topic_partition, part, response)
            elif failure.retriable and not commit.is_final:
                has_retries = True
                continue
            result = ApiError(failure, part.error_message) if failure else None
            self._finish(source, commit.waiting.pop(source), result, commit.on_result, lock_timeout_ms)
        if has_retries:
            self._retry(commit)
        else:
            self._end(node, commit, ApiError(Error.INVALID_RECORD_STATE, _INVALID_RESPONSE))

    def _retry(self, commit: Commit) -> None:
        pause_ms = self._network.retry_backoff.pause_ms(commit.attempts - 1)
        commit.not_before_ms = self._network.clock.monotonic_ms() + pause_ms

    def _end(self, node: ShareNode, commit: Commit, error: ApiError) -> None:
        """Removes the commit from the ones to send to its broker; its acknowledgements without a result end with
        `error`.
        """
        node.commits.remove(commit)
        waiting, commit.waiting = commit.waiting, {}
        for source, each in waiting.items():
            self._fail(source, each, error, commit.on_result)

    def _fail(
        self, source: ShareSource, acknowledgements: Acknowledgements, error: ApiError, on_result: OnAcknowledged
    ) -> None:
        self._finish(source, acknowledgements, error, on_result, None)

    def _finish(
        self,
        source: ShareSource,
        acknowledgements: Acknowledgements,
        error: ApiError | None,
        on_result: OnAcknowledged,
        lock_timeout_ms: int | None,
    ) -> None:
        """Passes the result of one partition's acknowledgements to `on_result` and `on_completed`.

        `error` is None after a success. If acknowledgements renew acquisition locks, also passes the renewed records
        (none after an error) to the deliveries, with their new time limit `lock_timeout_ms`, None if it is not known.
        """
        if acknowledgements.renewals:
            renewed = acknowledgements.renewals.values() if error is None else ()
            self._deliveries.renewed(source, renewed, lock_timeout_ms)
        on_result(source, acknowledgements, error)
        self._on_completed(source, acknowledgements, error)

    # Fetching

    def _send_fetches(self, monotonic_ms: int) -> int:
        """Sends a ShareFetch to each broker from which records or acknowledgement results are expected. Returns the
        monotonic time (ms) at which to try again."""
        due = NEVER
        wanted: dict[int, list[SharePartition]] = {}
        for topic_partition in self._subscription.partitions:
            node_id = self._network.cluster.leader(*topic_partition)
            info = self._network.cluster.topics.get(topic_partition.topic)
            if node_id == NO_LEADER or info is None:
                self._network.metadata.request_update()
            else:
                wanted.setdefault(node_id, []).append(SharePartition(info.topic_id, topic_partition))
        for node_id, node in self._nodes.items():
            if node.piggybacked:
                wanted.setdefault(node_id, [])
        for node_id in self._in_turn(wanted):
            node = self._node(node_id)
            if node.is_busy or node.commits:
                continue
            if node_id not in self._network.cluster.nodes:
                self._fail_piggybacked(node)
            elif monotonic_ms < node.not_before_ms:
                due = min(due, node.not_before_ms)
            elif self._network.is_ready(node_id):
                self._send_fetch(node_id, node, wanted[node_id])
            else:
                due = min(due, self._network.ready_from_ms(node_id))
        return due

    def _in_turn(self, wanted: Iterable[int]) -> list[int]:
        """Returns the brokers to fetch from, in the order of their ids.

        With a record limit, only one fetch may be in flight: the order then begins after the broker of the last fetch,
        so that records are fetched from every broker.
        """
        ordered = sorted(wanted)
        if self._requests.has_record_limit:
            ordered.sort(key=lambda node_id: node_id <= self._last_limited)
        return ordered

    def _fail_piggybacked(self, node: ShareNode) -> None:
        failed, node.piggybacked = node.piggybacked, {}
        for source, each in failed.items():
            self._fail(source, each, ApiError(Error.NOT_LEADER_OR_FOLLOWER), ignore_result)

    def _send_fetch(self, node_id: int, node: ShareNode, wanted: list[SharePartition]) -> None:
        """Sends a ShareFetch for the partitions `wanted`, with the acknowledgements that wait for the broker's next
        ShareFetch.

        Sends nothing if the request would neither fetch, nor acknowledge, nor change the session.
        """
        session = node.session
        if not session.is_open:
            self._fail_piggybacked(node)  # the broker has released these records with the session
        wants_records = bool(wanted) and self._may_take_records(node_id)
        sent, node.piggybacked = node.piggybacked, {}
        epoch = session.epoch
        added, forgotten = session.plan(wanted)
        if not (wants_records or added or forgotten or sent):
            return
        node.is_busy = True

        def on_response(response: ShareFetchResponse | None, version: int, error: Exception | None) -> None:
            node.is_busy = False
            if response is None:
                session.lose()
                self._pause(node)
                failure: ApiError | None = _as_api_error(error)
            else:
                failure = self._fetched(node_id, node, wanted, sent, response)
            for source, each in sent.items():
                self._fail(
                    source, each, failure or ApiError(Error.INVALID_RECORD_STATE, _INVALID_RESPONSE), ignore_result
                )

        self._network.submit(
            node_id,
            ApiKey.SHARE_FETCH,
            lambda version: self._requests.fetch(
                version,
                epoch,
                added=added,
                forgotten=forgotten,
                acknowledgements={source.partition: each for source, each in sent.items()},
                wants_records=wants_records,
            ),
            on_response,
        )

    def _may_take_records(self, node_id: int) -> bool:
        """Returns whether a fetch from the broker may request records.

        With a record limit (`share.acquire.mode=record_limit`) it may not while another broker's fetch is in flight.
        """
        if not self._requests.has_record_limit:
            return True
        limited = self._nodes.get(self._last_limited)
        if limited is not None and limited.is_busy:
            return False
        self._last_limited = node_id
        return True

    def _fetched(
        self,
        node_id: int,
        node: ShareNode,
        wanted: list[SharePartition],
        sent: ToSend,
        response: ShareFetchResponse,
    ) -> ApiError | None:
        """Buffers the records of a response, and passes on the results of the acknowledgements in `sent`.

        An acknowledgement that has a result is removed from `sent`. `wanted` are the partitions that the request asked
        for. Returns the error of the response as a whole, or None.
        """
        error = Error.of(response.error_code)
        if error:
            log.debug("Broker %d has refused ShareFetch: %s", node_id, error.name)
            if error in _LOST_SESSION:
                node.session.lose()
            else:
                node.session.confirm()
            if error is Error.UNKNOWN_TOPIC_ID:
                self._network.metadata.request_update()
            self._pause(node)
            return ApiError(error, response.error_message)
        node.session.confirm()
        lock_timeout_ms = response.acquisition_lock_timeout_ms or None
        for partition, part in self._parts(response, {*wanted, *(source.partition for source in sent)}):
            source = ShareSource(node_id, partition)
            if source in sent:
                failure = Error.of(part.acknowledge_error_code)
                result = ApiError(failure, part.acknowledge_error_message) if failure else None
                self._finish(source, sent.pop(source), result, ignore_result, lock_timeout_ms)
            if part.error_code:
                self._fetch_failed(node, partition.topic_partition, part, response)
            elif part.acquired_records:
                self._buffer(source, part, lock_timeout_ms)
        return None

    def _buffer(self, source: ShareSource, part: Any, lock_timeout_ms: int | None) -> None:
        topic, number = source.partition.topic_partition
        acquired = AcquiredOffsets(
            (each.first_offset, each.last_offset, each.delivery_count) for each in part.acquired_records
        )
        first = acquired.first_offset
        if first is None:
            return
        records = b"" if part.records is None else part.records
        fetched = FetchedRecords(records, topic, number, first, check_crcs=self._check_crcs)
        self._deliveries.add(FetchedShare(source, fetched, acquired, lock_timeout_ms))
        self.wants_records = False

    def _fetch_failed(
        self, node: ShareNode, topic_partition: TopicPartition, part: Any, response: ShareFetchResponse
    ) -> None:
        error = Error.of(part.error_code)
        self._pause(node)
        if error in STALE_METADATA or error in _MOVED or error.retriable:
            self._update_leader(topic_partition, part, response)
        elif error not in _IGNORED:
            self.errors.append(ApiError(error, f"Fetching {topic_partition}: {part.error_message or error.message}"))

    def _update_leader(self, topic_partition: TopicPartition, part: Any, response: Any) -> None:
        """Stores the leader that a response names for a partition, and requests new metadata.

        `part` is the partition's struct in the response.
        """
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        leader = part.current_leader
        self._network.metadata.update_leader(topic_partition, leader.leader_id, leader.leader_epoch, nodes)
        self._network.metadata.request_update()

    def _pause(self, node: ShareNode) -> None:
        node.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)

    @staticmethod
    def _parts(response: Any, expected: Iterable[SharePartition]) -> Iterable[tuple[SharePartition, Any]]:
        """Yields the expected partitions that a response contains, each with its struct in the response."""
        known = {(each.topic_id, each.topic_partition.partition): each for each in expected}
        for topic in response.responses:
            for part in topic.partitions:
                partition = known.get((topic.topic_id, part.partition_index))
                if partition is not None:
                    yield partition, part


def _as_api_error(error: Exception | None) -> ApiError:
    return error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error))
