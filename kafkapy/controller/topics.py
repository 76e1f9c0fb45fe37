"""Operations that create topics, add partitions and delete topics."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.configs import validate_overrides
from kafkapy.controller.partition_changes import default_directory
from kafkapy.controller.placement import place_replicas
from kafkapy.controller.policy import NO_POLICIES, AlterConfigRequest, CreateTopicRequest, Policies
from kafkapy.controller.result import (
    MAX_RECORDS_PER_USER_OPERATION,
    SUCCESS,
    ControllerResult,
    ErrorMessage,
    check_record_count,
)
from kafkapy.controller.settings import MIN_ISR
from kafkapy.controller.topic_name import collision_key, validate_topic_name
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import TOPIC_RESOURCE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion, partition_record
from kafkapy.metadata.topics_image import RECOVERED, PartitionImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord, RemoveTopicRecord, TopicRecord
from kafkapy.types import METADATA_TOPIC, ZERO_UUID, random_uuid

DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to create. -1 means the default number of partitions or replicas. `assignments` has pairs
    (partition, replicas), or is empty if the controller places the replicas."""

    name: str
    num_partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = {}


class CreatedTopic(NamedTuple):
    """The outcome of creating one topic. The fields except `error` are valid only if the code of `error` is 0.

    `overrides` has the topic's own configuration, without defaults.
    """

    error: ErrorMessage
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    overrides: Mapping[str, str] = {}


Charge = Callable[[int], None]


def uncharged(partitions: int) -> None:
    """Does nothing. This is the default of `charge` in the functions of this module: a client may create or delete any
    number of partitions."""


class PlacementRules(NamedTuple):
    """The inputs for placing new partitions, in addition to the image.

    `charge(n)` is called before `n` partitions are created; it raises ApiError if the client may not create them now.
    `random_below(n)` returns a random number from 0 to n - 1, and `new_topic_id()` a new id; tests replace both
    functions.
    """

    broker_config: BrokerConfig
    random_below: Callable[[int], int] = random.randrange
    new_topic_id: Callable[[], bytes] = random_uuid
    policies: Policies = NO_POLICIES
    charge: Charge = uncharged


def create_topics(
    image: MetadataImage, topics: Sequence[NewTopic], rules: PlacementRules, *, validate_only: bool = False
) -> ControllerResult[dict[str, CreatedTopic]]:
    """Creates topics; each succeeds or fails independently of the others. The response maps each topic's name to the
    outcome.

    If `validate_only` is True, the topics are only checked, and the result has no records. Raises
    ApiError(POLICY_VIOLATION) if the request needs more records than one batch can have.
    """
    _check_total(sum(max(len(topic.assignments), topic.num_partitions, 1) for topic in topics))
    records: list[MessageAndVersion] = []
    response: dict[str, CreatedTopic] = {}
    collisions: dict[str, str] | None = None
    for topic in topics:
        try:
            validate_topic_name(topic.name)
            if topic.name == METADATA_TOPIC:
                raise ApiError(Error.INVALID_REQUEST, f"Creation of internal topic {topic.name} is prohibited.")
            if topic.name in image.topics.by_name or topic.name in response:
                raise ApiError(Error.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
            if "." in topic.name or "_" in topic.name:
                if collisions is None:
                    collisions = {collision_key(name): name for name in image.topics.by_name}
                other = collisions.get(collision_key(topic.name))
                if other is not None:
                    raise ApiError(
                        Error.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' collides with existing topic: {other}"
                    )
            topic_records, created = _create_topic(image, topic, rules)
        except ApiError as error:
            response[topic.name] = CreatedTopic(ErrorMessage(error.error, error.message))
            continue
        records += topic_records
        check_record_count(records)
        response[topic.name] = created._replace(topic_id=ZERO_UUID) if validate_only else created
    return ControllerResult([] if validate_only else records, response)


def _create_topic(
    image: MetadataImage, topic: NewTopic, rules: PlacementRules
) -> tuple[list[MessageAndVersion], CreatedTopic]:
    overrides = {name: value for name, value in topic.configs.items() if value is not None}
    for name, value in topic.configs.items():
        if value is None:
            raise ApiError(Error.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
    validate_overrides(rules.broker_config, (TOPIC_RESOURCE, topic.name), overrides)
    if overrides:
        rules.policies.check_config_change(AlterConfigRequest(TOPIC_RESOURCE, topic.name, overrides))
    assignments = _assignments_of(image, topic, rules)
    rules.policies.check_new_topic(_create_topic_request(topic, assignments, overrides))
    rules.charge(len(assignments))
    topic_id = rules.new_topic_id()
    records: list[MessageAndVersion] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0)]
    for name, value in overrides.items():
        record = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        records.append((record, 0))
    if MIN_ISR in overrides and image.elr_enabled:
        records.append((ClearElrRecord(topic_name=topic.name), 0))
    for partition_id, replicas in assignments.items():
        partition = _new_partition(image, replicas)
        records.append(partition_record(topic_id, partition_id, partition, image.metadata_version))
    replication_factor = len(next(iter(assignments.values())))
    return records, CreatedTopic(SUCCESS, topic_id, len(assignments), replication_factor, overrides)


