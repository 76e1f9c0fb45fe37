"""The registration of a broker in the metadata log: registration (fenced), unfencing, controlled shutdown, fencing.

Each step also changes the broker's partitions, in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from kafkapy.controller.configs import effective_min_isr
from kafkapy.controller.partition_change import Election, PartitionChange
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import BrokerRegistration
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion, register_broker_record
from kafkapy.metadata.topics_image import NO_LEADER, PartitionImage, TopicImage
from kafkapy.protocol.messages.metadata_records import BrokerRegistrationChangeRecord, UnregisterBrokerRecord

# A topic's configuration, as in ConfigRecords -> whether an election may lose records.
UncleanElection = Callable[[str], bool]


def never_unclean(topic: str) -> bool:
    return False


def register_broker(
    image: MetadataImage, registration: BrokerRegistration, clean_broker_epoch: int
) -> ControllerResult[int]:
    """Registers a new incarnation, fenced. The response is its broker epoch: the offset of the batch's first record.

    `clean_broker_epoch` is the epoch in the broker's clean-shutdown marker, -1 without one. If it is not the epoch of
    the last registration, the broker may have lost records, and its replicas no longer count as complete.
    """
    records: list[MessageAndVersion] = []
    previous = image.brokers.get(registration.broker_id)
    if previous is not None and not previous.fenced:
        raise ApiError(
            Error.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker is registered with that broker id {registration.broker_id}, and is not fenced.",
        )
    if image.elr_enabled and previous is not None and clean_broker_epoch != previous.epoch:
        records.extend(_without_broker(image, registration.broker_id, unclean=True))
    registration = registration._replace(epoch=image.offset, fenced=True, in_controlled_shutdown=False)
    records.append(register_broker_record(registration, image.metadata_version))
    return ControllerResult(records, registration.epoch)


def unfence_broker(
    image: MetadataImage, broker_id: int, unclean_election: UncleanElection = never_unclean
) -> ControllerResult[None]:
    """Unfences the broker and elects leaders for the partitions without one."""
    broker = _registered(image, broker_id)
    records: list[MessageAndVersion] = []
    if broker.fenced:
        change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=-1)
        records.append((change, 0))

    def is_live(replica: int) -> bool:
        return replica == broker_id or _is_active(image, replica)

    for topic, partition_id, partition in _partitions_of(image, broker_id):
        if partition.leader != NO_LEADER:
            continue
        builder = partition_change(image, topic, partition_id, partition, is_live)
        if unclean_election(topic.name):
            builder.election = Election.UNCLEAN
        record = builder.build()
        if record is not None:
            records.append(record)
    return ControllerResult(records, None)


def begin_controlled_shutdown(image: MetadataImage, broker_id: int) -> ControllerResult[None]:
    """Records that the broker will stop, and moves its leaderships to other brokers, or to none."""
    broker = _registered(image, broker_id)
    records: list[MessageAndVersion] = []
    if not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        records.append((change, 1))
    records.extend(_without_broker(image, broker_id))
    return ControllerResult(records, None)


def fence_broker(image: MetadataImage, broker_id: int) -> ControllerResult[None]:
    """Fences the broker, which then leads nothing until it is unfenced. Does nothing if it is fenced or unknown."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced:
        return ControllerResult([], None)
    records = list(_without_broker(image, broker_id))
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1)
    records.append((change, 0))
    return ControllerResult(records, None)


def take_directories_offline(
    image: MetadataImage, broker_id: int, directory_ids: Collection[bytes]
) -> ControllerResult[None]:
    """Records failed log directories of a broker: it loses the leadership of the partitions in them."""
    broker = image.brokers.get(broker_id)
    failed = [] if broker is None else [each for each in broker.log_dirs if each in directory_ids]
    if broker is None or not failed:
        return ControllerResult([], None)
    records = list(_without_broker(image, broker_id, directory_ids=failed))
    remaining = [each for each in broker.log_dirs if each not in directory_ids]
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=remaining)
    records.append((change, 2))
    return ControllerResult(records, None)


def unregister_broker(image: MetadataImage, broker_id: int) -> ControllerResult[None]:
    """Removes a broker's registration. Raises ApiError(BROKER_ID_NOT_REGISTERED)."""
    broker = _registered(image, broker_id)
    records: list[MessageAndVersion] = list(_without_broker(image, broker_id))
    records.append((UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch), 0))
    return ControllerResult(records, None)


def partition_change(
    image: MetadataImage,
    topic: TopicImage,
    partition_id: int,
    partition: PartitionImage,
    is_live: Callable[[int], bool],
) -> PartitionChange:
    """Returns a change of one partition by the rules of this image: a leader has to be live, and so has its
    directory."""
    elr_enabled = image.elr_enabled

    def may_lead(replica: int) -> bool:
        broker = image.brokers.get(replica)
        is_served = broker is not None and broker.has_online_directory(partition.directory_of(replica))
        return is_served and is_live(replica)

    return PartitionChange(
        topic.topic_id,
        partition_id,
        partition,
        image.metadata_version,
        may_lead,
        elr_enabled=elr_enabled,
        min_isr=effective_min_isr(image, topic.name) if elr_enabled else 1,
    )


def _without_broker(
    image: MetadataImage, broker_id: int, *, unclean: bool = False, directory_ids: Collection[bytes] | None = None
) -> Iterator[MessageAndVersion]:
    """Returns the changes that remove a broker from every ISR, and after an unclean stop from every ELR.

    With `directory_ids`, only partitions whose replica is in one of these directories change.
    """

    def is_live(replica: int) -> bool:
        return replica != broker_id and _is_active(image, replica)

    for topic, partition_id, partition in _partitions_of(image, broker_id):
        if directory_ids is not None and partition.directory_of(broker_id) not in directory_ids:
            continue
        builder = partition_change(image, topic, partition_id, partition, is_live)
        builder.target_isr = tuple(replica for replica in partition.isr if replica != broker_id)
        if unclean:
            builder.unclean_shutdown_replicas = frozenset([broker_id])
        elif partition.leader != broker_id and broker_id not in partition.isr:
            continue
        record = builder.build()
        if record is not None:
            yield record


def _partitions_of(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    for topic in image.topics.by_name.values():
        for partition_id, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield topic, partition_id, partition


def _registered(image: MetadataImage, broker_id: int) -> BrokerRegistration:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(Error.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return broker


def _is_active(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active
