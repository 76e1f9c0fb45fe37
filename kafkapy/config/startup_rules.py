"""Checks of a configuration before anything is written: refusals and warnings.

A broker starts with the `server.properties` of an Apache Kafka broker. Keys that have no effect in kafkapy cause
a warning. Keys that would weaken or change the service (authentication, authorization, policies that cannot run) are
refused with key and reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from kafkapy.config.listener import ZOOKEEPER_LISTENER_NAME
from kafkapy.config.python_class import load_class_of_key
from kafkapy.config.table import DYNAMIC_ONLY_ROWS, STATIC_ROWS, TOPIC_ROWS
from kafkapy.config.validator import list_of
from kafkapy.config.value import split_list
from kafkapy.errors import ConfigError

if TYPE_CHECKING:
    from kafkapy.config.broker_config import BrokerConfig

_JAAS_WITHOUT_MECHANISM = re.compile(r"(listener\.name\.[^.]+\.)?sasl\.jaas\.config")

# Keys of Java classes (or lists of them) that would change the service -> the purpose of the class.
_JAVA_CLASSES = {
    "config.providers": "resolve variables in values; without it they would be used unresolved",
}

# Keys whose class may be a Python class -> the purpose of the class.
_PYTHON_CLASSES = {
    "authorizer.class.name": "authorize requests; without it every request would be allowed",
    "principal.builder.class": "name the principals of connections; the built-in one might name others",
    "client.quota.callback.class": "decide the quotas of clients; without it they would be unlimited",
    "create.topic.policy.class.name": "check new topics; without it every topic would be allowed",
    "alter.config.policy.class.name": "check changes of configuration; without it every change would be allowed",
}

# The classes of `authorizer.class.name` that kafkapy's own authorizer replaces: Kafka's, and the ones of Kafka with
# ZooKeeper, whose decisions are the same.
STANDARD_AUTHORIZERS = frozenset(
    {
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
    }
)

# The classes of `replica.selector.class`: the default, and the choice by rack (KIP-392).
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# Keys of Kafka 3.9 that 4.x no longer has; those of ZooKeeper are recognized by their prefix.
REMOVED_KEYS = frozenset(
    {
        "auto.include.jmx.reporter",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "eligible.leader.replicas.enable",
        "group.share.max.groups",
        "inter.broker.protocol.version",
        "leader.imbalance.per.broker.percentage",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "password.encoder.cipher.algorithm",
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.keyfactory.algorithm",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "reserved.broker.max.id",
    }
)

# Keys that Kafka reads without listing them, or passes to a class that kafkapy refuses or does not have.
_UNLISTED_KEYS = frozenset(
    {
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.persister.class.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "server.max.startup.time.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)
# Keys that Kafka passes to the authorizer without listing them, and that have the same effect here.
_AUTHORIZER_KEYS = frozenset({"allow.everyone.if.no.acl.found", "super.users"})
_UNLISTED_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.", "remote.log.")


def refuse(config: BrokerConfig) -> None:
    """Raises ConfigError for settings that this broker cannot honour and must not ignore."""
    originals = config.originals
    if originals.get("zookeeper.connect"):
        raise ConfigError(
            f"zookeeper.connect={originals['zookeeper.connect']}: this broker keeps the cluster's state in its own "
            "metadata log and does not connect to ZooKeeper; remove the key, and set process.roles=broker,controller. "
            "To serve programs that need ZooKeeper, set zookeeper.listener=localhost:2181"
        )
    if config.zookeeper_listener and any(each.name == ZOOKEEPER_LISTENER_NAME for each in config.listeners):
        raise ConfigError(
            f"The listener {ZOOKEEPER_LISTENER_NAME} of the key listeners would have the prefix of zookeeper.listener, "
            "listener.name.zookeeper.; give it another name"
        )
    for name, purpose in _JAVA_CLASSES.items():
        if config.has_other_than_default(name):
            raise ConfigError(
                f"{name}={originals[name]}: kafkapy cannot run the Java class that would {purpose}; remove the key "
                "if that is what you want"
            )
    for name, purpose in _PYTHON_CLASSES.items():
        if config.has_other_than_default(name) and config[name] not in STANDARD_AUTHORIZERS:
            load_class_of_key(name, config[name], purpose)
    selector = config.replica_selector_class
    if selector and selector not in (LEADER_SELECTOR, RACK_AWARE_SELECTOR):
        raise ConfigError(
            f"Invalid value {selector} for configuration replica.selector.class: kafkapy cannot run this Java class; "
            f"accepted are {LEADER_SELECTOR} and {RACK_AWARE_SELECTOR}"
        )
    if config.remote_log_storage_system_enable:
        raise ConfigError(
            "Invalid value true for configuration remote.log.storage.system.enable: kafkapy has no tiered storage, "
            "records in it could not be read; accepted is false"
        )


def refuse_misspelt(overrides: Mapping[str, str]) -> None:
    """Raises ConfigError for a key of the command line that is unknown and close to a known one.

    In a file such a key only causes a warning, because Apache Kafka accepts the file.
    """
    for name in overrides:
        near = None if is_known(name) else _nearest(name)
        if near is not None:
            raise ConfigError(f"--override {name}={overrides[name]}: the key is unknown; did you mean {near}?")


def is_known(name: str) -> bool:
    """Returns whether a broker's file may contain the key, whether or not it has an effect."""
    return _kind_of(name) is not _Kind.UNKNOWN


