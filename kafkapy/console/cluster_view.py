"""The data of one cluster that the pages show: topics, sizes, offsets and groups, from a few requests for all topics
together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from kafkapy.client import Admin
from kafkapy.client.admin import (
    EARLIEST,
    LATEST,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    GroupListing,
    LogDirDescription,
    PartitionDescription,
    ResourceType,
    Results,
    TopicDescription,
)
from kafkapy.console.broker_facts import BrokerFacts
from kafkapy.console.expiring import ExpiringCache
from kafkapy.console.history import History
from kafkapy.console.masking import Mask, MaskRule, mask_of
from kafkapy.console.problem import Problem
from kafkapy.console.schema_decoder import SchemaDecoder
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

T = TypeVar("T")
# Seconds for which a value may be shown after it was read. A page that shows many values reads each once.
FRESH_S = 2.0
SLOW_S = 10.0
CACHED_VALUES = 400
PAGE_TIMEOUT_MS = 10_000
REACH_S = 0.2


class TopicSummary(NamedTuple):
    """A topic in a list. `bytes` is the size of all its replicas, or None if no broker has reported a size."""

    name: str
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    bytes: int | None

    @property
    def replication_factor(self) -> int:
        """The greatest number of replicas of a partition."""
        return max((len(each.replicas) for each in self.partitions), default=0)

    @property
    def under_replicated(self) -> int:
        """The number of partitions with a replica outside of the ISR."""
        return sum(len(each.isr) < len(each.replicas) for each in self.partitions)

    @property
    def offline(self) -> int:
        """The number of partitions without a leader."""
        return sum(each.leader < 0 for each in self.partitions)

    def keys(self) -> list[TopicPartition]:
        """Returns the topic's partitions."""
        return [TopicPartition(self.name, each.partition) for each in self.partitions]


class Ends(NamedTuple):
    """The offset of a partition's first record, and the offset after its last record.

    Each is None if it cannot be read.
    """

    first: int | None
    end: int | None

    @property
    def length(self) -> int | None:
        """The number of offsets from the first record to the end of the log; None if an end is unknown.

        It may be greater than the number of records, because of compaction and of transaction markers.
        """
        return None if self.first is None or self.end is None else max(self.end - self.first, 0)


