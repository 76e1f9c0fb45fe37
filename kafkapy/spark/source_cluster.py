"""Asks the brokers, on the driver, for the partitions to read and for their first and last offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from kafkapy.client.cluster import TopicInfo
from kafkapy.client.configuration import consumer_config
from kafkapy.client.environment import SYSTEM
from kafkapy.client.network import Network
from kafkapy.client.offset_lookup import look_up_all
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.start_and_end import EARLIEST, LATEST
from kafkapy.types import ZERO_UUID, Clock, TopicPartition, uuid_to_string

IN_FLIGHT_LIMIT = 100
CLIENT_ID = "kafkapy-spark"
Result = TypeVar("Result")


class SourcePartitions(NamedTuple):
    """The partitions that the options select and that exist now.

    `ids` maps each topic's name to its id; `missing` has the topics that the options name, but that do not exist.
    """

    partitions: list[TopicPartition]
    ids: dict[str, str]
    missing: list[str]


class SourceCluster:
    """A client of the cluster that looks up partitions and offsets. It never creates a topic. For one thread.

    A request that fails with an ApiError is repeated at most `fetchOffset.numRetries` times, with a pause before each
    repetition. If the brokers do not respond within `default.api.timeout.ms`, a TimeoutError is raised, and the request
    is not repeated.
    """

    def __init__(self, options: ReadOptions, *, clock: Clock | None = None) -> None:
        self._options = options
        properties = {"client.id": CLIENT_ID, **options.properties, "auto.offset.reset": "none"}
        properties.pop("group.id", None)
        config = consumer_config(properties)
        self._isolation_level = 1 if config["isolation.level"] == "read_committed" else 0
        self._timeout_s: float = config["default.api.timeout.ms"] / 1000
        selection = options.selection
        self._names = {*selection.topics, *(each.topic for each in selection.partitions)}
        environment = SYSTEM if clock is None else SYSTEM._replace(clock=clock)
        self._network = Network(config, in_flight_limit=IN_FLIGHT_LIMIT, environment=environment)
        self._network.metadata.allow_creation = False
        with self._network.lock:
            self._network.metadata.set_topics(self._names, wants_all=selection.pattern is not None)
        self._network.start()

    def close(self) -> None:
        self._network.close()

    def partitions(self) -> SourcePartitions:
        """Returns the partitions that exist now and that the option subscribe, subscribePattern or assign chooses."""
        return self._retried(self._partitions)

    def earliest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the first offset of each partition."""
        return {
            partition: offset or 0 for partition, offset in self.look_up(dict.fromkeys(partitions, EARLIEST)).items()
        }

    def latest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the offset after the last record of each partition that the query may read.

        With `isolation.level=read_committed` this is the last stable offset.
        """
        return {partition: offset or 0 for partition, offset in self.look_up(dict.fromkeys(partitions, LATEST)).items()}

    def look_up(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Returns an offset for each partition. `wanted` maps each partition to a timestamp (ms since 1970), to
        EARLIEST or to LATEST.

        The offset is None for a partition whose records are all older than its timestamp.
        """

        def ask() -> dict[TopicPartition, int | None]:
            found = look_up_all(self._network, wanted, self._isolation_level, self._timeout_s)
            return {partition: None if each is None else each.offset for partition, each in found.items()}

        return self._retried(ask) if wanted else {}

    def _retried(self, ask: Callable[[], Result]) -> Result:
        for _ in range(self._options.retries):
            try:
                return ask()
            except TimeoutError:  # some of them are an ApiError too
                raise
            except ApiError:
                time.sleep(self._options.retry_interval_ms / 1000)
        return ask()

    def _partitions(self) -> SourcePartitions:
        topics = self._selected(self._topics())
        selection = self._options.selection
        found = [
            TopicPartition(info.name, each.partition) for _, info in sorted(topics.items()) for each in info.partitions
        ]
        if selection.partitions:
            missing = [each for each in selection.partitions if each.topic in topics and each not in found]
            if missing:
                code = Error.UNKNOWN_TOPIC_OR_PARTITION
                raise ApiError(code, f"Partition {', '.join(map(str, missing))}: {code.message}")
            found = [each for each in selection.partitions if each in found]
        ids = {name: uuid_to_string(info.topic_id) for name, info in topics.items() if info.topic_id != ZERO_UUID}
        return SourcePartitions(found, ids, sorted(self._names - set(topics)))

    def _topics(self) -> dict[str, TopicInfo]:
        """Requests the topics' metadata, waits until all selected partitions have leaders, and returns the metadata."""
        network = self._network
        assigned = frozenset(self._options.selection.partitions)
        with network.lock:
            network.metadata.request_update()
            seen = network.metadata.updates

        def is_fresh() -> bool:
            if network.metadata.updates <= seen:
                return False
            cluster = network.cluster
            errors = {cluster.errors[name] for name in self._names & set(cluster.errors)}
            if any(error.retriable for error in errors - {Error.UNKNOWN_TOPIC_OR_PARTITION}):
                return False
            return all(
                each.leader >= 0 or (assigned and TopicPartition(info.name, each.partition) not in assigned)
                for info in self._selected(cluster.topics).values()
                for each in info.partitions
            )

        network.wake_for(0)
        if not network.wait_until(is_fresh, self._timeout_s):
            raise network.timed_out(f"No metadata of the topics within {self._timeout_s:g} s.")
        for name, error in network.cluster.errors.items():
            if name in self._names and error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise ApiError(error, f"Topic {name}: {error.message}")
        return dict(network.cluster.topics)

    def _selected(self, topics: Mapping[str, TopicInfo]) -> dict[str, TopicInfo]:
        """Returns those of the topics that match the option subscribePattern, or all without this option."""
        if self._options.selection.pattern is None:
            return dict(topics)
        pattern = re.compile(self._options.selection.pattern)
        return {name: info for name, info in topics.items() if pattern.fullmatch(name) and not info.is_internal}
