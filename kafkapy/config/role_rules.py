"""The rules of `process.roles`: the quorum that a node names, and the listeners of each role.

The order of the checks and the texts are those of Kafka's KafkaConfig. A node that forms a cluster of its own needs
neither the keys of the quorum nor a listener for the controller, unlike in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.config.controller_addresses import BOOTSTRAP_SERVERS, UNROUTABLE_HOST, VOTERS
from kafkapy.config.listener import check_distinct
from kafkapy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafkapy.config.broker_config import BrokerConfig
    from kafkapy.config.listener import Listener

_NAMES = "controller.listener.names"
_REQUIRED = ("node.id", _NAMES)
# The wildcard addresses, which no client can connect to.
_META_ADDRESSES = (UNROUTABLE_HOST, "::", "0:0:0:0:0:0:0:0")


def check(config: BrokerConfig) -> None:
    """Raises ConfigError if the quorum or the listeners do not fit the node's roles."""
    _check_inter_broker_listener(config)
    if not config.is_controller:
        _check_broker_only(config)
    elif not config.is_broker:
        _check_controller_only(config)
    elif not config.forms_own_cluster:
        _check_quorum_is_named(config)
        _check_controller(config)
    elif config.controller_listener_names:
        _check_controller(config)
    if config.is_broker:
        _check_broker_listeners(config)
    _check_early_start_listeners(config)
    for listener in (*config.declared_advertised_listeners, *config.advertised_controller_listeners):
        if listener.host in _META_ADDRESSES:
            raise ConfigError(
                f"advertised.listeners cannot use the nonroutable meta-address {listener.host}. Use a routable IP "
                "address."
            )


def warnings(config: BrokerConfig) -> Iterator[str]:
    """Yields Kafka's warnings about timeouts that contradict each other, and about keys without effect in the roles.

    The roles are those of the node, in `process.roles`.
    """
    heartbeat, session = config["broker.heartbeat.interval.ms"], config["broker.session.timeout.ms"]
    if 2 * heartbeat > session:
        yield (
            f"broker.heartbeat.interval.ms ({heartbeat} ms) must be less than or equal to half of the "
            f"broker.session.timeout.ms ({session} ms). The broker.session.timeout.ms is configured on controller. The "
            "broker.heartbeat.interval.ms is configured on broker. If a broker doesn't send heartbeat request within "
            "broker.session.timeout.ms, it loses broker lease. Please increase broker.session.timeout.ms or decrease "
            "broker.heartbeat.interval.ms."
        )
    if config.is_controller:
        return
    if len(config.controller_listener_names) > 1:
        yield (
            f"{_NAMES} has multiple entries; only the first will be used since process.roles=broker: "
            f"[{', '.join(config[_NAMES])}]"
        )
    for key in ("create.topic.policy.class.name", "alter.config.policy.class.name"):
        if key in config.originals:
            yield f"{key} is defined in broker. It should be defined in the controller role."
    for key in ("num.partitions", "default.replication.factor"):
        if key in config.originals:
            yield (
                f"{key} is defined in the broker role. This configuration will be ignored in 5.0. Please set {key} in "
                "the controller role instead."
            )


def _require(is_met: bool, text: str) -> None:
    if not is_met:
        raise ConfigError(text)


def _check_inter_broker_listener(config: BrokerConfig) -> None:
    if config.is_default("inter.broker.listener.name"):
        return
    _require(
        config.is_default("security.inter.broker.protocol"),
        "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
    )
    name = config.inter_broker_listener_name
    _require(
        name in config.security_protocols,
        f"Listener with name {name} defined in inter.broker.listener.name not found in listener.security.protocol.map.",
    )


def _check_quorum_is_named(config: BrokerConfig) -> None:
    for key in _REQUIRED:
        _require(key in config.originals, f'Missing required configuration "{key}" which has no default value.')
    _require(
        bool(config.static_voters or config.controller_quorum_bootstrap_servers),
        f"If using process.roles, either {BOOTSTRAP_SERVERS} must contain the set of bootstrap controllers or "
        f"{VOTERS} must contain a parseable set of controllers.",
    )


def _check_broker_only(config: BrokerConfig) -> None:
    _check_quorum_is_named(config)
    voters = config.static_voters
    _require(
        config.node_id not in voters,
        f"If process.roles contains just the 'broker' role, the node id {config.node_id} must not be included in the "
        f"set of voters {VOTERS}={_java_set(voters)}",
    )
    _require(
        not config.controller_listeners,
        f"{_NAMES} must not contain a value appearing in the 'listeners' configuration when running KRaft with just "
        "the broker role",
    )
    for name in config.controller_listener_names:
        _require(
            name in config.security_protocols,
            f"Controller listener with name {name} defined in {_NAMES} not found in listener.security.protocol.map  "
            "(an explicit security mapping for each controller listener is required if listener.security.protocol.map "
            "is non-empty, or if there are security protocols other than PLAINTEXT in use)",
        )
    _require(
        not config["controller.quorum.auto.join.enable"],
        "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' role.",
    )


def _check_controller_only(config: BrokerConfig) -> None:
    _check_quorum_is_named(config)
    _require(
        len(config.advertised_controller_listeners) == len(config.listeners),
        f"The listeners config must only contain KRaft controller listeners from {_NAMES} when "
        "process.roles=controller",
    )
    _require(
        config["inter.broker.listener.name"] is None
        or config.inter_broker_listener_name not in config.controller_listener_names,
        f"{_NAMES} must not contain an explicitly set inter.broker.listener.name configuration value when "
        "process.roles=controller'",
    )
    _check_controller(config)


def _check_controller(config: BrokerConfig) -> None:
    voters = config.static_voters
    _require(
        not voters or config.node_id in voters,
        f"If process.roles contains the 'controller' role, the node id {config.node_id} must be included in the set of "
        f"voters {VOTERS}={_java_set(voters)}",
    )
    _require(
        bool(config.advertised_controller_listeners),
        f"{_NAMES} must contain at least one value appearing in the 'listeners' configuration when running the KRaft "
        "controller role",
    )
    names = {listener.name for listener in config.listeners}
    _require(
        names.issuperset(config.controller_listener_names),
        f"{_NAMES} must only contain values appearing in the 'listeners' configuration when running the KRaft "
        "controller role",
    )


def _check_broker_listeners(config: BrokerConfig) -> None:
    advertised = config.declared_advertised_listeners
    check_distinct("advertised.listeners", advertised, ports=False)
    names = _names(advertised)
    _require(
        bool(advertised),
        f"There must be at least one broker advertised listener. Perhaps all listeners appear in {_NAMES}?",
    )
    is_needed = not (config.forms_own_cluster and config.is_default("inter.broker.listener.name"))
    _require(
        not is_needed or config.inter_broker_listener_name in names,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based "
        f"on currently configured listeners are {','.join(names)}",
    )
    listening = _names(config.listeners)
    _require(
        set(names) <= set(listening),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
        f"{','.join(names)}. The valid options based on the current configuration are {','.join(listening)}",
    )


def _check_early_start_listeners(config: BrokerConfig) -> None:
    known = {*_names(config.listeners), *config.controller_listener_names}
    for name in config.early_start_listeners or ():
        _require(
            name.upper() in known,
            f"early.start.listeners contains listener {name.upper()}, but this is not contained in listeners or "
            f"{_NAMES}",
        )


def _names(listeners: list[Listener]) -> list[str]:
    return [listener.name for listener in listeners]


def _java_set(ids: Iterable[int]) -> str:
    """Returns ids as Scala prints a set, such as `Set(1, 2)`."""
    return f"Set({', '.join(map(str, ids))})"
