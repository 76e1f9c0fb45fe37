"""Kafka's znodes as a function of the metadata: what brokers and controllers of Kafka with ZooKeeper wrote.

The nodes are made in parts: one part for each topic, broker and configured entity, such as a user. A part is made from
a few objects of a metadata image. Objects that no record has changed are the same in the next image, so that it takes
only one comparison to find that a part has not changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from kafkapy.config.dynamic import dynamic_row
from kafkapy.metadata.cluster_image import BrokerRegistration, ScramCredential
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, QuotaEntity
from kafkapy.metadata.internal_topics import ZOOKEEPER_TREE_TOPIC
from kafkapy.metadata.topics_image import PartitionImage, TopicImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.acl_nodes import EMPTY_FOLDERS, acl_values, comparable
from kafkapy.zookeeper.node import PERSISTENT
from kafkapy.zookeeper.scram_nodes import shown_credentials

Json = dict[str, Any]

# The nodes that brokers create at their first start, with parents before their children.
_EMPTY_NODES = (
    "/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/seqid", "/brokers/topics", "/cluster",
    "/config", "/config/brokers", "/config/changes", "/config/clients", "/config/ips", "/config/topics",
    "/config/users", "/consumers", "/isr_change_notification", "/latest_producer_id_block",
    "/log_dir_event_notification",
)  # fmt: skip
# The protocols by their numbers in registrations.
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
UNNAMED_ENTITY = "<default>"
TOPIC_PART_PREFIX = "topic "
_NO_QUOTAS: dict[str, float] = {}
_NO_CREDENTIALS: dict[int, ScramCredential] = {}


class ViewNode(NamedTuple):
    """The content of one of Kafka's znodes, made from the cluster metadata.

    value     the JSON object, a text, or None for a node without data
    volatile  keys of the object, such as a timestamp, whose change alone does not cause a write of the node
    is_acl    whether the object has ACLs, whose order does not count
    version   the data version of the znode; None if each change increases the version by 1
    owner     the session that owns the node, if Kafka's node is ephemeral
    """

    value: Json | str | None = None
    volatile: tuple[str, ...] = ()
    version: int | None = None
    owner: int = PERSISTENT
    is_acl: bool = False

    def encode(self) -> bytes | None:
        if self.value is None:
            return None
        if isinstance(self.value, str):
            return self.value.encode()
        return encode_json(self.value)

    def is_shown_by(self, data: bytes | None) -> bool:
        """Returns whether a node of the tree already shows this content. `data` is the present data of the node.

        The keys in `volatile`, such as a timestamp, and the order of ACLs are not compared.
        """
        if not isinstance(self.value, dict):
            return data == self.encode()
        try:
            shown = decode_json(data or b"")
        except ValueError:
            return False
        if self.is_acl:
            return bool(comparable(shown) == comparable(self.value))
        return isinstance(shown, dict) and self._stable(shown) == self._stable(self.value)

    def _stable(self, value: Json) -> Json:
        return {key: value[key] for key in value if key not in self.volatile}


def decode_json(data: bytes) -> Any:
    """Returns the value of a JSON text. Raises ValueError for other data, and for arrays nested too deeply."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("the JSON value is nested too deeply") from None


