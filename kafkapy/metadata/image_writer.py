"""Conversion of an image, the cluster's metadata at one offset, into the records of a snapshot.

The records have Kafka's order. The image's metadata.version determines the version of each record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import BrokerRegistration, ControllerRegistration
from kafkapy.metadata.features import METADATA_VERSION
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import PartitionImage
from kafkapy.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

MessageAndVersion = tuple[Any, int]


def snapshot_records(image: MetadataImage) -> Iterator[MessageAndVersion]:
    """Yields the records of a snapshot, from which `image` can be rebuilt, as pairs (message, version).

    Metadata that records of the image's metadata.version cannot contain are left out, as in Apache Kafka.
    """
    version = image.metadata_version
    yield from _feature_records(image)
    for broker in image.brokers.values():
        yield register_broker_record(broker, version)
    if levels.supports_controller_registration(version):
        for controller in image.controllers.values():
            yield register_controller_record(controller), 0
    for topic in image.topics.by_name.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id), 0
        for partition_id, partition in topic.partitions.items():
            yield partition_record(topic.topic_id, partition_id, partition, version)
    for (resource_type, resource_name), entries in image.configs.items():
        for name, value in entries.items():
            yield (
                ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value),
                0,
            )
    yield from _quota_records(image)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id), 0
    yield from _security_records(image, version)


def _feature_records(image: MetadataImage) -> Iterator[MessageAndVersion]:
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version), 0
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level), 0


def _quota_records(image: MetadataImage) -> Iterator[MessageAndVersion]:
    for entity, quotas in image.client_quotas.items():
        for key, value in quotas.items():
            parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False), 0


def _security_records(image: MetadataImage, version: int) -> Iterator[MessageAndVersion]:
    for acl_id, entry in image.acls.items():
        yield AccessControlEntryRecord(id=acl_id, **entry._asdict()), 0
    if levels.supports_scram(version):
        for (name, mechanism), credential in image.scram.items():
            yield UserScramCredentialRecord(name=name, mechanism=mechanism, **credential._asdict()), 0
    if levels.supports_delegation_tokens(version):
        for token in image.delegation_tokens.values():
            fields = token._asdict()
            fields["renewers"] = list(token.renewers)
            yield DelegationTokenRecord(**fields), 0


def register_broker_record(broker: BrokerRegistration, metadata_version: int) -> MessageAndVersion:
    record_version = levels.register_broker_record_version(metadata_version)
    cordoned = broker.cordoned_log_dirs
    record = RegisterBrokerRecord(
        broker_id=broker.broker_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker if record_version >= 2 else False,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[RegisterBrokerRecord.BrokerEndpoint(**each._asdict()) for each in broker.endpoints.values()],
        features=[
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs) if record_version >= 3 else [],
        cordoned_log_dirs=None if record_version < 4 or cordoned is None else list(cordoned),
    )
    return record, record_version


def register_controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(**each._asdict()) for each in controller.endpoints.values()
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in controller.features.items()
        ],
    )


def partition_record(
    topic_id: bytes, partition_id: int, partition: PartitionImage, metadata_version: int
) -> MessageAndVersion:
    record_version = levels.partition_record_version(metadata_version)
    record = PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if record_version >= 1:
        record.directories = list(partition.directories)
    if record_version >= 2 and partition.elr:
        record.eligible_leader_replicas = list(partition.elr)
    if record_version >= 2 and partition.last_known_elr:
        record.last_known_elr = list(partition.last_known_elr)
    return record, record_version
