"""Conversions between the classes of confluent-kafka's admin client and those of kafkapy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.client import admin as kafkapy
from kafkapy.client.admin import Admin, Results
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.compat.confluent_kafka import _model as model
from kafkapy.compat.confluent_kafka._constants import OFFSET_INVALID
from kafkapy.compat.confluent_kafka._errors import KafkaError, KafkaException, kafka_error
from kafkapy.compat.confluent_kafka._records import TopicPartition, uuid_of, with_error
from kafkapy.compat.confluent_kafka.admin._acl import AclBinding, AclBindingFilter
from kafkapy.compat.confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from kafkapy.compat.confluent_kafka.admin._group import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    MemberAssignment,
    MemberDescription,
)
from kafkapy.compat.confluent_kafka.admin._metadata import GroupMember, GroupMetadata, broker_metadata
from kafkapy.compat.confluent_kafka.admin._resource import ResourceType
from kafkapy.compat.confluent_kafka.admin._topic import NewTopic, TopicDescription
from kafkapy.compat.confluent_kafka.admin._values import (
    DescribeClusterResult,
    ListOffsetsResultInfo,
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kafkapy.config.row import ConfigSource as KafkapySource
from kafkapy.types import TopicPartition as Place

# The numbers of resources with a configuration differ for groups: librdkafka's, and the protocol's.
_RESOURCE_TYPES = {ResourceType.TOPIC: 2, ResourceType.BROKER: 4, ResourceType.GROUP: 32}
_STATES = {
    "PreparingRebalance": model.ConsumerGroupState.PREPARING_REBALANCING,
    "CompletingRebalance": model.ConsumerGroupState.COMPLETING_REBALANCING,
    "Stable": model.ConsumerGroupState.STABLE,
    "Dead": model.ConsumerGroupState.DEAD,
    "Empty": model.ConsumerGroupState.EMPTY,
}
_TEXTS = {state: text for text, state in _STATES.items()}
_TYPES = {"consumer": model.ConsumerGroupType.CONSUMER, "classic": model.ConsumerGroupType.CLASSIC}


def place(partition: TopicPartition) -> Place:
    """Converts confluent-kafka's TopicPartition to kafkapy's, which has neither an offset nor an error."""
    return Place(partition.topic, partition.partition)


def partition(found: Place) -> TopicPartition:
    """Converts kafkapy's TopicPartition to confluent-kafka's, without an offset."""
    return TopicPartition(found.topic, found.partition)


def node(found: Any) -> model.Node:
    """Returns confluent-kafka's Node for `found`, a broker in the form of kafkapy's admin client."""
    return model.Node(found.node_id, found.host, found.port, found.rack)


def new_topic(topic: NewTopic) -> kafkapy.NewTopic:
    """Converts confluent-kafka's NewTopic to kafkapy's. Raises TypeError if `topic` is not a NewTopic."""
    if not isinstance(topic, NewTopic):
        raise TypeError("Expected list of NewTopic")
    configs = {name: str(value) for name, value in (topic.config or {}).items()}
    if topic.replica_assignment is not None:
        assignments = dict(enumerate(topic.replica_assignment))
        return kafkapy.NewTopic(topic.topic, -1, -1, assignments, configs)
    return kafkapy.NewTopic(topic.topic, topic.num_partitions, topic.replication_factor, None, configs)


def topic_description(found: kafkapy.TopicDescription, nodes: dict[int, model.Node]) -> TopicDescription:
    """Converts kafkapy's description of a topic to confluent-kafka's; `nodes` are the brokers by id."""

    def named(node_id: int) -> model.Node:
        return nodes.get(node_id) or model.Node(node_id, "", -1)

    partitions = [
        model.TopicPartitionInfo(
            each.partition,
            None if each.leader < 0 else named(each.leader),
            [named(node_id) for node_id in each.replicas],
            [named(node_id) for node_id in each.isr],
        )
        for each in found.partitions
    ]
    return TopicDescription(found.name, uuid_of(found.topic_id), found.is_internal, partitions)


def cluster_description(found: kafkapy.ClusterDescription) -> DescribeClusterResult:
    """Converts kafkapy's description of a cluster to confluent-kafka's."""
    controller = None if found.controller is None else node(found.controller)
    return DescribeClusterResult(controller, [node(each) for each in found.brokers], found.cluster_id)


def resource_type(resource: ConfigResource) -> int:
    """Returns the protocol's number of a resource's type. Raises KafkaException for a type without a configuration."""
    number = _RESOURCE_TYPES.get(resource.restype)
    if number is None:
        name = resource.restype.name
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"Resource type {name} has no configuration"))  # type: ignore[attr-defined]
    return number


def described_configs(resource: ConfigResource, found: dict[str, kafkapy.ConfigEntry]) -> dict[str, ConfigEntry]:
    """Converts the entries `found` of a resource and their synonyms; also stores the new entries in the resource."""
    entries = {name: _entry(each) for name, each in found.items()}
    resource.configs = entries
    return entries


def _source(number: int) -> Any:
    """Returns `number`, Kafka's number for the source of a configuration value, if ConfigSource contains the number.

    Otherwise returns the number of UNKNOWN_CONFIG.
    """
    return number if any(number == each.value for each in ConfigSource) else ConfigSource.UNKNOWN_CONFIG.value


def _entry(found: kafkapy.ConfigEntry) -> ConfigEntry:
    synonyms = {
        each.name: ConfigEntry(each.name, each.value, _source(each.source), is_synonym=True) for each in found.synonyms
    }
    return ConfigEntry(
        found.name,
        found.value,
        _source(found.source),
        is_read_only=found.is_read_only,
        is_default=found.source == KafkapySource.DEFAULT,
        is_sensitive=found.is_sensitive,
        synonyms=synonyms,
    )


def change(entry: ConfigEntry) -> kafkapy.ConfigChange:
    """Returns the change that an entry describes. Raises ValueError if the entry has no operation."""
    if not isinstance(entry.incremental_operation, AlterConfigOpType):
        raise ValueError(f"Expected incremental_operation of {entry.name} to be an AlterConfigOpType")
    operation = kafkapy.ConfigOperation(entry.incremental_operation.value)
    value = None if operation is kafkapy.ConfigOperation.DELETE else entry.value
    return kafkapy.ConfigChange(entry.name, value, operation)


def replacement(resource: ConfigResource, present: dict[str, kafkapy.ConfigEntry]) -> list[kafkapy.ConfigChange]:
    """Returns the changes that replace a resource's configuration by its `set_config_dict`.

    `present` has the present entries of the resource. Entries that were set for the resource itself, and are not in
    `set_config_dict`, are deleted.
    """
    own = {ResourceType.TOPIC: 1, ResourceType.BROKER: 2, ResourceType.GROUP: 8}.get(resource.restype)
    wanted = resource.set_config_dict
    changes = [kafkapy.ConfigChange(name, str(value)) for name, value in wanted.items()]
    delete = kafkapy.ConfigOperation.DELETE
    changes += [
        kafkapy.ConfigChange(name, None, delete)
        for name, each in present.items()
        if each.source == own and name not in wanted
    ]
    return changes


def entry(binding: AclBinding) -> kafkapy.AccessControlEntry:
    """Converts confluent-kafka's AclBinding to kafkapy's AccessControlEntry."""
    return kafkapy.AccessControlEntry(*_numbers(binding))


def acl_filter(binding: AclBindingFilter) -> kafkapy.AclFilter:
    """Converts confluent-kafka's AclBindingFilter to kafkapy's AclFilter."""
    return kafkapy.AclFilter(*_numbers(binding))


def _numbers(each: Any) -> tuple[Any, ...]:
    resource = (each.restype_int, each.name, each.resource_pattern_type_int)
    return (*resource, each.principal, each.host, each.operation_int, each.permission_type_int)


def binding(found: kafkapy.AccessControlEntry) -> AclBinding:
    """Converts kafkapy's AccessControlEntry to confluent-kafka's AclBinding.

    An operation or kind of resource that confluent-kafka does not know becomes UNKNOWN.
    """
    resource = found.resource_type if found.resource_type <= ResourceType.TRANSACTIONAL_ID.value else 0
    operation = found.operation if found.operation <= 12 else 0
    return AclBinding(
        int(resource),
        found.resource_name,
        int(found.pattern_type),
        found.principal,
        found.host,
        int(operation),
        int(found.permission_type),
    )


def state_text(state: model.ConsumerGroupState) -> str:
    """Returns Kafka's name of a group's state, such as "Stable"."""
    return _TEXTS.get(state, "Unknown")


def _state(text: str) -> model.ConsumerGroupState:
    return _STATES.get(text, model.ConsumerGroupState.UNKNOWN)


def _type(text: str) -> model.ConsumerGroupType:
    return _TYPES.get(text.lower(), model.ConsumerGroupType.UNKNOWN)


def group_listing(found: kafkapy.GroupListing) -> ConsumerGroupListing:
    """Converts kafkapy's listing of a group to confluent-kafka's."""
    return ConsumerGroupListing(found.group_id, found.is_simple, _state(found.state), _type(found.type))


def group_description(found: kafkapy.GroupDescription) -> ConsumerGroupDescription:
    """Converts kafkapy's description of a group to confluent-kafka's."""
    members = [
        MemberDescription(
            each.member_id,
            each.client_id,
            each.host,
            MemberAssignment([partition(place) for place in each.partitions]),
            each.instance_id,
            None if each.target is None else MemberAssignment([partition(place) for place in each.target]),
        )
        for each in found.members
    ]
    return ConsumerGroupDescription(
        found.group_id,
        found.protocol_type == "",
        members,
        found.assignor,
        _state(found.state),
        node(found.coordinator),
        type=_type(found.type),
    )


def group_metadata(admin: Admin, group: str | None, left_s: Callable[[], float]) -> list[GroupMetadata]:
    """Returns the metadata of all groups of the cluster, or only of `group`. Blocks. Raises KafkapyError.

    `left_s()` returns the seconds that are left for the next request.
    """
    names = [each.group_id for each in admin.list_groups(timeout=left_s()) if group in (None, each.group_id)]
    described = admin.describe_groups(names, timeout=left_s())
    found = []
    for name in names:
        metadata = GroupMetadata()
        metadata.id = name
        if name in described.errors:
            metadata.error = kafka_error(described.errors[name])
        else:
            description = described.values[name]
            metadata.broker = broker_metadata(description.coordinator)
            metadata.state, metadata.protocol = description.state, description.assignor
            metadata.protocol_type = description.protocol_type
            metadata.members = [_member(each) for each in description.members]
        found.append(metadata)
    return found


def _member(description: kafkapy.MemberDescription) -> GroupMember:
    member = GroupMember()
    member.id, member.client_id = description.member_id, description.client_id
    member.client_host = description.host
    return member


def group_offsets(
    group: str, wanted: list[Place] | None, found: dict[Place, OffsetAndMetadata]
) -> model.ConsumerGroupTopicPartitions:
    """Returns the committed offsets `found` of a group in confluent-kafka's form.

    The result has the partitions `wanted`, with OFFSET_INVALID for one without a committed offset; None for `wanted`
    means all partitions in `found`.
    """
    partitions = []
    for each in found if wanted is None else wanted:
        offset = found.get(each)
        if offset is None:
            partitions.append(TopicPartition(each.topic, each.partition, OFFSET_INVALID))
        else:
            epoch = offset.leader_epoch if offset.leader_epoch >= 0 else None
            partitions.append(
                TopicPartition(each.topic, each.partition, offset.offset, offset.metadata or None, leader_epoch=epoch)
            )
    return model.ConsumerGroupTopicPartitions(group, partitions)


def offset_and_metadata(wanted: TopicPartition) -> OffsetAndMetadata:
    """Converts confluent-kafka's partition with an offset to kafkapy's offset for a commit."""
    epoch = -1 if wanted.leader_epoch is None else wanted.leader_epoch
    return OffsetAndMetadata(wanted.offset, wanted.metadata or "", epoch)


def with_errors(partitions: list[TopicPartition], results: Results[Place, None]) -> list[TopicPartition]:
    """Returns copies of `partitions`, each with its KafkaError in `results`, or None if the operation succeeded."""
    found = []
    for each in partitions:
        error = results.errors.get(place(each))
        copy = TopicPartition(each.topic, each.partition, each.offset, each.metadata, each.leader_epoch)
        found.append(with_error(copy, None if error is None else kafka_error(error)))
    return found


def timestamp(spec: OffsetSpec) -> int:
    """Returns the timestamp that a ListOffsets request has for `spec`; special offsets have negative numbers."""
    return spec._value


def offset_info(found: Any) -> ListOffsetsResultInfo:
    """Returns confluent-kafka's ListOffsetsResultInfo for `found`, an offset in the form of kafkapy's admin client."""
    return ListOffsetsResultInfo(found.offset, found.timestamp, found.leader_epoch)


def credentials(user: str, found: list[kafkapy.ScramCredential]) -> UserScramCredentialsDescription:
    """Converts the SCRAM credentials of a user to confluent-kafka's description of them."""
    infos = [ScramCredentialInfo(ScramMechanism(int(each.mechanism)), each.iterations) for each in found]
    return UserScramCredentialsDescription(user, infos)


def mechanism(wanted: ScramMechanism) -> kafkapy.ScramMechanism:
    """Converts confluent-kafka's SCRAM mechanism to kafkapy's. Raises ValueError for UNKNOWN."""
    return kafkapy.ScramMechanism(wanted.value)


def upsertion(wanted: UserScramCredentialUpsertion) -> kafkapy.NewScramCredential:
    """Converts a new or changed SCRAM credential in confluent-kafka's form to kafkapy's NewScramCredential."""
    info = wanted.scram_credential_info
    return kafkapy.NewScramCredential(
        wanted.user, mechanism(info.mechanism), wanted.password, info.iterations, wanted.salt
    )
