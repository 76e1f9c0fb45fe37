"""The router: sends each record to the topics that the rules choose, in one transaction with its offset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.consumer import ConsumerRecords
from kafkapy.client.reliable.chain_headers import ChainState, error_text, headers_after_failure
from kafkapy.client.reliable.chain_topics import RETAINED_FOREVER, ensure_topic, partition_count
from kafkapy.client.reliable.records import Output, SourceRecord
from kafkapy.client.reliable.refusals import Refusals
from kafkapy.client.reliable.relay import IDLE_WAIT_S, Batch, Relay, admin_keys, unfinished
from kafkapy.client.reliable.routing import MOST_HOPS, RoutingTable
from kafkapy.errors import ConfigError
from kafkapy.types import TopicPartition


class RoutingLoop(Exception):
    """A record has passed too many routers."""


class Router:
    """Routes records as a member of a group.

    A record that cannot be sent to the chosen topics becomes a dead letter in `SOURCE.dlt`, with the reason in its
    headers.
    """

    def __init__(
        self, properties: Mapping[str, Any], group: str, table: RoutingTable, *, instance: str | None = None
    ) -> None:
        """Connects to the brokers, and creates the missing topics of dead letters.

        `table` has the rules. `instance` is a name for this process that no other process of the group has at the same
        time. Raises ConfigError if a source or a target does not exist.
        """
        self._table = table
        self._group = group
        self._refusals = Refusals()
        with Admin(admin_keys(properties)) as admin:
            for topic in sorted(table.targets):
                if partition_count(admin, topic) is None:
                    raise ConfigError(f"The topic {topic} does not exist, to which a rule sends records")
            for topic in table.sources:
                count = partition_count(admin, topic)
                if count is None:
                    raise ConfigError(f"The topic {topic} does not exist")
                ensure_topic(admin, f"{topic}.dlt", count, {"retention.ms": RETAINED_FOREVER})
        self.relay = Relay(properties, group, self, instance=instance)

    def topics(self) -> Collection[str]:
        return self._table.sources

    def assigned(self, relay: Relay, partitions: Collection[TopicPartition]) -> None:
        """Does nothing: a router has no state."""

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Does nothing: a router has no state."""

    def wait_s(self, now_ms: int) -> float:
        return IDLE_WAIT_S

    def step(self, relay: Relay, records: ConsumerRecords, batch: Batch) -> None:
        self._refusals.begin()
        for record in records:
            self._pass(relay, record, batch)
            batch.passed(TopicPartition(record.topic, record.partition), record.offset)
            if relay.is_single:
                break
        for partition, offset in unfinished(records, batch.offsets).items():
            relay.consumer.seek(partition, offset)

    def committed(self) -> None:
        self._refusals.committed()

    def aborted(self, error: Exception) -> None:
        self._refusals.aborted(error)

    def _pass(self, relay: Relay, record: SourceRecord, batch: Batch) -> None:
        place = (record.topic, record.partition, record.offset)
        if relay.is_single:
            self._refusals.tries(place)
        error = self._refusals.error_of(place)
        route = self._table.route(record)
        if error is None and route.is_loop:
            error = RoutingLoop(f"The record has passed more than {MOST_HOPS} routers")
            batch.counts["loops"] += 1
        if error is not None:
            self._bury(relay, record, error, batch)
            return
        for target in route.targets:
            batch.send(Output(target, record.value, record.key, route.headers, None, max(record.timestamp, 0)))
        batch.counts["read"] += 1
        batch.counts["sent"] += len(route.targets)
        batch.counts["invalid_json"] += route.has_invalid_json
        batch.counts["unmatched"] += not route.rules
        for name in route.rules:
            batch.counts[f"rule {name}"] += 1

    def _bury(self, relay: Relay, record: SourceRecord, error: Exception, batch: Batch) -> None:
        state = ChainState(record.topic, record.partition, record.offset, record.timestamp, attempts=1)
        headers = headers_after_failure(record.headers, state, error_text(error), self._group, is_dead=True)
        topic = f"{record.topic}.dlt"
        batch.send(Output(topic, record.value, record.key, headers, record.partition % relay.partition_count(topic)))
        batch.counts["dead"] += 1
