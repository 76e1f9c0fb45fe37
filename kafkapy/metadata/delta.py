"""The changes from one image to the next. An image is the cluster's metadata at one offset of the metadata log.

The changes are made by replaying metadata records. All types of metadata records in Apache Kafka 4.3 are supported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from kafkapy.config.group_config import GROUP_ROWS
from kafkapy.config.table import TOPIC_ROWS
from kafkapy.metadata.cluster_image import (
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    Endpoint,
    ScramCredential,
)
from kafkapy.metadata.features import check_feature_level
from kafkapy.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE, MetadataImage, QuotaEntity
from kafkapy.metadata.topics_delta import TopicsDelta
from kafkapy.metadata.topics_image import TopicImage
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.types import uuid_to_string

Key = TypeVar("Key")
Value = TypeVar("Value")

# The resource types whose keys are fixed; brokers may also have keys of plug-ins.
KNOWN_KEYS: dict[int, Collection[str]] = {TOPIC_RESOURCE: TOPIC_ROWS, GROUP_RESOURCE: GROUP_ROWS}


class MetadataDelta:
    """The changes that replayed records make to `image`. Not thread-safe; `image` itself never changes.

    Each dictionary of the image is copied when the first record changes it, and otherwise shared. The caller replays
    the records of a metadata transaction only after EndTransaction.
    """

    __slots__ = (
        "acls",
        "brokers",
        "changed_brokers",
        "changed_configs",
        "changed_features",
        "changed_quotas",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "image",
        "next_producer_id",
        "scram",
        "topics",
    )  # fmt: skip

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.topics = TopicsDelta(image.topics)
        self.features = image.features
        self.brokers = image.brokers
        self.controllers = image.controllers
        self.configs = image.configs
        self.client_quotas = image.client_quotas
        self.next_producer_id = image.next_producer_id
        self.acls = image.acls
        self.scram = image.scram
        self.delegation_tokens = image.delegation_tokens
        self.changed_features: set[str] = set()
        self.changed_brokers: set[int] = set()
        self.changed_configs: set[tuple[int, str]] = set()
        self.changed_quotas: set[QuotaEntity] = set()

    @property
    def changed_topics(self) -> dict[bytes, TopicImage]:
        """The topics that are new or have changed partitions, in their new state, by topic id."""
        return self.topics.changed

    @property
    def changed_partitions(self) -> list[TopicImage]:
        """The topics of `changed_topics`, each with only those of its partitions that are new or were changed.

        Consumers of a delta iterate over this list and not over `changed_topics`, because a topic may have thousands of
        partitions, of which only one has changed.
        """
        changed = self.topics.changed_partitions
        return [topic._replace(partitions=changed[topic_id]) for topic_id, topic in self.topics.changed.items()]

    @property
    def deleted_topics(self) -> dict[bytes, TopicImage]:
        """The removed topics, as they were in `image`, by topic id."""
        return self.topics.deleted

    def to_image(self, offset: int, epoch: int) -> MetadataImage:
        """Returns the image after all replayed records. `offset` is the offset after the last of these records, and
        `epoch` the leader epoch of that record."""
        assert offset >= self.image.offset, f"image at {offset} after one at {self.image.offset}"
        assert epoch >= self.image.epoch, f"image of epoch {epoch} after one of epoch {self.image.epoch}"
        return MetadataImage(
            offset, epoch, self.features, self.brokers, self.controllers, self.topics.apply(), self.configs,
            self.client_quotas, self.next_producer_id, self.acls, self.scram, self.delegation_tokens,
        )  # fmt: skip

    def replay(self, record: Any) -> None:
        """Applies one metadata record.

        Raises ValueError for an unknown record type, or for a record that contradicts the image, such as the change of
        an unknown topic.
        """
        replay = REPLAY.get(type(record).__name__)
        if replay is None:
            raise ValueError(f"unknown metadata record {type(record).__name__}")
        replay(self, record)

    def _own(self, part: dict[Key, Value], original: dict[Key, Value]) -> dict[Key, Value]:
        return dict(part) if part is original else part

    def _feature_level(self, record: Any) -> None:
        check_feature_level(record.name, record.feature_level)
        self.features = self._own(self.features, self.image.features)
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        self.changed_features.add(record.name)

    def _topic(self, record: Any) -> None:
        self.topics.add_topic(record.name, record.topic_id)

    def _remove_topic(self, record: Any) -> None:
        topic = self.topics.remove_topic(record.topic_id)
        resource = (TOPIC_RESOURCE, topic.name)
        if resource in self.configs:
            self.configs = self._own(self.configs, self.image.configs)
            del self.configs[resource]
            self.changed_configs.add(resource)

    def _config(self, record: Any) -> None:
        """Applies a ConfigRecord, except for a key of a topic or group that Kafka 4.3 does not have.

        Such keys, for example message.format.version, remain in the log after an upgrade of Kafka. Like Apache Kafka
        4.3, this leaves them out of the image, because they would make every later change of the resource invalid.
        """
        known = KNOWN_KEYS.get(record.resource_type)
        if known is not None and record.name not in known:
            return
        resource = (record.resource_type, record.resource_name)
        self.configs = self._own(self.configs, self.image.configs)
        entries = dict(self.configs.get(resource, ()))
        if record.value is None:
            entries.pop(record.name, None)
        else:
            entries[record.name] = record.value
        if entries:
            self.configs[resource] = entries
        else:
            self.configs.pop(resource, None)
        self.changed_configs.add(resource)

    def _put_broker(self, registration: BrokerRegistration) -> None:
        self.brokers = self._own(self.brokers, self.image.brokers)
        self.brokers[registration.broker_id] = registration
        self.changed_brokers.add(registration.broker_id)

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        registration = self.brokers.get(broker_id)
        if registration is None or registration.epoch != epoch:
            raise ValueError(f"change of broker {broker_id} epoch {epoch}, but the registration is {registration}")
        return registration

    def _register_broker(self, record: Any) -> None:
        cordoned = record.cordoned_log_dirs
        self._put_broker(
            BrokerRegistration(
                record.broker_id,
                record.broker_epoch,
                record.incarnation_id,
                _endpoints(record.end_points),
                _features(record.features),
                record.rack,
                record.fenced,
                record.in_controlled_shutdown,
                tuple(record.log_dirs or ()),
                None if cordoned is None else tuple(cordoned),
                record.is_migrating_zk_broker,
            )
        )

    def _unregister_broker(self, record: Any) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self.brokers = self._own(self.brokers, self.image.brokers)
        del self.brokers[record.broker_id]
        self.changed_brokers.add(record.broker_id)

    def _fence_broker(self, record: Any) -> None:
        self._put_broker(self._broker(record.id, record.epoch)._replace(fenced=True))

    def _unfence_broker(self, record: Any) -> None:
        self._put_broker(self._broker(record.id, record.epoch)._replace(fenced=False))

    def _broker_registration_change(self, record: Any) -> None:
        registration = self._broker(record.broker_id, record.broker_epoch)
        changes: dict[str, Any] = {}
        if record.fenced:
            changes["fenced"] = record.fenced > 0
        if record.in_controlled_shutdown > 0:
            changes["in_controlled_shutdown"] = True
        if record.log_dirs:
            changes["log_dirs"] = tuple(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            changes["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
        self._put_broker(registration._replace(**changes))

    def _register_controller(self, record: Any) -> None:
        self.controllers = self._own(self.controllers, self.image.controllers)
        self.controllers[record.controller_id] = ControllerRegistration(
            record.controller_id,
            record.incarnation_id,
            record.zk_migration_ready,
            _endpoints(record.end_points),
            _features(record.features),
        )

    def _client_quota(self, record: Any) -> None:
        entity: QuotaEntity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        self.client_quotas = self._own(self.client_quotas, self.image.client_quotas)
        quotas = dict(self.client_quotas.get(entity, ()))
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if quotas:
            self.client_quotas[entity] = quotas
        else:
            self.client_quotas.pop(entity, None)
        self.changed_quotas.add(entity)

    def _producer_ids(self, record: Any) -> None:
        self.next_producer_id = record.next_producer_id

    def _access_control_entry(self, record: Any) -> None:
        self.acls = self._own(self.acls, self.image.acls)
        self.acls[record.id] = AccessControlEntry(
            record.resource_type, record.resource_name, record.pattern_type, record.principal, record.host,
            record.operation, record.permission_type,
        )  # fmt: skip

    def _remove_access_control_entry(self, record: Any) -> None:
        if record.id not in self.acls:
            raise ValueError(f"removal of unknown ACL {uuid_to_string(record.id)}")
        self.acls = self._own(self.acls, self.image.acls)
        del self.acls[record.id]

    def _user_scram_credential(self, record: Any) -> None:
        self.scram = self._own(self.scram, self.image.scram)
        self.scram[(record.name, record.mechanism)] = ScramCredential(
            record.salt, record.stored_key, record.server_key, record.iterations
        )

    def _remove_user_scram_credential(self, record: Any) -> None:
        self.scram = self._own(self.scram, self.image.scram)
        self.scram.pop((record.name, record.mechanism), None)

    def _delegation_token(self, record: Any) -> None:
        self.delegation_tokens = self._own(self.delegation_tokens, self.image.delegation_tokens)
        self.delegation_tokens[record.token_id] = DelegationToken(
            record.owner, record.requester, tuple(record.renewers), record.issue_timestamp, record.max_timestamp,
            record.expiration_timestamp, record.token_id,
        )  # fmt: skip

    def _remove_delegation_token(self, record: Any) -> None:
        self.delegation_tokens = self._own(self.delegation_tokens, self.image.delegation_tokens)
        self.delegation_tokens.pop(record.token_id, None)

    def _nothing(self, record: Any) -> None:
        """Does nothing when a record is replayed that changes no metadata.

        These are NoOpRecord and, as in Apache Kafka 4, ZkMigrationStateRecord: a cluster that was migrated from
        ZooKeeper by Kafka 3 has the records of all states of the migration in its log.
        """


def _endpoints(end_points: Any) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in end_points}


def _features(features: Any) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}


Replay = Callable[[MetadataDelta, Any], None]
REPLAY: dict[str, Replay] = {
    "AccessControlEntryRecord": MetadataDelta._access_control_entry,
    "BrokerRegistrationChangeRecord": MetadataDelta._broker_registration_change,
    "ClearElrRecord": lambda delta, record: delta.topics.clear_elr(record.topic_name),
    "ClientQuotaRecord": MetadataDelta._client_quota,
    "ConfigRecord": MetadataDelta._config,
    "DelegationTokenRecord": MetadataDelta._delegation_token,
    "FeatureLevelRecord": MetadataDelta._feature_level,
    "FenceBrokerRecord": MetadataDelta._fence_broker,
    "NoOpRecord": MetadataDelta._nothing,
    "PartitionChangeRecord": lambda delta, record: delta.topics.change_partition(record),
    "PartitionRecord": lambda delta, record: delta.topics.put_partition(record),
    "ProducerIdsRecord": MetadataDelta._producer_ids,
    "RegisterBrokerRecord": MetadataDelta._register_broker,
    "RegisterControllerRecord": MetadataDelta._register_controller,
    "RemoveAccessControlEntryRecord": MetadataDelta._remove_access_control_entry,
    "RemoveDelegationTokenRecord": MetadataDelta._remove_delegation_token,
    "RemoveTopicRecord": MetadataDelta._remove_topic,
    "RemoveUserScramCredentialRecord": MetadataDelta._remove_user_scram_credential,
    "TopicRecord": MetadataDelta._topic,
    "UnfenceBrokerRecord": MetadataDelta._unfence_broker,
    "UnregisterBrokerRecord": MetadataDelta._unregister_broker,
    "UserScramCredentialRecord": MetadataDelta._user_scram_credential,
    "ZkMigrationStateRecord": MetadataDelta._nothing,
}
