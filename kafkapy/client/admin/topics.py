"""Topics: create, list, describe, delete, and add partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import constant, error_of
from kafkapy.client.admin.results import Results
from kafkapy.client.cluster import repr_with_text_ids
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.types import ZERO_UUID

PARTITIONS_OF_A_RESPONSE = 2000
# The first version of Metadata whose topics may be given by id alone.
FIRST_METADATA_BY_ID = 12


@dataclass(frozen=True)
class NewTopic:
    """A topic to create.

    `partitions` and `replication_factor` of -1 mean the broker's defaults. `assignments` (partition -> broker ids, the
    preferred leader first) replaces both counts. `configs` are the topic's configuration keys.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)


class CreatedTopic(NamedTuple):
    """A created topic; its data are incomplete if the broker is older than Apache Kafka 2.8.

    Without data from the broker `topic_id` is all zeros, the two counts are -1, and `configs` is empty.
    """

    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: dict[str, str | None]

    def __repr__(self) -> str:
        return repr_with_text_ids(self)


class TopicListing(NamedTuple):
    """The name, id and kind of a topic."""

    name: str
    topic_id: bytes
    is_internal: bool

    def __repr__(self) -> str:
        return repr_with_text_ids(self)


class PartitionDescription(NamedTuple):
    """A partition and the broker ids of its replicas; `leader` is -1 if there is none.

    `elr` and `last_known_elr` (eligible leader replicas, KIP-966) are None if the broker does not report them.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic and its partitions, ordered by number."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    def __repr__(self) -> str:
        return repr_with_text_ids(self)


class NewPartitions(NamedTuple):
    """The new number of partitions of a topic, `total`.

    `assignments` has, for each partition that is added, the broker ids of its replicas; None lets the cluster choose
    them.
    """

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicOperations(AdminLookups):
    """Operations on topics."""

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, CreatedTopic]:
        """Creates topics; with `validate_only` the broker only checks the request. Blocks.

        An existing topic has the error TOPIC_ALREADY_EXISTS. Raises TypeError if a topic is not a NewTopic.
        """
        deadline_ms = self._deadline_ms(timeout)
        wanted = [_creatable(topic) for topic in topics]

        def build(version: int) -> CreateTopicsRequest:
            if validate_only and version < 1:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot validate without a change.")
            left_ms = self._left_ms(deadline_ms)
            return CreateTopicsRequest(topics=wanted, timeout_ms=left_ms, validate_only=validate_only)

        response = self._request(
            self._controller,
            ApiKey.CREATE_TOPICS,
            build,
            deadline_ms=deadline_ms,
        )
        results: Results[str, CreatedTopic] = Results()
        for result in response.topics:
            configs = {each.name: each.value for each in result.configs or ()}
            created = CreatedTopic(result.topic_id, result.num_partitions, result.replication_factor, configs)
            results.put(result.name, error_of(result) or created)
        return results

    def delete_topics(
        self, topics: Iterable[str | bytes], *, timeout: float | None = None
    ) -> Results[str | bytes, None]:
        """Deletes topics by name, or by id (16 bytes, Apache Kafka 2.8 or newer). Blocks."""
        deadline_ms = self._deadline_ms(timeout)
        wanted = list(dict.fromkeys(topics))

        def build(version: int) -> DeleteTopicsRequest:
            left_ms = self._left_ms(deadline_ms)
            if version >= 6:
                states = [
                    DeleteTopicsRequest.DeleteTopicState(name=each)
                    if isinstance(each, str)
                    else DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=each)
                    for each in wanted
                ]
                return DeleteTopicsRequest(topics=states, timeout_ms=left_ms)
            names = [each for each in wanted if isinstance(each, str)]
            if len(names) < len(wanted):
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker deletes topics by name only.")
            return DeleteTopicsRequest(topic_names=names, timeout_ms=left_ms)

        response = self._request(
            self._controller,
            ApiKey.DELETE_TOPICS,
            build,
            deadline_ms=deadline_ms,
        )
        results: Results[str | bytes, None] = Results()
        for result in response.responses:
            results.put(result.name if result.name in wanted else result.topic_id, error_of(result))
        return results

    def list_topics(self, *, include_internal: bool = False, timeout: float | None = None) -> dict[str, TopicListing]:
        """Returns the topics by name; internal topics are left out unless `include_internal` is True. Blocks."""
        response = self._metadata(None, self._deadline_ms(timeout))
        return {
            result.name: TopicListing(result.name, result.topic_id, result.is_internal)
            for result in response.topics
            if result.name is not None and (include_internal or not result.is_internal)
        }

    def describe_topics(
        self,
        topics: Iterable[str] | None = None,
        *,
        page_size: int = PARTITIONS_OF_A_RESPONSE,
        timeout: float | None = None,
    ) -> Results[str, TopicDescription]:
        """Describes topics by name; None means all topics, including internal ones. Blocks.

        `page_size` is the number of partitions in one response. A topic that does not exist has the error
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        deadline_ms = self._deadline_ms(timeout)
        names = sorted(set(topics)) if topics is not None else None
        if names is None:
            names = sorted(each.name for each in self._metadata(None, deadline_ms).topics if each.name is not None)
        try:
            return self._describe_by_pages(names, page_size, deadline_ms)
        except ApiError as error:
            if error.error is not Error.UNSUPPORTED_VERSION:
                raise
        results: Results[str, TopicDescription] = Results()
        for result in self._metadata(names, deadline_ms).topics if names else ():
            results.put(result.name or "", error_of(result) or _described(result))
        return results

    def describe_all_topics(self, *, timeout: float | None = None) -> dict[str, TopicDescription]:
        """Describes all topics, including internal ones, with one Metadata request. Blocks.

        The eligible leader replicas (`elr`, `last_known_elr`) are None, since a metadata response does not contain
        them. Topics that have an error are left out.
        """
        response = self._metadata(None, self._deadline_ms(timeout))
        return {
            result.name: _described(result)
            for result in response.topics
            if result.name is not None and error_of(result) is None
        }

    def describe_topic_ids(
        self, topic_ids: Iterable[bytes], *, timeout: float | None = None
    ) -> Results[bytes, TopicDescription]:
        """Describes topics by id (16 bytes, Apache Kafka 3.1 or newer). Blocks."""
        wanted = list(dict.fromkeys(topic_ids))

        def build(version: int) -> MetadataRequest:
            if version < FIRST_METADATA_BY_ID:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker describes topics by name only.")
            named = [MetadataRequest.MetadataRequestTopic(topic_id=each, name=None) for each in wanted]
            return MetadataRequest(topics=named, allow_auto_topic_creation=False)

        response = self._request(self._any_broker, ApiKey.METADATA, build, deadline_ms=self._deadline_ms(timeout))
        results: Results[bytes, TopicDescription] = Results()
        for result in response.topics:
            results.put(result.topic_id, error_of(result) or _described(result))
        return results

    def create_partitions(
        self, topics: Mapping[str, NewPartitions | int], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, None]:
        """Adds partitions to topics until each has the given total number, which cannot be undone. Blocks.

        With `validate_only` the broker only checks the request. The error is INVALID_PARTITIONS if a topic has that
        many partitions already.
        """
        deadline_ms = self._deadline_ms(timeout)
        wanted = []
        for name, new in topics.items():
            total, assignments = (new, None) if isinstance(new, int) else new
            brokers = None
            if assignments is not None:
                brokers = [
                    CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments
                ]
            wanted.append(CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=total, assignments=brokers))
        response = self._request(
            self._controller,
            ApiKey.CREATE_PARTITIONS,
            lambda version: CreatePartitionsRequest(
                topics=wanted, timeout_ms=self._left_ms(deadline_ms), validate_only=validate_only
            ),
            deadline_ms=deadline_ms,
        )
        results: Results[str, None] = Results()
        for result in response.results:
            results.put(result.name, error_of(result))
        return results

    def _describe_by_pages(
        self, names: Collection[str], page_size: int, deadline_ms: int
    ) -> Results[str, TopicDescription]:
        """Describes topics with DescribeTopicPartitions requests, which return at most `page_size` partitions each.

        Raises ApiError with UNSUPPORTED_VERSION before Apache Kafka 3.7.
        """
        results: Results[str, TopicDescription] = Results()
        partitions: dict[str, list[PartitionDescription]] = {}
        descriptions: dict[str, Any] = {}
        cursor: Any = None
        left = list(names)
        while left:
            message = DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in left],
                response_partition_limit=page_size,
                cursor=cursor,
            )
            response = self._request(
                self._any_broker,
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                constant(message),
                deadline_ms=deadline_ms,
            )
            for result in response.topics:
                name = result.name or ""
                error = error_of(result)
                if error is not None:
                    results.errors[name] = error
                else:
                    descriptions[name] = result
                    partitions.setdefault(name, []).extend(map(_partition, result.partitions))
            following = response.next_cursor
            if following is None:
                break
            cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )
            left = [name for name in left if name >= following.topic_name]
        for name, result in descriptions.items():
            found = tuple(sorted(partitions[name]))
            results.values[name] = TopicDescription(name, result.topic_id, result.is_internal, found)
        return results


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    if not isinstance(topic, NewTopic):
        raise TypeError(f"topics must be NewTopic, not {type(topic).__name__}: use NewTopic({topic!r})")
    assigned = topic.assignments or {}
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned else topic.partitions,
        replication_factor=-1 if assigned else topic.replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in assigned.items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _described(result: Any) -> TopicDescription:
    """Converts a topic of a metadata response to a TopicDescription."""
    return TopicDescription(
        result.name or "",
        result.topic_id or ZERO_UUID,
        result.is_internal,
        tuple(
            sorted(
                PartitionDescription(
                    each.partition_index,
                    each.leader_id,
                    each.leader_epoch,
                    tuple(each.replica_nodes),
                    tuple(each.isr_nodes),
                    tuple(each.offline_replicas),
                )
                for each in result.partitions
            )
        ),
    )


def _partition(result: Any) -> PartitionDescription:
    """Converts a partition of a DescribeTopicPartitions response, including its eligible leader replicas."""
    elr, last_known = result.eligible_leader_replicas, result.last_known_elr
    return PartitionDescription(
        result.partition_index,
        result.leader_id,
        result.leader_epoch,
        tuple(result.replica_nodes),
        tuple(result.isr_nodes),
        tuple(result.offline_replicas),
        None if elr is None else tuple(elr),
        None if last_known is None else tuple(last_known),
    )