def warnings_about(originals: Mapping[str, str]) -> list[str]:
    """Returns a sentence for every key without an effect and every list with duplicates, in the order of `originals`.

    `originals` are the keys and texts of the broker's file.
    """
    found = (warning for name, text in originals.items() for warning in (_warning(name), _duplicates(name, text)))
    return [warning for warning in found if warning]


class _Kind(Enum):
    """The kinds of keys in a broker's file.

    The value of a kind is the end of the warning about such a key, or None if there is no warning.
    """

    EFFECTIVE = None
    INERT = "has no effect in kafkapy and is ignored."
    REMOVED = "was removed in Apache Kafka 4 and is ignored."
    DYNAMIC_ONLY = "can only be set while the broker runs and is ignored."
    TOPIC = "is a key of topics, not of brokers, and is ignored."
    UNKNOWN = "is unknown and is ignored."


def _kind_of(name: str) -> _Kind:
    plain = name
    if name.startswith("listener.name."):
        plain = name.removeprefix("listener.name.").partition(".")[2]
        # A SASL key of a listener may also contain the mechanism.
        if plain not in STATIC_ROWS and plain.partition(".")[2] in STATIC_ROWS:
            plain = plain.partition(".")[2]
    row = STATIC_ROWS.get(plain)
    if row is not None:
        return _Kind.EFFECTIVE if row.has_effect else _Kind.INERT
    if name in _AUTHORIZER_KEYS:
        return _Kind.EFFECTIVE
    if name in REMOVED_KEYS or name.startswith("zookeeper."):
        return _Kind.REMOVED
    if name in _UNLISTED_KEYS or name.startswith(_UNLISTED_PREFIXES):
        return _Kind.INERT
    if name in DYNAMIC_ONLY_ROWS:
        return _Kind.DYNAMIC_ONLY
    return _Kind.TOPIC if name in TOPIC_ROWS else _Kind.UNKNOWN


def _duplicates(name: str, text: str) -> str | None:
    row = STATIC_ROWS.get(name)
    if row is None or not isinstance(row.validator, list_of):
        return None
    given = split_list(text)
    kept = list(dict.fromkeys(given))
    if kept == given:
        return None
    return (
        f"Configuration key {name} contains duplicate values. Duplicates will be removed. The original value is: "
        f"[{', '.join(given)}], the updated value is: [{', '.join(kept)}]"
    )


def _nearest(name: str) -> str | None:
    """Returns the known key that was probably meant by `name`, or None if no known key is similar."""
    from difflib import get_close_matches  # needed only for an unknown key

    near = get_close_matches(name, STATIC_ROWS, n=1, cutoff=0.8)
    return near[0] if near else None


def _warning(name: str) -> str | None:
    if _JAAS_WITHOUT_MECHANISM.fullmatch(name):
        return (
            f"The configuration key {name} should be prefixed with listener and SASL mechanism, as in "
            "listener.name.<listener>.plain.sasl.jaas.config, and is ignored."
        )
    kind = _kind_of(name)
    if kind is _Kind.EFFECTIVE:
        return None
    near = _nearest(name) if kind is _Kind.UNKNOWN else None
    end = kind.value if near is None else f"is unknown and is ignored; did you mean {near}?"
    return f"The configuration key {name} {end}"
