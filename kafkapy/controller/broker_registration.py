"""The records that change a broker's registration: registering, unfencing, controlled shutdown, fencing, unregistering.

The records of each change, with the changes of the broker's partitions, are written in one batch.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.controller.partition_changes import (
    PartitionChanges,
    partitions_in_elr,
    partitions_in_isr,
    partitions_where,
    partitions_without_leader,
)
from kafkapy.controller.registration_checks import check_registration
from kafkapy.controller.result import ControllerResult, check_record_count
from kafkapy.controller.settings import DEFAULT_SETTINGS, ControllerSettings
from kafkapy.errors import ApiError, Error
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import BrokerRegistration, ControllerRegistration
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import (
    MessageAndVersion,
    register_broker_record,
    register_controller_record,
)
from kafkapy.protocol.messages.metadata_records import BrokerRegistrationChangeRecord, UnregisterBrokerRecord


def register_broker(
    image: MetadataImage,
    registration: BrokerRegistration,
    clean_broker_epoch: int,
    settings: ControllerSettings = DEFAULT_SETTINGS,
    *,
    kraft_version: int = 0,
) -> ControllerResult[int]:
    """Registers a broker. The response is its broker epoch.

    A new incarnation is registered fenced and leaves every ISR; its epoch is the offset of the first record of the
    batch. If the same incarnation registers again, for example to change its listeners, it keeps its epoch and state.

    `clean_broker_epoch` is the epoch in the broker's clean-shutdown marker, -1 without a marker. If this epoch is not
    the epoch of the last registration, the broker may have lost records. It then also leaves the eligible leader
    replicas. `kraft_version` is the finalized level of the feature kraft.version.

    This function does not check whether another incarnation is still alive: `BrokerSessions.register` does. Raises
    ApiError: BROKER_ID_NOT_REGISTERED (a broker that migrates from ZooKeeper), INVALID_REGISTRATION,
    UNSUPPORTED_VERSION.
    """
    broker_id = registration.broker_id
    previous = image.brokers.get(broker_id)
    is_new_incarnation = previous is None or previous.incarnation_id != registration.incarnation_id
    check_registration(image, registration, kraft_version)
    records: list[MessageAndVersion] = []
    if previous is None or is_new_incarnation:
        if previous is not None:
            records += _incarnation_ended(image, previous, clean_broker_epoch, settings)
        registration = registration._replace(epoch=image.offset, fenced=True, in_controlled_shutdown=False)
    else:
        registration = registration._replace(
            epoch=previous.epoch, fenced=previous.fenced, in_controlled_shutdown=previous.in_controlled_shutdown
        )
    records.append(register_broker_record(registration, image.metadata_version))
    return ControllerResult(records, registration.epoch)


def _incarnation_ended(
    image: MetadataImage, previous: BrokerRegistration, clean_broker_epoch: int, settings: ControllerSettings
) -> list[MessageAndVersion]:
    broker_id = previous.broker_id
    if not image.elr_enabled or clean_broker_epoch == previous.epoch:
        changes = PartitionChanges(image, settings, removed=broker_id)
        return list(changes.leader_and_isr_updates(partitions_in_isr(image, broker_id)))
    changes = PartitionChanges(image, settings, unclean=broker_id)
    return [
        *changes.leader_and_isr_updates(partitions_in_isr(image, broker_id)),
        *changes.leader_and_isr_updates(partitions_in_elr(image, broker_id)),
    ]


def register_controller(image: MetadataImage, registration: ControllerRegistration) -> ControllerResult[None]:
    """Registers a controller, or a new incarnation of it.

    Raises ApiError(UNSUPPORTED_VERSION) if the metadata.version is less than 15.
    """
    if not levels.supports_controller_registration(image.metadata_version):
        raise ApiError(
            Error.UNSUPPORTED_VERSION, "The current MetadataVersion is too old to support controller registrations."
        )
    record = register_controller_record(registration._replace(zk_migration_ready=False))
    return ControllerResult([(record, 0)], None)


def unfence_broker(
    image: MetadataImage, broker_id: int, settings: ControllerSettings = DEFAULT_SETTINGS
) -> ControllerResult[None]:
    """Unfences a broker, and elects leaders for partitions without a leader for which the broker is eligible."""
    broker = _registered(image, broker_id)
    records: list[MessageAndVersion] = []
    if broker.fenced:
        change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=-1)
        records.append((change, 0))
    changes = PartitionChanges(image, settings, added=broker_id)
    records.extend(changes.leader_and_isr_updates(partitions_without_leader(image)))
    return ControllerResult(records, None)


def begin_controlled_shutdown(
    image: MetadataImage, broker_id: int, settings: ControllerSettings = DEFAULT_SETTINGS
) -> ControllerResult[None]:
    """Records that the broker will stop.

    The broker leaves every ISR. Each partition that it leads gets another leader, or has no leader if no other replica
    is eligible.
    """
    broker = _registered(image, broker_id)
    records: list[MessageAndVersion] = []
    if not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        records.append((change, 1))
    changes = PartitionChanges(image, settings, removed=broker_id)
    records.extend(changes.leader_and_isr_updates(partitions_in_isr(image, broker_id)))
    return ControllerResult(records, None)


def fence_broker(
    image: MetadataImage, broker_id: int, settings: ControllerSettings = DEFAULT_SETTINGS
) -> ControllerResult[None]:
    """Fences the broker. Each partition that it leads gets another leader, or has no leader if no other replica is
    eligible.

    Returns no records if the broker is already fenced or not registered.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return ControllerResult([], None)
    changes = PartitionChanges(image, settings, removed=broker_id)
    records = list(changes.leader_and_isr_updates(partitions_in_isr(image, broker_id)))
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1)
    records.append((change, 0))
    return ControllerResult(records, None)


