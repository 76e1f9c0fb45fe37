"""CreateTopics, versions 0 to 7, DeleteTopics, versions 0 to 6, and CreatePartitions, versions 0 to 3.

The response is sent when the controller has committed the change.

Permissions: Create on the topic or the cluster, and DescribeConfigs on the topic to see its configuration in the
response; Delete on the topic or the cluster; Alter on the topic for CreatePartitions. The response of DeleteTopics does
not show whether a topic exists that the client may not describe.

Version notes: before version 3 of DeleteTopics a client does not know TOPIC_DELETION_DISABLED and gets INVALID_REQUEST;
version 6 deletes topics by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from kafkapy.config.describe import describe_topic
from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import (
    Charge,
    CreatedTopic,
    MorePartitions,
    NewTopic,
    PlacementRules,
    create_partitions,
    create_topics,
    delete_topics,
    uncharged,
)
from kafkapy.errors import Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import NO_NAMES, denied_names, denied_topics, is_cluster_allowed
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.mutation_charge import charge_to, mutation_quota
from kafkapy.server.request_context import RequestContext
from kafkapy.server.services import Services
from kafkapy.types import METADATA_TOPIC, ZERO_UUID

DUPLICATE_NAME = ErrorMessage(Error.INVALID_REQUEST, "Duplicate topic name.")
CREATION_DENIED = ErrorMessage(Error.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
DENIED = ErrorMessage(Error.TOPIC_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED.message)
# The first version whose clients know TOPIC_DELETION_DISABLED.
DELETION_DISABLED_VERSION = 3

# The first versions whose clients know THROTTLING_QUOTA_EXCEEDED (KIP-599).
STRICT_CREATE_TOPICS, STRICT_DELETE_TOPICS, STRICT_CREATE_PARTITIONS = 6, 5, 3

TopicResult = CreateTopicsResponse.CreatableTopicResult
DeletedTopic = DeleteTopicsResponse.DeletableTopicResult


def placement_rules(services: Services, charge: Charge = uncharged) -> PlacementRules:
    return PlacementRules(services.config, policies=services.policies, charge=charge)


def mutation_charge(context: RequestContext, strict_from: int) -> Charge:
    """Returns the function that charges created or deleted partitions to the client's quota of mutations. Requests from
    version `strict_from` on are refused if the quota is exceeded, older ones are only delayed."""
    quota = mutation_quota(context, is_strict=context.api_version >= strict_from)
    context.mutation_quota = quota
    return charge_to(quota, context.services.clock)


# -- CreateTopics


def create_topics_error(
    request: CreateTopicsRequest, version: int, error: Error, message: str | None
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[TopicResult(name=topic.name, error_code=error, error_message=message) for topic in request.topics]
    )


@serves(ApiKey.CREATE_TOPICS, 0, 7, on_error=create_topics_error)
def handle_create_topics(context: RequestContext, request: CreateTopicsRequest) -> None:
    services, version = context.services, context.api_version
    counts = Counter(topic.name for topic in request.topics)
    # The creation of the metadata topic is prohibited to everybody.
    names = [name for name, count in counts.items() if count == 1 and name != METADATA_TOPIC]
    denied = NO_NAMES
    if not is_cluster_allowed(context, Operation.CREATE, log_if_denied=False):
        denied = denied_topics(context, Operation.CREATE, names)
    hidden = denied_names(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, names, log_if_denied=False)
    wanted = [_new_topic(topic) for topic in request.topics if counts[topic.name] == 1 and topic.name not in denied]
    failed = {name: DUPLICATE_NAME for name, count in counts.items() if count > 1}
    failed |= dict.fromkeys(denied, CREATION_DENIED)
    rules = placement_rules(services, mutation_charge(context, STRICT_CREATE_TOPICS))

    def answer(created: dict[str, CreatedTopic]) -> CreateTopicsResponse:
        results = [_failed_topic(name, error) for name, error in failed.items()]
        results += [_topic_result(services, name, topic, hidden) for name, topic in created.items()]
        return CreateTopicsResponse(topics=results)

    answer_when_committed(
        context,
        lambda image: create_topics(image, wanted, rules, validate_only=request.validate_only),
        answer,
        lambda error, message: create_topics_error(request, version, error, message),
    )


def _new_topic(topic: CreateTopicsRequest.CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _failed_topic(name: str, failure: ErrorMessage) -> TopicResult:
    return TopicResult(name=name, error_code=failure.error, error_message=failure.message)


def _topic_result(services: Services, name: str, created: CreatedTopic, hidden: AbstractSet[str]) -> TopicResult:
    """Returns the result for the topic `name`: its error, or its topic id, size and configuration.

    If `name` is in `hidden`, the client may not see the configuration, and gets TOPIC_AUTHORIZATION_FAILED instead.
    """
    if created.error.error:
        return _failed_topic(name, created.error)
    if name in hidden:
        error = Error.TOPIC_AUTHORIZATION_FAILED
        return TopicResult(name=name, topic_id=created.topic_id, error_message=None, topic_config_error_code=error)
    entries = sorted(describe_topic(services.config, created.overrides))
    return TopicResult(
        name=name,
        topic_id=created.topic_id,
        error_code=Error.NONE,
        error_message=None,
        num_partitions=created.num_partitions,
        replication_factor=created.replication_factor,
        configs=[
            CreateTopicsResponse.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in entries
        ],
    )


# -- DeleteTopics


def delete_topics_error(
    request: DeleteTopicsRequest, version: int, error: Error, message: str | None
) -> DeleteTopicsResponse:
    named = [(topic.name, topic.topic_id) for topic in request.topics]
    named += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletedTopic(name=name, topic_id=topic_id, error_code=error, error_message=message)
            for name, topic_id in named
        ]
    )


@serves(ApiKey.DELETE_TOPICS, 0, 6, on_error=delete_topics_error)
def handle_delete_topics(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse | None:
    version = context.api_version
    if not context.services.config.delete_topic_enable:
        is_known = version >= DELETION_DISABLED_VERSION
        error = Error.TOPIC_DELETION_DISABLED if is_known else Error.INVALID_REQUEST
        return delete_topics_error(request, version, error, None)
    wanted = [(topic.name, topic.topic_id) for topic in request.topics]
    wanted += [(name, ZERO_UUID) for name in request.topic_names]
    image = context.services.metadata.image
    names_and_ids, failed = _resolve(image, wanted, _denied_deletions(context, image, wanted))
    charge = mutation_charge(context, STRICT_DELETE_TOPICS)

    def answer(deleted: dict[bytes, ErrorMessage]) -> DeleteTopicsResponse:
        responses = list(failed)
        for topic_id, result in deleted.items():
            responses.append(_deleted_topic(names_and_ids[topic_id], topic_id, result))
        return DeleteTopicsResponse(responses=responses)

    answer_when_committed(
        context,
        lambda image: delete_topics(image, list(names_and_ids), charge),
        answer,
        lambda error, message: delete_topics_error(request, version, error, message),
    )
    return None


def _deleted_topic(name: str | None, topic_id: bytes, result: ErrorMessage) -> DeletedTopic:
    return DeletedTopic(name=name, topic_id=topic_id, error_code=result.error, error_message=result.message)


class _Denied(NamedTuple):
    """The names of the requested topics that the client may not describe (`hidden`), or may not delete (`kept`)."""

    hidden: AbstractSet[str] = NO_NAMES
    kept: AbstractSet[str] = NO_NAMES


def _denied_deletions(context: RequestContext, image: MetadataImage, wanted: list[tuple[str | None, bytes]]) -> _Denied:
    if is_cluster_allowed(context, Operation.DELETE, log_if_denied=False):
        return _Denied()
    by_id = image.topics.by_id
    names = {by_id[topic_id].name for name, topic_id in wanted if name is None and topic_id in by_id}
    names |= {name for name, topic_id in wanted if name is not None and topic_id == ZERO_UUID}
    return _Denied(denied_topics(context, Operation.DESCRIBE, names), denied_topics(context, Operation.DELETE, names))


def _resolve(
    image: MetadataImage, wanted: list[tuple[str | None, bytes]], denied: _Denied
) -> tuple[dict[bytes, str | None], list[DeletedTopic]]:
    """Returns {topic id: name} of the topics that can be deleted, and the results of the other requested topics.

    `wanted` has (name, topic id) of each requested topic; the name is None, or the id zero, if the request omits it.
    """
    found: dict[bytes, str | None] = {}
    failed: list[DeletedTopic] = []
    counts = Counter(wanted)
    for (name, topic_id), count in counts.items():
        by_id = topic_id != ZERO_UUID
        problem: ErrorMessage | None = None
        if name is not None and by_id:
            problem = ErrorMessage(Error.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        elif name is None and not by_id:
            problem = ErrorMessage(Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
        elif count > 1:
            problem = ErrorMessage(Error.INVALID_REQUEST, "Duplicate topic id.") if by_id else DUPLICATE_NAME
        if problem is not None:
            failed.append(_deleted_topic(name, topic_id, problem))
            continue
        topic = image.topics.by_id.get(topic_id) if name is None else image.topics.by_name.get(name)
        if name in denied.hidden:
            failed.append(_deleted_topic(name, topic_id, DENIED))
        elif topic is None:
            error = Error.UNKNOWN_TOPIC_ID if name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
            failed.append(_deleted_topic(name, topic_id, ErrorMessage(error, error.message)))
        elif topic.name in denied.kept:
            failed.append(_deleted_topic(None if topic.name in denied.hidden else topic.name, topic_id, DENIED))
        elif topic.topic_id in found:
            failed.append(
                _deleted_topic(
                    name,
                    topic_id,
                    ErrorMessage(
                        Error.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
                    ),
                )
            )
        else:
            found[topic.topic_id] = topic.name
    return found, failed


# -- CreatePartitions


def create_partitions_error(
    request: CreatePartitionsRequest, version: int, error: Error, message: str | None
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=error, error_message=message
            )
            for topic in request.topics
        ]
    )


@serves(ApiKey.CREATE_PARTITIONS, 0, 3, on_error=create_partitions_error)
def handle_create_partitions(context: RequestContext, request: CreatePartitionsRequest) -> None:
    version = context.api_version
    counts = Counter(topic.name for topic in request.topics)
    failed = {name: DUPLICATE_NAME for name, count in counts.items() if count > 1}
    denied = denied_topics(context, Operation.ALTER, (name for name, count in counts.items() if count == 1))
    failed |= dict.fromkeys(denied, ErrorMessage(Error.TOPIC_AUTHORIZATION_FAILED, None))
    wanted = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments],
        )
        for topic in request.topics
        if topic.name not in failed
    ]
    rules = placement_rules(context.services, mutation_charge(context, STRICT_CREATE_PARTITIONS))

    def answer(results: dict[str, ErrorMessage]) -> CreatePartitionsResponse:
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsResponse.CreatePartitionsTopicResult(
                    name=name, error_code=result.error, error_message=result.message
                )
                for name, result in (failed | results).items()
            ]
        )

    answer_when_committed(
        context,
        lambda image: create_partitions(image, wanted, rules, validate_only=request.validate_only),
        answer,
        lambda error, message: create_partitions_error(request, version, error, message),
    )
