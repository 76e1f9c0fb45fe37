"""The metadata of a cluster as a tree of directories and files, with the names and texts of `kafka-metadata-shell`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial

from kafkapy.config.value import format_double
from kafkapy.metadata.cluster_image import (
    SECURITY_PROTOCOL_IDS,
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    Endpoint,
    ScramCredential,
)
from kafkapy.metadata.features import METADATA_VERSION
from kafkapy.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kafkapy.metadata.release_features import METADATA_VERSION_NAMES
from kafkapy.metadata.topics_image import RECOVERING, PartitionImage, TopicImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.types import uuid_to_string

# A file is a function that returns its text; a directory maps names to nodes.
File = Callable[[], str]
Node = File | Mapping[str, "Node"]

_PROTOCOLS = {number: name for name, number in SECURITY_PROTOCOL_IDS.items()}
_CONFIG_TYPES = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    BROKER_LOGGER_RESOURCE: "BROKER_LOGGER",
    CLIENT_METRICS_RESOURCE: "CLIENT_METRICS",
    GROUP_RESOURCE: "GROUP",
}
_ENTITY_TYPES = {"client-id": "clientId", "ip": "ip", "user": "user"}
# The name of a default entity. Apache Kafka's shell leaves it out, and then cannot read the node.
_DEFAULT_ENTITY = "<default>"


class Provenance(NamedTuple):
    """The last record that a tree contains: its offset, its epoch and the time of its batch in ms since 1970."""

    offset: int
    epoch: int
    wall_ms: int


def tree_of(image: MetadataImage, provenance: Provenance, local: Mapping[str, str]) -> Mapping[str, Node]:
    """Returns the root directory of the tree that shows a metadata image.

    A directory is a mapping from names to nodes, and a file is a function that returns the file's text. The directory
    "local" has facts about this program; `local` maps the names of its files to their texts.
    """
    return {
        "image": {
            "acls": {"byId": {uuid_to_string(key): partial(_acl, each) for key, each in image.acls.items()}},
            "clientQuotas": {
                _entity(entity): {key: partial(format_double, value) for key, value in values.items()}
                for entity, values in image.client_quotas.items()
            },
            "cluster": {
                "brokers": {str(key): partial(_broker, each) for key, each in image.brokers.items()},
                "controllers": {str(key): partial(_controller, each) for key, each in image.controllers.items()},
            },
            "configs": {
                f"{_CONFIG_TYPES[kind]}:{name}" if name else _CONFIG_TYPES[kind]: {
                    key: partial(str, value) for key, value in values.items()
                }
                for (kind, name), values in image.configs.items()
            },
            "delegationToken": {key: partial(_token, each) for key, each in image.delegation_tokens.items()},
            "features": _features(image.features),
            "producerIds": {"nextProducerId": partial(str, image.next_producer_id)},
            "provenance": partial(_provenance, provenance),
            "scram": _scram(image.scram),
            "topics": {
                "byId": {uuid_to_string(key): _topic(each) for key, each in image.topics.by_id.items()},
                "byName": {key: _topic(each) for key, each in image.topics.by_name.items()},
            },
        },
        "local": {name: partial(str, text) for name, text in local.items()},
    }


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _uuids(values: Iterable[bytes]) -> str:
    return _list(map(uuid_to_string, values))


def _in_java_order(values: Iterable[bytes]) -> list[bytes]:
    """Returns ids in the order of Java's class Uuid, which compares each half of an id as a signed 64-bit number."""

    def halves(value: bytes) -> tuple[int, int]:
        return int.from_bytes(value[:8], "big", signed=True), int.from_bytes(value[8:], "big", signed=True)

    return sorted(values, key=halves)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _acl(acl: AccessControlEntry) -> str:
    return (
        f"StandardAcl[resourceType={ResourceType(acl.resource_type).name}, resourceName={acl.resource_name}, "
        f"patternType={PatternType(acl.pattern_type).name}, principal={acl.principal}, host={acl.host}, "
        f"operation={Operation(acl.operation).name}, permissionType={Permission(acl.permission_type).name}]"
    )


def _entity(entity: Iterable[tuple[str, str | None]]) -> str:
    """Returns the name of a quota's entity, such as `clientId(c1)_user(u1)`."""
    parts = []
    for kind, name in sorted(entity):
        text = _DEFAULT_ENTITY if name is None else "".join(f"\\{each}" if each in "()\\" else each for each in name)
        parts.append(f"{_ENTITY_TYPES.get(kind, kind)}({text})")
    return "_".join(parts)


