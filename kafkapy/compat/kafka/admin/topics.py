"""The operations that list, describe, create and delete topics."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkapy.client.admin.topics import FIRST_METADATA_BY_ID
from kafkapy.compat.kafka.admin.acls import with_operation_names
from kafkapy.compat.kafka.admin.configs import ConfigResourceType, take_config
from kafkapy.compat.kafka.admin.requests import AT_CONTROLLER, AdminRequests, as_dict, raise_error
from kafkapy.compat.kafka.errors import KafkaError, KafkaTimeoutError, for_code
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest

_POLL_S = 0.1
_Creatable = CreateTopicsRequest.CreatableTopic


class NewTopic:
    """A topic to create.

    `replica_assignments` has the broker ids of each partition. `num_partitions` and `replication_factor` are -1 if
    `replica_assignments` is given, or for the broker's default.
    """

    def __init__(
        self,
        name: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments = replica_assignments or {}
        self.topic_configs = topic_configs or {}


class TopicOperations(AdminRequests):
    """The methods of KafkaAdminClient for topics."""

    def list_topics(self) -> list[str]:
        """Returns the names of all topics."""
        return [topic["name"] for topic in self.describe_topics()]

    def describe_topics(self, topics: Iterable[str | uuid.UUID] | None = None) -> list[dict[str, Any]]:
        """Returns the metadata of topics, which are given by name or id, as the dictionaries of a Metadata response.

        None means all topics. Raises UnsupportedVersionError for an id if the broker is older than Apache Kafka 3.1.
        """
        return list(self._metadata(topics)["topics"])

    def _metadata(self, topics: Iterable[str | uuid.UUID] | None) -> dict[str, Any]:
        given = None if topics is None else list(topics)
        wanted = None if given is None else [_metadata_topic(each) for each in given]

        def build(version: int) -> MetadataRequest:
            if version < FIRST_METADATA_BY_ID and _has_id(given or ()):
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker describes topics by name only.")
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=_must_allow(version))
            if version >= MetadataRequest.FIRST_VERSION_WITH_INCLUDE_TOPIC_AUTHORIZED_OPERATIONS:
                request.include_topic_authorized_operations = True
            return request

        found = as_dict(self._ask(ApiKey.METADATA, build))
        with_operation_names(found, "cluster_authorized_operations")
        for topic in found["topics"]:
            with_operation_names(topic, "topic_authorized_operations")
        return found

    def create_topics(
        self,
        new_topics: Any,
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> dict[str, Any]:
        """Creates topics and returns the fields of the response.

        `new_topics` are names, NewTopics, or a dict of names and options (num_partitions, replication_factor,
        assignments, configs). If `wait_for_metadata`, blocks until each topic has leaders. If `raise_errors`, raises
        the error of the first topic that was not created.
        """
        if validate_only and wait_for_metadata:
            raise ValueError("validate_only and wait_for_metadata are mutually exclusive")
        topics = _creatable_topics(new_topics)
        request = CreateTopicsRequest(
            topics=topics, timeout_ms=self._timeout_ms(timeout_ms), validate_only=validate_only
        )
        response = self._ask(ApiKey.CREATE_TOPICS, request, AT_CONTROLLER, timeout_ms)
        if raise_errors:
            for each in response.topics:
                raise_error(each.error_code, f"{each.name}: {each.error_message}")
        if wait_for_metadata:
            self.wait_for_topics([each.name for each in topics])
        found = _without_throttle(as_dict(response))
        for topic in found["topics"]:
            configs = topic.pop("configs", None)
            if configs:
                topic["configs"] = {take_config(each, ConfigResourceType.TOPIC): each for each in configs}
        return found

    def wait_for_topics(self, topic_names: Iterable[str], timeout_ms: float = 10000) -> None:
        """Blocks until each partition of the topics has a leader. Raises KafkaTimeoutError after `timeout_ms`."""
        names = list(topic_names)
        end = time.monotonic() + timeout_ms / 1000
        while names:
            waiting = self._not_ready(names)
            if not waiting:
                return
            if time.monotonic() >= end:
                raise KafkaTimeoutError(f"Topics not ready after {timeout_ms} ms: {waiting}")
            time.sleep(_POLL_S)

    def _not_ready(self, names: Sequence[str]) -> dict[str, str]:
        """Returns the topics that cannot be used yet, each with the reason."""
        try:
            described = {topic["name"]: topic for topic in self.describe_topics(names)}
        except KafkaError as error:
            return dict.fromkeys(names, str(error))
        reasons = {name: _reason(described.get(name)) for name in names}
        return {name: reason for name, reason in reasons.items() if reason}

    def delete_topics(
        self, topics: Iterable[str | uuid.UUID], timeout_ms: float | None = None, raise_errors: bool = True
    ) -> dict[str, Any]:
        """Deletes topics, given by name or id, and returns the fields of the response.

        The results of the topics are in the field `topics`. If `raise_errors`, raises the first error. Raises
        UnsupportedVersionError, and deletes nothing, for an id if the broker does not know version 6 of the request.
        """
        given = list(topics)

        def build(version: int) -> DeleteTopicsRequest:
            request = DeleteTopicsRequest(timeout_ms=self._timeout_ms(timeout_ms))
            if version >= DeleteTopicsRequest.FIRST_VERSION_WITH_TOPICS:
                request.topics = [
                    DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=each.bytes)
                    if isinstance(each, uuid.UUID)
                    else DeleteTopicsRequest.DeleteTopicState(name=each)
                    for each in given
                ]
            elif _has_id(given):
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker deletes topics by name only.")
            else:
                request.topic_names = [each for each in given if isinstance(each, str)]
            return request

        response = self._ask(ApiKey.DELETE_TOPICS, build, AT_CONTROLLER, timeout_ms)
        if raise_errors:
            for each in response.responses:
                raise_error(each.error_code, f"{each.name}: {each.error_message}")
        found = _without_throttle(as_dict(response))
        found["topics"] = found.pop("responses")
        return found


def _must_allow(version: int) -> bool:
    """Returns True if a Metadata request of this version cannot forbid the automatic creation of topics.

    The request for such a version must keep `allow_auto_topic_creation` at its default, True, because the version does
    not contain this field.
    """
    return version < MetadataRequest.FIRST_VERSION_WITH_ALLOW_AUTO_TOPIC_CREATION


def _has_id(topics: Iterable[str | uuid.UUID]) -> bool:
    return any(isinstance(each, uuid.UUID) for each in topics)


def _metadata_topic(topic: str | uuid.UUID) -> MetadataRequest.MetadataRequestTopic:
    if isinstance(topic, uuid.UUID):
        return MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic.bytes)
    return MetadataRequest.MetadataRequestTopic(name=topic)


def _creatable_topics(new_topics: Any) -> list[Any]:
    """Converts topics to the structures that a CreateTopics request has for them.

    `new_topics` are names, or NewTopics, or a dict from names to options (num_partitions, replication_factor,
    assignments, configs). Raises ValueError if there are none, or if names and NewTopics are mixed.
    """
    if isinstance(new_topics, Mapping):
        found = [
            _creatable(
                name,
                options.get("num_partitions", -1),
                options.get("replication_factor", -1),
                options.get("assignments", {}),
                options.get("configs", {}),
            )
            for name, options in new_topics.items()
        ]
    else:
        given = list(new_topics)
        if all(isinstance(each, str) for each in given):
            found = [_creatable(name, -1, -1, {}, {}) for name in given]
        elif all(isinstance(each, NewTopic) for each in given):
            found = [
                _creatable(
                    each.name,
                    each.num_partitions,
                    each.replication_factor,
                    each.replica_assignments,
                    each.topic_configs,
                )
                for each in given
            ]
        else:
            found = []
    if not found:
        raise ValueError(f"No valid topics found in new_topics: {new_topics}")
    return found


def _creatable(
    name: str,
    partitions: int,
    factor: int,
    assignments: Mapping[int, Sequence[int]],
    configs: Mapping[str, Any],
) -> Any:
    return _Creatable(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
            for number, replicas in assignments.items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=None if value is None else str(value))
            for key, value in configs.items()
        ],
    )


def _reason(topic: Mapping[str, Any] | None) -> str | None:
    """Returns why a topic cannot be used yet, such as a partition without a leader; None if it can be used.

    `topic` is its entry in a Metadata response; None if the response has none.
    """
    if topic is None:
        return "missing from the metadata"
    if topic["error_code"]:
        return for_code(topic["error_code"]).__name__
    if not topic["partitions"]:
        return "no partitions reported"
    waiting = [
        f"p{each['partition_index']}: {for_code(each['error_code']).__name__ if each['error_code'] else 'no leader'}"
        for each in topic["partitions"]
        if each["error_code"] or each["leader_id"] < 0
    ]
    return ", ".join(waiting) or None


def _without_throttle(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("throttle_time_ms", None)
    return found