def encode_json(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class ClusterFacts(NamedTuple):
    """The facts about the cluster that the nodes show in addition to the metadata image.

    `controller_id` is the id of the broker that is shown as the controller, and `wall_ms` is the `timestamp` in the
    nodes of brokers and the controller.
    """

    cluster_id: str
    controller_id: int
    wall_ms: int


Nodes = dict[str, ViewNode]


class ViewPart(NamedTuple):
    """The znodes that show one object of the metadata, such as a topic; `make` returns the znodes by path.

    `sources` are the objects in the metadata image that the znodes show. While a new image has the same objects, `make`
    need not be called again.
    """

    name: str
    sources: tuple[object, ...]
    make: Callable[[], Nodes]


def topic_part_name(topic: str) -> str:
    return f"{TOPIC_PART_PREFIX}{topic}"


def view_parts(image: MetadataImage, facts: ClusterFacts, topics: Collection[str] | None = None) -> Iterator[ViewPart]:
    """Yields the nodes that show an image, in parts: one for each topic, broker and so on, parent nodes first.

    `topics` restricts the parts of topics to these names; None yields the parts of all topics.
    """
    yield ViewPart("cluster", (facts.cluster_id,), partial(_cluster_nodes, facts))
    yield ViewPart("controller", (facts.controller_id, image.epoch), partial(_controller_nodes, image, facts))
    for broker in image.brokers.values():
        if not broker.fenced:
            yield ViewPart(f"broker {broker.broker_id}", (broker,), partial(broker_nodes, broker, facts))
    for topic_name in image.topics.by_name if topics is None else topics:
        topic = image.topics.by_name.get(topic_name)
        if topic is not None and topic.name != ZOOKEEPER_TREE_TOPIC:
            config = image.config(TOPIC_RESOURCE, topic.name)
            make = partial(topic_nodes, topic, config, image.epoch)
            yield ViewPart(topic_part_name(topic.name), (topic, config), make)
    for (kind, name), config in image.configs.items():
        if kind == BROKER_RESOURCE:
            yield ViewPart(f"broker config {name}", (config,), partial(_broker_config_nodes, name, config))
    credentials = _credentials_by_user(image)
    for entity, quotas in image.client_quotas.items():
        own = credentials.pop(user_of(entity), _NO_CREDENTIALS)
        sources = (quotas, *own.values())
        yield ViewPart(f"quota {entity}", sources, partial(quota_nodes, entity, quotas, own))
    for user, own in credentials.items():
        entity = (("user", user),)
        yield ViewPart(f"quota {entity}", (_NO_QUOTAS, *own.values()), partial(quota_nodes, entity, _NO_QUOTAS, own))
    yield ViewPart("acls", (image.acls,), partial(_acl_nodes, image))


def _cluster_nodes(facts: ClusterFacts) -> Nodes:
    return {
        **dict.fromkeys(_EMPTY_NODES, ViewNode()),
        "/cluster/id": ViewNode({"version": "1", "id": facts.cluster_id}),
        "/feature": ViewNode({"features": {}, "version": 2, "status": 0}),
    }


def _controller_nodes(image: MetadataImage, facts: ClusterFacts) -> Nodes:
    controller = {"version": 1, "brokerid": facts.controller_id, "timestamp": str(facts.wall_ms)}
    return {
        "/controller": ViewNode(controller, volatile=("timestamp",), owner=broker_session(facts.controller_id)),
        "/controller_epoch": ViewNode(str(max(1, image.epoch))),
    }


def broker_nodes(broker: BrokerRegistration, facts: ClusterFacts) -> Nodes:
    """Returns the node of a broker's registration, by its path.

    The version of its JSON object is 2, which every release of Kafka reads; 3 if the broker has a rack; and 4 if the
    name of a listener is not that of its security protocol.
    """
    endpoints = list(broker.endpoints.values())
    protocols = {endpoint.name: _PROTOCOLS[endpoint.security_protocol] for endpoint in endpoints}
    plain = next((endpoint for endpoint in endpoints if protocols[endpoint.name] == "PLAINTEXT"), None)
    value: Json = {}
    version = 2
    if any(name != protocol for name, protocol in protocols.items()):
        version = 4
        value["listener_security_protocol_map"] = protocols
    value["endpoints"] = [f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in endpoints]
    if broker.rack is not None:
        version = max(version, 3)
        value["rack"] = broker.rack
    value |= {
        "jmx_port": -1,
        "port": -1 if plain is None else plain.port,
        "host": None if plain is None else plain.host,
        "version": version,
        "timestamp": str(facts.wall_ms),
    }
    owner = broker_session(broker.broker_id)
    return {f"/brokers/ids/{broker.broker_id}": ViewNode(value, volatile=("timestamp",), owner=owner)}


def broker_session(broker_id: int) -> int:
    """Returns the session id that is shown as the owner of a broker's ephemeral nodes.

    It has a bit that the ids of clients' sessions do not have.
    """
    return 1 << 57 | broker_id


def topic_nodes(topic: TopicImage, config: Mapping[str, str], controller_epoch: int) -> Nodes:
    """Returns the nodes of a topic: its configuration, its assignment and the states of its partitions."""
    partitions = dict(sorted(topic.partitions.items()))
    value: Json = {"version": 1, "partitions": {str(n): list(part.replicas) for n, part in partitions.items()}}
    moving = {str(n): part for n, part in partitions.items() if part.adding_replicas or part.removing_replicas}
    if moving:
        value["version"] = 2
        value["adding_replicas"] = {n: list(part.adding_replicas) for n, part in moving.items()}
        value["removing_replicas"] = {n: list(part.removing_replicas) for n, part in moving.items()}
    path = f"/brokers/topics/{topic.name}"
    nodes = {
        f"/config/topics/{topic.name}": _config_node(dict(config)),
        path: ViewNode(value),
        f"{path}/partitions": ViewNode(),
    }
    for number, partition in partitions.items():
        nodes[f"{path}/partitions/{number}"] = ViewNode()
        nodes[f"{path}/partitions/{number}/state"] = _state_node(partition, controller_epoch)
    return nodes


def _state_node(partition: PartitionImage, controller_epoch: int) -> ViewNode:
    value = {
        "controller_epoch": max(1, controller_epoch),
        "leader": partition.leader,
        "version": 1,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
    }
    return ViewNode(value, volatile=("controller_epoch",), version=partition.partition_epoch)


def _config_node(config: Mapping[str, str]) -> ViewNode:
    return ViewNode({"version": 1, "config": dict(sorted(config.items()))})


def _broker_config_nodes(name: str, config: Mapping[str, str]) -> Nodes:
    return {f"/config/brokers/{name or UNNAMED_ENTITY}": _config_node(public_config(config))}


def public_config(config: Mapping[str, str]) -> dict[str, str]:
    """Returns the entries of a broker's configuration that may be shown: known keys that are not passwords."""
    rows = {key: dynamic_row(key) for key in config}
    return {key: config[key] for key, row in rows.items() if row is not None and not row.sensitive}


def _credentials_by_user(image: MetadataImage) -> dict[str | None, dict[int, ScramCredential]]:
    """Returns the SCRAM credentials of each user by the number of the mechanism."""
    found: dict[str | None, dict[int, ScramCredential]] = {}
    for (user, mechanism), credential in image.scram.items():
        found.setdefault(user, {})[mechanism] = credential
    return found


def user_of(entity: QuotaEntity) -> str | None:
    """Returns the user if the entity is a user with a name, otherwise None."""
    return entity[0][1] if len(entity) == 1 and entity[0][0] == "user" else None


def _acl_nodes(image: MetadataImage) -> Nodes:
    values = acl_values(image.acls.values())
    return {
        **dict.fromkeys(EMPTY_FOLDERS, ViewNode()),
        **{path: ViewNode(value, is_acl=True) for path, value in values.items()},
    }


def quota_nodes(
    entity: QuotaEntity, quotas: Mapping[str, float], credentials: Mapping[int, ScramCredential] = {}
) -> Nodes:
    """Returns the node of an entity's quotas and SCRAM credentials, by its path.

    The node of a user's client id is preceded by an empty parent node. The entity is a user, a client id, both, or an
    address; returns {} for other entities.
    """
    names = dict(entity)
    path = "".join(f"/{kind}/{encode_entity(names.pop(key))}" for key, kind in _ENTITY_KINDS if key in names)
    if names or path.count("/") not in (2, 4):
        return {}
    config = {key: str(int(value)) if float(value).is_integer() else str(value) for key, value in quotas.items()}
    config |= shown_credentials(credentials)
    nodes = {f"/config{path}": _config_node(config)}
    if path.count("/") == 4:
        nodes = {f"/config{path.rpartition('/')[0]}": ViewNode(), **nodes}
    return nodes


# The types of quota entities, and the folders of their nodes.
_ENTITY_KINDS = (("user", "users"), ("client-id", "clients"), ("ip", "ips"))
_QUOTA_FOLDERS = (("users",), ("clients",), ("ips",), ("users", "clients"))


def entity_of(path: str) -> QuotaEntity | None:
    """Returns the quota entity whose node is at `path`, without the chroot; None if `path` is not that of an entity."""
    words = path.removeprefix("/config/").split("/")
    kinds = {folder: key for key, folder in _ENTITY_KINDS}
    folders, names = words[0::2], words[1::2]
    if tuple(folders) not in _QUOTA_FOLDERS or len(names) != len(folders) or not path.startswith("/config/"):
        return None
    decoded = [None if name == UNNAMED_ENTITY else unquote(name) for name in names]
    return tuple(sorted(zip([kinds[folder] for folder in folders], decoded, strict=True)))


def encode_entity(name: str | None) -> str:
    """Returns the name of the node for an entity with this name, URL-encoded as by Kafka's Sanitizer.

    None is the entity of defaults, such as the default user.
    """
    return UNNAMED_ENTITY if name is None else quote(name, safe="-_.")