def _create_topic_request(
    topic: NewTopic, assignments: dict[int, tuple[int, ...]], overrides: Mapping[str, str]
) -> CreateTopicRequest:
    """Returns the description of the new topic that the create-topic policy receives.

    `assignments` maps partition ids to replicas. They are included if the client chose them; otherwise the description
    has only the numbers of partitions and replicas.
    """
    if topic.assignments:
        return CreateTopicRequest(topic.name, None, None, assignments, overrides)
    return CreateTopicRequest(topic.name, len(assignments), len(assignments[0]), None, overrides)


def _assignments_of(image: MetadataImage, topic: NewTopic, rules: PlacementRules) -> dict[int, tuple[int, ...]]:
    if topic.assignments:
        return _manual_assignments(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    partitions = rules.broker_config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = topic.replication_factor
    if factor == -1:
        factor = rules.broker_config.default_replication_factor
    try:
        placed = place_replicas(image.brokers.values(), partitions, factor, rules.random_below)
    except ApiError as error:
        raise ApiError(error.error, f"Unable to replicate the partition {factor} time(s): {error.message}") from None
    return dict(enumerate(placed))


def _manual_assignments(image: MetadataImage, topic: NewTopic) -> dict[int, tuple[int, ...]]:
    if topic.replication_factor != -1:
        raise ApiError(
            Error.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise ApiError(
            Error.INVALID_REQUEST, "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    assignments: dict[int, tuple[int, ...]] = {}
    for partition_id, replicas in topic.assignments:
        if partition_id in assignments:
            raise ApiError(
                Error.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {partition_id}",
            )
        factor = len(next(iter(assignments.values()))) if assignments else None
        check_replicas(image, partition_id, replicas, factor)
        assignments[partition_id] = tuple(replicas)
    if sorted(assignments) != list(range(len(assignments))):
        raise ApiError(Error.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence")
    return dict(sorted(assignments.items()))


def check_replicas(
    image: MetadataImage,
    partition_id: int,
    replicas: Sequence[int],
    factor: int | None,
    *,
    even_if_fenced: bool = False,
) -> None:
    """Raises ApiError(INVALID_REPLICA_ASSIGNMENT) unless `replicas` are distinct, registered brokers.

    `factor` is the required number of replicas; None permits any number except 0. At least one of the brokers must be
    active unless `even_if_fenced` is True.
    """
    if not replicas:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    for replica in sorted(replicas):
        if replica not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            )
        if replicas.count(replica) > 1:
            raise _bad_assignment(f"The manual partition assignment includes the broker {replica} more than once.")
    if factor is not None and len(replicas) != factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
    if not even_if_fenced and not any(image.brokers[replica].is_active for replica in replicas):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown."
        )


def _bad_assignment(message: str) -> ApiError:
    return ApiError(Error.INVALID_REPLICA_ASSIGNMENT, message)


def _new_partition(image: MetadataImage, replicas: tuple[int, ...]) -> PartitionImage:
    isr = tuple(replica for replica in replicas if image.brokers[replica].is_active)
    if not isr:
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently fenced or in "
            "controlled shutdown.",
        )
    directories = tuple(default_directory(image, replica) for replica in replicas)
    return PartitionImage(
        replicas=replicas,
        directories=directories,
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        elr=(),
        last_known_elr=(),
        leader=isr[0],
        leader_recovery_state=RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
    )


class MorePartitions(NamedTuple):
    """A topic whose number of partitions is to be increased to `total_count`. `assignments` has the replicas of the new
    partitions; if it is None, the controller places them."""

    name: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_partitions(
    image: MetadataImage, topics: Sequence[MorePartitions], rules: PlacementRules, *, validate_only: bool = False
) -> ControllerResult[dict[str, ErrorMessage]]:
    """Adds partitions to topics. The response maps each topic's name to the result.

    An error of one topic does not affect the others. If `validate_only` is True, the request is only checked, and
    the result has no records. Raises ApiError(POLICY_VIOLATION) if the request needs more records than one batch can
    have.
    """
    records: list[MessageAndVersion] = []
    response: dict[str, ErrorMessage] = {}
    for topic in topics:
        try:
            more = _create_partitions(image, topic, rules)
        except ApiError as error:
            # Like Apache Kafka, send no message if it is only the default message of the code.
            says_more = error.message != error.error.message
            response[topic.name] = ErrorMessage(error.error, error.message if says_more else None)
            continue
        records += more
        check_record_count(records)
        response[topic.name] = SUCCESS
    return ControllerResult([] if validate_only else records, response)


def _create_partitions(image: MetadataImage, topic: MorePartitions, rules: PlacementRules) -> list[MessageAndVersion]:
    existing = image.topics.by_name.get(topic.name)
    if existing is None:
        raise ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(existing.partitions)
    if topic.total_count == current:
        raise ApiError(Error.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if topic.total_count < current:
        raise ApiError(
            Error.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {topic.total_count} would not be an "
            "increase.",
        )
    additional = topic.total_count - current
    _check_total(additional)
    rules.charge(additional)
    factor = len(existing.partitions[0].replicas)
    if topic.assignments is None:
        placed = place_replicas(image.brokers.values(), additional, factor, rules.random_below)
    else:
        if len(topic.assignments) != additional:
            raise _bad_assignment(
                f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} "
                "assignment(s) were specified."
            )
        for index, replicas in enumerate(topic.assignments):
            check_replicas(image, current + index, replicas, factor)
        placed = [tuple(replicas) for replicas in topic.assignments]
    records = []
    for partition_id, assigned in enumerate(placed, current):
        partition = _new_partition(image, assigned)
        records.append(partition_record(existing.topic_id, partition_id, partition, image.metadata_version))
    return records


def _check_total(partitions: int) -> None:
    if partitions > MAX_RECORDS_PER_USER_OPERATION:
        raise ApiError(Error.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def delete_topics(
    image: MetadataImage, topic_ids: Sequence[bytes], charge: Charge = uncharged
) -> ControllerResult[dict[bytes, ErrorMessage]]:
    """Removes topics by id, with their configuration. The response maps each topic's id to the result.

    `charge(n)` is called before a topic of `n` partitions is removed, and raises ApiError if the client may not remove
    it now. Raises ApiError(POLICY_VIOLATION) if the request names more topics than one batch can remove.
    """
    records: list[MessageAndVersion] = []
    response: dict[bytes, ErrorMessage] = {}
    for topic_id in dict.fromkeys(topic_ids):
        if topic_id not in image.topics.by_id:
            response[topic_id] = ErrorMessage(Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_ID.message)
            continue
        try:
            charge(len(image.topics.by_id[topic_id].partitions))
        except ApiError as error:
            response[topic_id] = ErrorMessage(error.error, error.message)
            continue
        records.append((RemoveTopicRecord(topic_id=topic_id), 0))
        response[topic_id] = SUCCESS
    check_record_count(records)
    return ControllerResult(records, response)
