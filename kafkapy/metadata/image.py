"""The cluster metadata at one offset of the metadata log: an immutable tree of dictionaries.

Two images share every part that no record between them changed, so that a new image costs only as much as the change.
Readers need no lock, because no part of an image is changed after it was built; `MetadataDelta` builds the next image.
"""

from __future__ import annotations

from kafkapy.metadata.cluster_image import (
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    ScramCredential,
)
from kafkapy.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, OLDEST_METADATA_VERSION
from kafkapy.metadata.features import supports_elr as metadata_version_supports_elr
from kafkapy.metadata.topics_image import EMPTY_TOPICS, TopicsImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.security.access_control_entry import AccessControlEntry

# ConfigRecord.resource_type and the resource types of the config APIs.
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

QuotaEntity = tuple[tuple[str, str | None], ...]


class MetadataImage(NamedTuple):
    """The metadata after the records before `offset`; `epoch` is the epoch of the last record. The object does not
    change after its construction.

    `configs` maps (resource type, name) to the overrides of the resource; the cluster-wide broker default has the name
    "". `client_quotas` maps an entity to a dictionary of the entity's limits by quota key; an entity is a sorted tuple
    of pairs (type, name), in which the name None stands for the default entity of the type. `scram` has the key (user,
    mechanism number), `acls` the id of 16 bytes, and `delegation_tokens` the token id. Producer ids below
    `next_producer_id` are allocated.
    """

    offset: int
    epoch: int
    features: dict[str, int]
    brokers: dict[int, BrokerRegistration]
    controllers: dict[int, ControllerRegistration]
    topics: TopicsImage
    configs: dict[tuple[int, str], dict[str, str]]
    client_quotas: dict[QuotaEntity, dict[str, float]]
    next_producer_id: int
    acls: dict[bytes, AccessControlEntry]
    scram: dict[tuple[str, int], ScramCredential]
    delegation_tokens: dict[str, DelegationToken]

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version; the oldest supported version if the log contains no metadata.version yet."""
        return self.features.get(METADATA_VERSION, OLDEST_METADATA_VERSION)

    @property
    def elr_enabled(self) -> bool:
        """True if partitions of this cluster have eligible leader replicas (KIP-966).

        This requires that the feature eligible.leader.replicas.version is finalized, and that the records of the
        finalized metadata.version can contain eligible leader replicas.
        """
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0 and metadata_version_supports_elr(
            self.metadata_version
        )

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """Returns the overrides of a resource, values by configuration key; empty if it has none. `resource_type` is
        Kafka's number."""
        return self.configs.get((resource_type, name), _NO_CONFIG)


_NO_CONFIG: dict[str, str] = {}
EMPTY_IMAGE = MetadataImage(0, 0, {}, {}, {}, EMPTY_TOPICS, {}, {}, 0, {}, {}, {})


class MetadataCache:
    """Stores the newest published image, and the encoded responses that were built from it.

    `current` is one attribute, which the thread of the quorum replaces atomically and any thread reads. The responses
    are used only by the thread that serves all requests (the reactor), and are discarded together with their image.
    """

    __slots__ = ("current",)

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self.current: tuple[MetadataImage, dict[object, bytes]] = (image, {})

    @property
    def image(self) -> MetadataImage:
        return self.current[0]

    @image.setter
    def image(self, image: MetadataImage) -> None:
        self.current = (image, {})
