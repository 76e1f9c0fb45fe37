"""Describes the brokers and partitions of a metadata image as the clients of one listener see them."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import Endpoint
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.topics_image import (
    NO_LEADER,
    PartitionImage,
)
from kafkapy.named_tuple import NamedTuple


class DescribedPartition(NamedTuple):
    """The leader and the replicas of a partition, as Metadata shows them to clients of one listener.

    All lists contain broker ids. If the leader is not reachable on the listener, `leader` is -1, and `error` is the
    reason.
    """

    error: Error
    leader: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]


class ClusterView:
    """Describes the partitions and brokers of one metadata image to the clients of one listener.

    `endpoints` maps the id of each unfenced broker to its address on the listener. The object does not change, and is
    cheap to create.
    """

    __slots__ = ("_image", "endpoints")

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        self._image = image
        self.endpoints: dict[int, Endpoint] = {
            broker_id: broker.endpoints[listener_name]
            for broker_id, broker in image.brokers.items()
            if not broker.fenced and listener_name in broker.endpoints
        }

    def rack_of(self, broker_id: int) -> str | None:
        return self._image.brokers[broker_id].rack

    def describe(
        self, partition: PartitionImage, *, name_missing_listener: bool = True, strict: bool = False
    ) -> DescribedPartition:
        """Returns the description of a partition for clients of the listener.

        A broker is reachable if it is not fenced and has this listener. If the leader is not reachable, the error is
        LISTENER_NOT_FOUND if the leader is registered and `name_missing_listener` is True, else LEADER_NOT_AVAILABLE.

        With `strict`, which Metadata version 0 uses, only reachable replicas are listed, and the error is
        REPLICA_NOT_AVAILABLE if the leader is reachable but another replica is not.
        """
        replicas, isr = list(partition.replicas), list(partition.isr)
        offline = self._offline_replicas(partition)
        if strict:
            replicas = self._alive(replicas)
            isr = self._alive(isr)
        if partition.leader not in self.endpoints:
            known = partition.leader != NO_LEADER and partition.leader in self._image.brokers
            error = Error.LISTENER_NOT_FOUND if known and name_missing_listener else Error.LEADER_NOT_AVAILABLE
            return DescribedPartition(error, NO_LEADER, replicas, isr, offline)
        complete = len(replicas) == len(partition.replicas) and len(isr) == len(partition.isr)
        error = Error.NONE if complete else Error.REPLICA_NOT_AVAILABLE
        return DescribedPartition(error, partition.leader, replicas, isr, offline)

    def _alive(self, brokers: Iterable[int]) -> list[int]:
        return [broker_id for broker_id in brokers if broker_id in self.endpoints]

    def _offline_replicas(self, partition: PartitionImage) -> list[int]:
        offline = []
        for replica, directory in zip(partition.replicas, partition.directories, strict=True):
            broker = self._image.brokers.get(replica)
            if broker is None or broker.fenced or not broker.has_online_directory(directory):
                offline.append(replica)
        return offline
