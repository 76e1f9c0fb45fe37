"""The share consumer (KIP-932): reads records of topics that the members of a share group share like a queue."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.acknowledgements import Acknowledgements, AcknowledgeType
from kafkapy.client.closing import Closing
from kafkapy.client.configuration import ClientConfig, share_consumer_config
from kafkapy.client.consumer import IN_FLIGHT_LIMIT, ConsumerRecords
from kafkapy.client.consumer_group import LONGEST_LEAVING_S
from kafkapy.client.coordinator import Coordinator
from kafkapy.client.environment import SYSTEM
from kafkapy.client.errors import AcknowledgementError, ApiError, ClientClosed, NotSubscribed
from kafkapy.client.metrics import Metrics
from kafkapy.client.network import Network
from kafkapy.client.serialization import find_deserializer
from kafkapy.client.share_deliveries import ShareDeliveries, ShareSource, ToSend
from kafkapy.client.share_fetcher import ShareFetcher
from kafkapy.client.share_membership import ShareMembership
from kafkapy.client.share_requests import ShareRequests
from kafkapy.client.single_thread import SingleThread, by_one_thread
from kafkapy.client.subscription import Subscription
from kafkapy.client.telemetry import start_telemetry
from kafkapy.errors import Error
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.client")

_REFUSED_TOPIC = {
    Error.TOPIC_AUTHORIZATION_FAILED: "Not authorized to access topics: [{}]",
    Error.INVALID_TOPIC_EXCEPTION: "Invalid topics: [{}]",
}
Results = dict[TopicPartition, ApiError | None]
OnAcknowledged = Callable[[dict[TopicPartition, frozenset[int]], ApiError | None], object]


class ShareConsumer(Closing):
    """Reads records of topics as a member of a share group. Members of share groups acknowledge record by record.

    `properties` has Apache Kafka's configuration keys of a share consumer; a key can also be a keyword argument, with
    `_` instead of `.`: `ShareConsumer(bootstrap_servers="localhost:9092", group_id="workers")`. Raises ConfigError for
    an invalid configuration. A new group reads from the end of its topics, unless its configuration
    `share.auto.offset.reset` says otherwise.

    With `share.acknowledgement.mode=implicit`, the default, the next `poll`, `commit` or `commit_async` accepts all
    records of the last poll. With `explicit` the application acknowledges every record (`acknowledge`) before the next
    poll. The broker delivers a record to another member if it is released, or if it is not acknowledged before its
    acquisition lock expires (`acquisition_lock_timeout_ms`). `close` sends the acknowledgements that were made, and
    releases all other records.

    A share consumer must be used by one thread at a time: a method that is called while another thread is in a method
    of the same consumer raises ConcurrentUse. Only `wakeup` may be called by any thread. Iterating over it returns
    record by record, without end. All time-outs are in seconds; None means `default.api.timeout.ms`. Methods that block
    raise WakeupError after `wakeup`.
    """

    _environment = SYSTEM

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        config = share_consumer_config(properties, **settings)
        self._config = config
        self._key_deserializer = find_deserializer("key.deserializer", config["key.deserializer"])
        self._value_deserializer = find_deserializer("value.deserializer", config["value.deserializer"])
        self._is_explicit = config["share.acknowledgement.mode"] == "explicit"
        self._max_records: int = config["max.poll.records"]
        self._api_timeout_s: float = config["default.api.timeout.ms"] / 1000
        self._network = Network(config, in_flight_limit=IN_FLIGHT_LIMIT, environment=self._environment)
        self._network.metadata.allow_creation = config["allow.auto.create.topics"]
        self._subscription = Subscription()
        coordinator = Coordinator(self._network, config["group.id"])
        self._membership = ShareMembership(self._network, coordinator, self._subscription, config)
        has_deserializer = self._key_deserializer is not None or self._value_deserializer is not None
        self._deliveries = ShareDeliveries(self._deserialized if has_deserializer else None)
        self._fetcher = ShareFetcher(
            self._network,
            self._subscription,
            config,
            ShareRequests(config, self._membership.member_id),
            self._deliveries,
            self._on_completed,
        )
        self._network.tasks += [self._membership, self._fetcher]
        self._telemetry = start_telemetry(self._network, config, self.metrics)
        self._callback: OnAcknowledged | None = None
        self._is_in_callback = False
        self._completed: deque[tuple[TopicPartition, Acknowledgements, ApiError | None]] = deque()
        self._unread: list[ConsumerRecord] = []  # polled by iteration but not returned yet, in reverse order
        self._single_thread = SingleThread("KafkaShareConsumer")
        self._is_closed = False
        self._network.start()

    def __repr__(self) -> str:
        state = " closed" if self._is_closed else ""
        return f"<ShareConsumer client_id={self._config['client.id']!r} group_id={self._config['group.id']!r}{state}>"

    @property
    def config(self) -> ClientConfig:
        """The configuration as typed values, such as `config["max.poll.records"]`."""
        return self._config

    # Subscription

    @by_one_thread
    def subscribe(self, topics: Iterable[str] | str) -> None:
        """Subscribes to these topics instead of the previous ones; without topics, unsubscribes.

        Does not block, unless it unsubscribes. The member joins the group with the next poll. Raises ValueError for an
        empty name.
        """
        self._check_usable()
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            self.unsubscribe()
            return
        if any(not name or name.isspace() for name in names):
            raise ValueError("Topic collection to subscribe to cannot contain null or empty topic")
        with self._network.lock:
            self._subscription.subscribe(names)
            self._network.metadata.set_topics(self._subscription.topics)
            self._membership.subscription_changed()
            self._membership.last_poll_ms = self._network.clock.monotonic_ms()

    @by_one_thread
    def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription. Blocks for five seconds at most.

        The records of the last poll can still be acknowledged and committed.
        """
        self._check_usable()
        with self._network.uninterrupted():
            self._leave(self._api_timeout_s)
        with self._network.lock:
            self._subscription.unsubscribe()
            self._network.metadata.set_topics(())

    @by_one_thread
    def subscription(self) -> frozenset[str]:
        """Returns the subscribed topics."""
        self._check_usable()
        return self._subscription.topics

    # Records

    @by_one_thread
    def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Returns the next records; blocks up to `timeout` seconds while there are none.

        The broker acquires whole batches, so that a poll may return more than `max.poll.records` records, unless
        `share.acquire.mode=record_limit`. An acknowledgement of the type RENEW extends the acquisition lock of its
        record. If records of the last poll were acknowledged in this way, the poll returns these records again, and no
        others. A member must poll at least every `max.poll.interval.ms`.

        Raises AcknowledgementError in explicit mode if a record of the last poll is not acknowledged; UnreadableRecords
        for records that are damaged or cannot be deserialized; ApiError for an error that is not retried; NotSubscribed
        without a subscription; WakeupError after `wakeup`.
        """
        self._check_usable()
        self._raise_errors()
        self._call_back()
        if self._unread:
            unread = ConsumerRecords(reversed(self._unread))
            self._unread.clear()
            return unread
        if not self._is_explicit:
            self._deliveries.accept_all()
        elif not self._deliveries.is_acknowledged:
            raise AcknowledgementError("All records must be acknowledged in explicit acknowledgement mode.")
        if not self._subscription.is_automatic:
            raise NotSubscribed("Consumer is not subscribed to any topics.")
        try:
            return ConsumerRecords(self._poll(timeout))
        finally:
            self._call_back()

    def _poll(self, timeout: float) -> list[ConsumerRecord]:
        """Sends the acknowledgements of the last poll, waits up to `timeout` seconds for records, and returns them."""
        end_ms = self._network.clock.monotonic_ms() + int(timeout * 1000)
        self._network.raise_if_interrupted()
        with self._network.lock:
            self._membership.last_poll_ms = self._network.clock.monotonic_ms()
            if self._membership.rejoin_wanted:
                self._membership.begin_join()
            earlier = self._deliveries.take()
            if self._deliveries.has_records:
                self._fetcher.commit(earlier, self._deadline_ms(self._api_timeout_s))
            else:
                self._fetcher.fetch(earlier, self._deadline_ms(self._api_timeout_s))
        while True:
            records = self._collect()
            if records:
                self._network.try_step()  # sends the acknowledgements of the last poll
                return records
            self._raise_errors()
            left_ms = end_ms - self._network.clock.monotonic_ms()
            if left_ms <= 0:
                self._network.try_step()
                return self._collect()
            self._network.wait_until(self._has_result, left_ms / 1000)

    def _collect(self) -> list[ConsumerRecord]:
        """Returns the records whose locks were renewed, or otherwise buffered records.

        If there are none, asks the fetcher to fetch some, and returns an empty list.
        """
        with self._network.lock:
            records = self._deliveries.collect_renewed()
        records = records or self._deliveries.collect(self._max_records)
        if not records and not self._deliveries.is_renewing:
            with self._network.lock:
                gaps = self._deliveries.take()
                if gaps or not (self._fetcher.wants_records or self._deliveries.has_buffers):
                    self._fetcher.fetch(gaps, self._deadline_ms(self._api_timeout_s))
        return records

    def _has_result(self) -> bool:
        needs_fetch = not (self._fetcher.wants_records or self._deliveries.is_renewing)
        return self._deliveries.has_records or needs_fetch or self._has_error()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Returns an iterator over the records that never ends; it blocks while there is no record.

        In implicit mode the records of one poll are accepted together, when the iterator needs the next poll; `commit`
        accepts the records that the iterator has returned so far.
        """
        rest = self._unread
        while True:
            while rest:
                yield rest.pop()
            rest += reversed(self.poll(1.0))

    def wakeup(self) -> None:
        """Makes the call that blocks now, or else the next call that blocks, raise WakeupError.

        May be called by any thread. `close` and `unsubscribe` are not interrupted.
        """
        self._network.interrupt()

    def forget_wakeup(self) -> None:
        """Cancels a `wakeup` for which no call has raised WakeupError yet."""
        self._network.forget_interrupt()

    # Acknowledgements

    @by_one_thread
    def acknowledge(self, record: ConsumerRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledges a record of the last poll; the next `poll` or `commit` sends it. Does not block.

        A second call for the same record overrides the first one. Raises AcknowledgementError in implicit mode, and for
        a record that was not returned by the last poll or whose acknowledgement was committed.
        """
        self._check_explicit()
        self._deliveries.acknowledge(record.topic, record.partition, record.offset, AcknowledgeType(kind), record)

    @by_one_thread
    def acknowledge_offset(
        self, partition: TopicPartition | tuple[str, int], offset: int, kind: AcknowledgeType
    ) -> None:
        """Acknowledges a record that `poll` could not return and for which it has raised UnreadableRecords.

        Raises AcknowledgementError in implicit mode, and for an offset for which the last poll has not raised
        UnreadableRecords.
        """
        self._check_explicit()
        topic, number = partition
        self._deliveries.acknowledge(topic, number, offset, AcknowledgeType(kind), None)

    @by_one_thread
    def commit(self, timeout: float | None = None) -> Results:
        """Sends the acknowledgements, blocks until they have results, and returns the error of each partition.

        The error is None after a success. Raises RequestTimedOut after `timeout` seconds.
        """
        self._check_usable()
        self._call_back()
        limit = self._api_timeout_s if timeout is None else timeout
        taken = self._taken_for_commit()
        results: Results = {}
        missing = len(taken)

        def on_result(source: ShareSource, acknowledgements: Acknowledgements, error: ApiError | None) -> None:
            nonlocal missing
            results[source.partition.topic_partition] = error
            missing -= 1

        if not taken:
            return results
        with self._network.lock:
            self._fetcher.commit(taken, self._deadline_ms(limit), on_result)
        if not self._network.wait_until(lambda: missing == 0, limit):
            raise self._network.timed_out(f"Timeout of {limit} s expired before the records were acknowledged")
        self._call_back()
        return results

    @by_one_thread
    def commit_async(self) -> None:
        """Sends the acknowledgements without blocking.

        The function that was set with `set_acknowledgement_commit_callback` receives the results.
        """
        self._check_usable()
        self._call_back()
        taken = self._taken_for_commit()
        if taken:
            with self._network.lock:
                self._fetcher.commit(taken, self._deadline_ms(self._api_timeout_s))
            self._network.try_step()
            self._network.wake_for(0)

    @by_one_thread
    def set_acknowledgement_commit_callback(self, callback: OnAcknowledged | None) -> None:
        """Sets the function that receives the results of acknowledgements; None for no function.

        `callback(offsets, error)` is called within `poll`, `commit`, `commit_async` and `close`, once for each
        partition of a request: `offsets` has the partition and its acknowledged offsets, and `error` is None after a
        success. If it calls methods of the consumer, they raise AcknowledgementError. An exception that it raises is
        logged.
        """
        self._check_usable()
        self._callback = callback
        if callback is None:
            self._completed.clear()

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The time in ms for which the broker locks the records of the last poll; None before the first record."""
        return self._deliveries.lock_timeout_ms

    def metrics(self) -> Metrics:
        """Returns the metrics of this consumer's connections, by name, group and tags as in Java. Does not block."""
        from kafkapy.client.metric_names import connection_metrics

        return connection_metrics(self._network)

    @by_one_thread
    def close(self, timeout: float = 30.0) -> None:
        """Sends the acknowledgements that were made, releases all other records, leaves the group, and disconnects.

        Blocks up to `timeout` seconds or `request.timeout.ms`, whichever is shorter. May be called again.
        """
        if self._is_closed:
            return
        self._check_usable()
        self._is_closed = True
        limit = min(timeout, self._config["request.timeout.ms"] / 1000)
        end_ms = self._deadline_ms(limit)
        try:
            with self._network.uninterrupted():
                with self._network.lock:
                    self._fetcher.close(self._deliveries.take(), end_ms)
                self._network.wait_until(lambda: self._fetcher.is_idle, limit)
                self._leave(max(end_ms - self._network.clock.monotonic_ms(), 0) / 1000)
        finally:
            if self._telemetry is not None:
                self._telemetry.end()
            self._network.close()
            self._call_back()

    # Internal

    def _taken_for_commit(self) -> ToSend:
        if not self._is_explicit:
            self._deliveries.accept_all(self._unread)
        with self._network.lock:
            return self._deliveries.take()

    def _deadline_ms(self, timeout_s: float) -> int:
        return self._network.clock.monotonic_ms() + int(timeout_s * 1000)

    def _leave(self, timeout_s: float) -> None:
        has_left: list[bool] = []
        with self._network.lock:
            self._membership.send_leave("the consumer unsubscribed from all topics", lambda: has_left.append(True))
            self._membership.forget_membership(lost=False)
        self._network.wait_until(lambda: bool(has_left), min(timeout_s, LONGEST_LEAVING_S))

    def _on_completed(self, source: ShareSource, acknowledgements: Acknowledgements, error: ApiError | None) -> None:
        if self._callback is not None:
            self._completed.append((source.partition.topic_partition, acknowledgements, error))

    def _call_back(self) -> None:
        while self._completed and self._callback is not None:
            partition, acknowledgements, error = self._completed.popleft()
            self._is_in_callback = True
            try:
                self._callback({partition: acknowledgements.offsets()}, error)
            except Exception:
                log.exception("The callback of acknowledgements has failed")
            finally:
                self._is_in_callback = False

    def _has_error(self) -> bool:
        return bool(self._membership.fatal or self._membership.failure or self._fetcher.errors or self._refused_topic())

    def _refused_topic(self) -> ApiError | None:
        errors = self._network.cluster.errors
        for topic in self._subscription.topics:
            error = errors.get(topic, Error.NONE)
            if error in _REFUSED_TOPIC:
                return ApiError(error, _REFUSED_TOPIC[error].format(topic))
        return None

    def _raise_errors(self) -> None:
        """Raises the first error of the membership, of a fetch, or of a subscribed topic; returns if there is none."""
        if self._membership.fatal is not None:
            raise self._membership.fatal
        failure, self._membership.failure = self._membership.failure, None
        if failure is not None:
            raise failure
        if self._fetcher.errors:
            raise self._fetcher.errors.pop(0)
        refused = self._refused_topic()
        if refused is not None:
            raise refused

    def _deserialized(self, record: ConsumerRecord) -> ConsumerRecord:
        key, value = record.key, record.value
        if self._key_deserializer is not None:
            key = self._key_deserializer(record.topic, key)
        if self._value_deserializer is not None:
            value = self._value_deserializer(record.topic, value)
        return record.with_content(key, value)

    def _check_explicit(self) -> None:
        self._check_usable()
        if not self._is_explicit:
            raise AcknowledgementError("Implicit acknowledgement of delivery is being used.")

    def _check_usable(self) -> None:
        if self._is_in_callback:
            raise AcknowledgementError(
                "ShareConsumer methods are not accessible from user-defined acknowledgement commit callback."
            )
        if self._is_closed:
            raise ClientClosed("This consumer has already been closed.")