def take_directories_offline(
    image: MetadataImage,
    broker_id: int,
    directory_ids: Collection[bytes],
    settings: ControllerSettings = DEFAULT_SETTINGS,
) -> ControllerResult[None]:
    """Records that log directories of a broker have failed.

    The broker leaves the ISR of the partitions in these directories, and no longer leads them.
    """
    broker = image.brokers.get(broker_id)
    failed = [] if broker is None else [each for each in broker.log_dirs if each in directory_ids]
    if broker is None or not failed:
        return ControllerResult([], None)
    changes = PartitionChanges(image, settings, removed=broker_id)
    in_failed = partitions_where(
        image,
        lambda partition: broker_id in partition.replicas and partition.directory_of(broker_id) in failed,
    )
    records = list(changes.leader_and_isr_updates(in_failed))
    remaining = [each for each in broker.log_dirs if each not in directory_ids]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=remaining)
    records.append((change, 2))
    return ControllerResult(records, None)


def cordon_directories(
    image: MetadataImage, broker_id: int, directory_ids: Collection[bytes] | None
) -> ControllerResult[None]:
    """Records the directories in which a broker accepts no new replicas, if they have changed.

    `directory_ids` is None if the broker has not reported them yet; then nothing is recorded.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or directory_ids is None or not levels.supports_cordoned_directories(image.metadata_version):
        return ControllerResult([], None)
    known = broker.cordoned_log_dirs
    if known is not None and set(known) == set(directory_ids):
        return ControllerResult([], None)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(directory_ids)
    )
    return ControllerResult([(change, 3)], None)


def unregister_broker(
    image: MetadataImage, broker_id: int, settings: ControllerSettings = DEFAULT_SETTINGS
) -> ControllerResult[None]:
    """Removes a broker's registration.

    Raises ApiError: BROKER_ID_NOT_REGISTERED, or POLICY_VIOLATION if the broker has more partitions than one batch can
    change.
    """
    broker = _registered(image, broker_id)
    changes = PartitionChanges(image, settings, removed=broker_id)
    records: list[MessageAndVersion] = [
        *changes.leader_and_isr_updates(partitions_in_isr(image, broker_id)),
        *changes.leader_and_isr_updates(partitions_in_elr(image, broker_id)),
        (UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch), 0),
    ]
    check_record_count(records)
    return ControllerResult(records, None)


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """Returns the registration of a broker.

    Raises ApiError(STALE_BROKER_EPOCH) if the broker is not registered, or its registration has another epoch than
    `broker_epoch`.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(Error.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        raise ApiError(
            Error.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        )
    return broker


def _registered(image: MetadataImage, broker_id: int) -> BrokerRegistration:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(Error.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return broker