def _endpoints(endpoints: Mapping[str, Endpoint]) -> str:
    shown = (
        f"Endpoint(listenerName='{each.name}', securityProtocol={_PROTOCOLS[each.security_protocol]}, "
        f"host='{each.host}', port={each.port})"
        for _, each in sorted(endpoints.items())
    )
    return _list(shown)


def _supported(features: Mapping[str, tuple[int, int]]) -> str:
    return f"{{{', '.join(f'{name}: {low}-{high}' for name, (low, high) in sorted(features.items()))}}}"


def _broker(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.broker_id}, epoch={broker.epoch}, "
        f"incarnationId={uuid_to_string(broker.incarnation_id)}, listeners={_endpoints(broker.endpoints)}, "
        f"supportedFeatures={_supported(broker.features)}, rack={rack}, fenced={_bool(broker.fenced)}, "
        f"inControlledShutdown={_bool(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_bool(broker.is_migrating_zk_broker)}, "
        f"directories={_uuids(_in_java_order(broker.log_dirs))}, "
        f"cordonedDirectories={_uuids(_in_java_order(broker.cordoned_log_dirs or ()))})"
    )


def _controller(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.controller_id}, "
        f"incarnationId={uuid_to_string(controller.incarnation_id)}, "
        f"zkMigrationReady={_bool(controller.zk_migration_ready)}, listeners={_endpoints(controller.endpoints)}, "
        f"supportedFeatures={_supported(controller.features)})"
    )


def _token(token: DelegationToken) -> str:
    return (
        f"DelegationTokenDatatokenId={token.token_id}(owner={token.owner}(tokenRequester={token.requester}"
        f"(renewers={' '.join(token.renewers)}, issueTimestamp={token.issue_timestamp}, "
        f"maxTimestamp={token.max_timestamp}), expiryTimestamp={token.expiration_timestamp}"
    )


def _features(features: Mapping[str, int]) -> Mapping[str, Node]:
    level = features.get(METADATA_VERSION)
    version = "Optional.empty" if level is None else f"Optional[{METADATA_VERSION_NAMES.get(level, level)}]"
    found: dict[str, Node] = {
        f"finalized_{name}": partial(str, value) for name, value in features.items() if name != METADATA_VERSION
    }
    return {**found, "metadataVersion": partial(str, version)}


def _provenance(provenance: Provenance) -> str:
    moment = datetime.fromtimestamp(provenance.wall_ms / 1000, UTC)
    seconds = moment.strftime("%Y-%m-%dT%H:%M" if not provenance.wall_ms % 60_000 else "%Y-%m-%dT%H:%M:%S")
    fraction = f".{provenance.wall_ms % 1000:03}" if provenance.wall_ms % 1000 else ""
    return f"offset {provenance.offset}, epoch {provenance.epoch}, time {seconds}{fraction}Z[UTC]"


def _scram(credentials: Mapping[tuple[str, int], ScramCredential]) -> Mapping[str, Node]:
    found: dict[str, dict[str, Node]] = {}
    for (user, number), each in credentials.items():
        mechanism = ScramMechanism(number).name.replace("_", "-")
        found.setdefault(mechanism, {})[user] = partial(_credential, each)
    return found


def _credential(credential: ScramCredential) -> str:
    return (
        f"ScramCredentialData(salt={credential.salt.hex()}, storedKey={credential.stored_key.hex()}, "
        f"serverKey={credential.server_key.hex()}, iterations={credential.iterations})"
    )


def _topic(topic: TopicImage) -> Mapping[str, Node]:
    partitions: dict[str, Node] = {str(key): partial(_partition, each) for key, each in topic.partitions.items()}
    return {**partitions, "id": partial(uuid_to_string, topic.topic_id), "name": partial(str, topic.name)}


def _partition(state: PartitionImage) -> str:
    recovery = "RECOVERING" if state.leader_recovery_state == RECOVERING else "RECOVERED"
    return (
        f"PartitionRegistration(replicas={_list(state.replicas)}, directories={_uuids(state.directories)}, "
        f"isr={_list(state.isr)}, removingReplicas={_list(state.removing_replicas)}, "
        f"addingReplicas={_list(state.adding_replicas)}, elr={_list(state.elr)}, "
        f"lastKnownElr={_list(state.last_known_elr)}, leader={state.leader}, leaderRecoveryState={recovery}, "
        f"leaderEpoch={state.leader_epoch}, partitionEpoch={state.partition_epoch})"
    )