class ClusterView:
    """One cluster, read with the permissions of one user. Thread-safe; the first request opens the connections.

    `history` has the figures of the cluster over time; it is None if the figures are not sampled for this user.
    """

    def __init__(
        self,
        name: str,
        properties: Mapping[str, Any],
        metadata_directory: str | None = None,
        schemas: SchemaDecoder | None = None,
        zookeeper: str = "",
        mask_rules: Sequence[MaskRule] = (),
        facts: BrokerFacts | None = None,
    ) -> None:
        """Stores `properties`, the configuration of the clients, which has `bootstrap.servers`. Does not connect.

        `metadata_directory` is a log directory of this machine from which to read the metadata log, or None. `schemas`
        decodes keys and values with the schemas of the cluster's registry, or is None. `zookeeper` is the connect
        string of the ZooKeeper with the offsets of old consumers, or "". `mask_rules` name the parts of records that no
        user sees. `facts` reads facts from the brokers' metrics listeners; it is None if no listener is known.
        """
        self.name = name
        self.facts = facts or BrokerFacts(())
        self.schemas = schemas
        self.zookeeper = zookeeper
        self._mask_rules = mask_rules
        self.history: History | None = None
        self.metadata_directory = metadata_directory
        self.properties = {"default.api.timeout.ms": PAGE_TIMEOUT_MS, "client.id": "kafkapy-console", **properties}
        self._admin: Admin | None = None
        self._cache = ExpiringCache(CACHED_VALUES)
        self._lock = Lock()

    @property
    def servers(self) -> str:
        """The value of `bootstrap.servers`, the addresses to which a client connects first."""
        return str(self.properties["bootstrap.servers"])

    @property
    def admin(self) -> Admin:
        """The admin client. Raises ConfigError if the properties are invalid."""
        with self._lock:
            if self._admin is None:
                self._admin = Admin(self.properties)
            return self._admin

    def check_reachable(self) -> None:
        """Raises Problem if none of the bootstrap servers accepts a connection.

        Without this check a client would try to connect until its time-out, and the page's thread would be blocked.
        """
        self._cache.get("reachable", FRESH_S, self._connect)

    def _connect(self) -> None:
        try:
            await_broker({"bootstrap.servers": self.servers}, REACH_S)
        except ToolError as error:
            raise Problem(504, f"The cluster {self.name} cannot be reached. {error}") from None

    def close(self) -> None:
        """Closes the connections; a later request opens them again."""
        with self._lock:
            admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def forget(self) -> None:
        """Removes all cached values. Called after a change of the cluster, because the values are then outdated."""
        self._cache.clear()

    # The cluster

    def describe(self) -> ClusterDescription:
        """Returns the brokers and the controller."""
        return self._cache.get("cluster", FRESH_S, lambda: self.admin.describe_cluster(include_fenced=False))

    def log_dirs(self) -> Results[int, dict[str, LogDirDescription]]:
        """Returns the log directories of all brokers, from one request to each broker."""
        return self._cache.get("log_dirs", SLOW_S, self.admin.describe_log_dirs)

    def topics(self) -> dict[str, TopicSummary]:
        """Returns all topics by name, from one request for metadata and one request for sizes to each broker."""
        return self._cache.get("topics", FRESH_S, self._read_topics)

    def _read_topics(self) -> dict[str, TopicSummary]:
        sizes = self.topic_bytes()
        return {
            name: TopicSummary(name, topic.is_internal, topic.partitions, sizes.get(name))
            for name, topic in sorted(self.admin.describe_all_topics().items())
        }

    def topic_bytes(self) -> dict[str, int]:
        """Returns the total size in bytes of all replicas of each topic; empty if the user may not read sizes."""
        return self._cache.get("bytes", SLOW_S, self._read_bytes)

    def _read_bytes(self) -> dict[str, int]:
        sizes: dict[str, int] = defaultdict(int)
        try:
            found = self.log_dirs()
        except ApiError:
            return {}
        for directories in found.values.values():
            for directory in directories.values():
                for partition, replica in directory.replicas.items():
                    sizes[partition.topic] += replica.size
        return dict(sizes)

    # Topics

    def topic(self, name: str) -> TopicDescription:
        """Returns one topic. Raises Problem if the topic does not exist, and ApiError if the user may not see it."""

        def read() -> TopicDescription:
            found = self.admin.describe_topics([name])
            error = found.errors.get(name)
            if error is not None and error.error.name.startswith(("UNKNOWN_TOPIC", "INVALID_TOPIC")):
                raise Problem(404, f"The topic {name!r} does not exist. It may have been deleted.")
            return found[name]

        return self._cache.get(("topic", name), FRESH_S, read)

    def ends(
        self, partitions: Collection[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, Ends]:
        """Returns the first and the end offset of each partition.

        Sends two requests to each broker that leads any of the partitions. The end offset is the last stable offset if
        `read_committed` is True, otherwise the high watermark.
        """
        key = ("ends", frozenset(partitions), read_committed)
        return self._cache.get(key, FRESH_S, lambda: self._read_ends(partitions, read_committed))

    def _read_ends(self, partitions: Collection[TopicPartition], read_committed: bool) -> dict[TopicPartition, Ends]:
        if not partitions:
            return {}
        first = self.admin.list_offsets(dict.fromkeys(partitions, EARLIEST)).values
        last = self.admin.list_offsets(dict.fromkeys(partitions, LATEST), read_committed=read_committed).values
        return {
            each: Ends(
                first[each].offset if each in first else None,
                last[each].offset if each in last else None,
            )
            for each in partitions
        }

    def offsets_at(self, partitions: Iterable[TopicPartition], wall_ms: int) -> dict[TopicPartition, int]:
        """Returns, for each partition, the offset of the first record that is not older than `wall_ms` (ms since 1970).

        The offset is -1 if there is no such record. Partitions whose leader returned an error are left out.
        """
        found = self.admin.list_offsets(dict.fromkeys(partitions, wall_ms))
        return {partition: each.offset for partition, each in found.values.items()}

    def configuration(self, kind: ResourceType, name: str) -> list[ConfigEntry]:
        """Returns the configuration entries of a topic, broker or group, sorted by key, with their documentation."""
        resource = ConfigResource(kind, name)

        def read() -> list[ConfigEntry]:
            found = self.admin.describe_configs([resource], include_synonyms=True, include_documentation=True)
            return sorted(found[resource].values())

        return self._cache.get(resource, FRESH_S, read)

    def mask(self, topic: str) -> Mask:
        """Returns the parts of a topic's records that no user of the console sees."""
        return mask_of(self._mask_rules, topic)

    def check_unmasked(self, topic: str, what: str) -> None:
        """Raises Problem if the topic has a masking rule; `what` is the action that would show or copy its content."""
        if self.mask(topic):
            raise Problem(403, f"{what} is not allowed: the topic {topic} has a masking rule.")

    # Groups

    def groups(self) -> list[GroupListing]:
        """Returns the groups of all brokers."""
        return self._cache.get("groups", FRESH_S, lambda: sorted(self.admin.list_groups()))

    def cached(self, key: str, max_age_s: float, read: Callable[[], T]) -> T:
        """Returns the result of `read()` that the cache has stored under `key`, or calls `read` and stores its result.

        A stored result is returned for `max_age_s` seconds, and until `forget` is called.
        """
        return self._cache.get((key, "further"), max_age_s, read)
