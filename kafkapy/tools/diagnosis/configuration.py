"""Checks of the configuration: the broker's warnings, and settings that are valid but seldom intended."""

from __future__ import annotations

from kafkapy.config import BrokerConfig
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, WARNING, Finding, Findings

SUBJECT = "configuration"
# A topic cannot be created with more replicas than brokers: groups, transactions and share groups then hang.
INTERNAL_REPLICATION_KEYS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
REPLICATION_KEYS = (*INTERNAL_REPLICATION_KEYS, "default.replication.factor")
IN_SYNC_KEYS = (
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.min.isr",
    "min.insync.replicas",
)
# Replicas of an internal topic that survive the loss of one broker and the restart of another.
SAFE_FACTOR = 3
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LOST_AT_REBOOT = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/")
# The first of these keys that is set takes effect.
RETENTION_KEYS = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


def check_configuration(config: BrokerConfig) -> Findings:
    """Yields findings on a configuration that the broker accepts: warnings, and settings that are seldom intended."""
    complaints = [*_ignored(config), *_copies(config), *_listeners(config), *_retention(config), *_directories(config)]
    yield from complaints or [Finding(GOOD, SUBJECT, "no problems found")]


def _ignored(config: BrokerConfig) -> Findings:
    for warning in config.warnings:
        yield Finding(WARNING, SUBJECT, warning.rstrip("."))


def _copies(config: BrokerConfig) -> Findings:
    if not config.forms_own_cluster:
        yield from _copies_in_a_cluster(config)
        return
    for key in REPLICATION_KEYS:
        if config[key] > 1:
            text = f"{key} is {config[key]}, and there is one broker"
            yield Finding(WARNING, SUBJECT, text, f"set {key}=1: topics with more replicas cannot be created")
    for key in IN_SYNC_KEYS:
        if config[key] > 1:
            text = f"{key} is {config[key]}, and there is one broker"
            yield Finding(WARNING, SUBJECT, text, f"set {key}=1: writes with acks=all are refused otherwise")


def _copies_in_a_cluster(config: BrokerConfig) -> Findings:
    """Yields findings on replication settings that are too small for a cluster of several brokers.

    Called for a node that belongs to a cluster of several nodes. The configuration does not say how many of these nodes
    are brokers; if there is only one, the findings do not apply.
    """
    if not config.is_broker:
        return
    for key in INTERNAL_REPLICATION_KEYS:
        if config[key] == 1:
            text = f"{key} is 1, and this is a node of a cluster: the loss of one broker stops the topic's clients"
            yield Finding(NOTE, SUBJECT, text, f"set {key}={SAFE_FACTOR} if the cluster has {SAFE_FACTOR} brokers")
    if config["min.insync.replicas"] > config["default.replication.factor"]:
        isr, factor = config["min.insync.replicas"], config["default.replication.factor"]
        text = f"min.insync.replicas is {isr}, and default.replication.factor is {factor}"
        advice = f"set default.replication.factor={isr + 1}: writes with acks=all to new topics are refused otherwise"
        yield Finding(WARNING, SUBJECT, text, advice)


def _listeners(config: BrokerConfig) -> Findings:
    bound = {listener.name: listener for listener in config.broker_listeners}
    for advertised in config.declared_advertised_listeners:
        listener = bound.get(advertised.name)
        if listener is not None and advertised.host in LOOPBACK and listener.host not in LOOPBACK:
            text = f"listener {advertised.name} is open to other machines, which then connect to {advertised.host}"
            yield Finding(WARNING, SUBJECT, text, "set advertised.listeners to a name that clients can resolve")
    if all(listener.host in LOOPBACK for listener in config.broker_listeners):
        yield Finding(NOTE, SUBJECT, "only clients on this machine can connect: listeners has loopback addresses")


def _retention(config: BrokerConfig) -> Findings:
    by_time = next((config[key] for key in RETENTION_KEYS if config[key] is not None), 0)
    if config.log_retention_bytes < 0 and by_time < 0:
        text = "records are retained for ever: there is no limit by time or by size"
        yield Finding(WARNING, SUBJECT, text, "watch the disk, or set log.retention.bytes")
    if config.auto_create_topics_enable:
        text = "a misspelt topic name of a client creates a topic"
        yield Finding(NOTE, SUBJECT, text, "set auto.create.topics.enable=false if topics are only created explicitly")


def _directories(config: BrokerConfig) -> Findings:
    for directory in config.log_dirs:
        if f"{directory}/".startswith(LOST_AT_REBOOT):
            text = f"log directory {directory} is in a directory that systems clear"
            yield Finding(WARNING, SUBJECT, text, "set log.dirs to a persistent directory")
