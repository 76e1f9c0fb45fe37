"""Checks of a running cluster: its brokers, partitions, quorum and configuration, as the nodes report them.

`read_cluster` asks the nodes; `check_cluster` derives the findings from their answers without side effects.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from kafkapy.client.admin import (
    Admin,
    ConfigResource,
    Node,
    PartitionDescription,
    QuorumDescription,
    ResourceType,
)
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, PROBLEM, WARNING, Finding, Findings
from kafkapy.tools.replicas import id_list

MIN_ISR = "min.insync.replicas"
# Keys whose values are expected to differ between brokers.
_OWN_KEYS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "kafkapy.metrics.listener",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)
# A broker is reported if it leads more than 1.5 times its share of the partitions, and at least 10 more than its share.
_SKEW = 1.5
_SKEW_AT_LEAST = 10
_LAG_RECORDS = 1000
_LAG_MS = 10_000
_CLOCK_MS = 1000
_SHOWN = 5
# The longest time to wait for the answer of the active controller; an election ends within this time.
_QUORUM_TIMEOUT_S = 10.0


class ClusterFacts(NamedTuple):
    """The state of a cluster as its nodes report it. Times are in ms since 1970.

    brokers: the registered brokers.
    fenced: the ids of the brokers in `brokers` that are fenced.
    failures: the reason for each broker that did not answer, by broker id.
    partitions, min_isr: the partitions, and the min.insync.replicas, of each topic.
    configs: the configuration of each broker, by broker id.
    failed_dirs: the log directories that have failed, by broker id.
    quorum: the metadata quorum; None if there is no active controller.
    asked_ms, answered_ms: the time of this machine before and after the request to the active controller.
    controller_ms: the time of the active controller when it answered; -1 if it is not known.
    """

    brokers: tuple[Node, ...]
    fenced: frozenset[int]
    failures: Mapping[int, str]
    partitions: Mapping[str, tuple[PartitionDescription, ...]]
    min_isr: Mapping[str, int]
    configs: Mapping[int, Mapping[str, str | None]]
    failed_dirs: Mapping[int, tuple[str, ...]]
    quorum: QuorumDescription | None
    asked_ms: int = 0
    answered_ms: int = 0
    controller_ms: int = -1


def read_cluster(admin: Admin) -> ClusterFacts:
    """Returns what the nodes of the cluster report. Raises ApiError or TimeoutError if no broker answers."""
    cluster = admin.describe_cluster(include_fenced=True)
    running = [each.node_id for each in cluster.brokers if each.node_id not in cluster.fenced]
    topics = admin.describe_topics().values
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    topic_configs = admin.describe_configs(resources).values if resources else {}
    min_isr = {
        resource.name: int(entries[MIN_ISR].value or 1)
        for resource, entries in topic_configs.items()
        if MIN_ISR in entries
    }
    configs = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(each)) for each in running])
    directories = admin.describe_log_dirs(running)
    failures = {int(resource.name): error.message for resource, error in configs.errors.items()}
    asked_ms = int(time.time() * 1000)
    try:
        quorum: QuorumDescription | None = admin.describe_metadata_quorum(timeout=_QUORUM_TIMEOUT_S)
    except (ApiError, TimeoutError):
        quorum = None
    answered_ms = int(time.time() * 1000)
    leader = None if quorum is None else next((x for x in quorum.voters if x.node_id == quorum.leader), None)
    return ClusterFacts(
        cluster.brokers,
        cluster.fenced,
        failures,
        {name: tuple(topic.partitions) for name, topic in topics.items()},
        min_isr,
        {
            int(resource.name): {name: entry.value for name, entry in entries.items() if not entry.is_sensitive}
            for resource, entries in configs.values.items()
        },
        {
            broker: tuple(path for path, each in found.items() if each.error is not None)
            for broker, found in directories.values.items()
        },
        quorum,
        asked_ms,
        answered_ms,
        -1 if leader is None else leader.last_fetch_timestamp,
    )


def check_cluster(facts: ClusterFacts) -> Findings:
    """Yields the findings about a cluster; for a healthy cluster they are good findings and notes."""
    yield from _check_brokers(facts)
    yield from _check_partitions(facts)
    yield from _check_leaders(facts)
    yield from _check_replication(facts)
    yield from _check_quorum(facts)
    yield from _check_configuration(facts)
    yield from _check_clock(facts)


def _check_brokers(facts: ClusterFacts) -> Findings:
    for broker in sorted(facts.fenced):
        yield Finding(
            PROBLEM,
            "brokers",
            f"broker {broker} is registered, but fenced: it does not run, or its heartbeats do not arrive",
            f"start it, or remove it for good: kafkapy cluster unregister --bootstrap-server ... --id {broker}",
        )
    for broker, reason in sorted(facts.failures.items()):
        yield Finding(
            PROBLEM,
            "brokers",
            f"broker {broker} does not answer this machine: {reason}",
            "check its advertised.listeners and the network",
        )
    for broker, paths in sorted(facts.failed_dirs.items()):
        for path in paths:
            yield Finding(
                PROBLEM,
                "disks",
                f"the log directory {path} of broker {broker} has failed",
                "repair or replace the disk, and restart the broker: it fetches the lost replicas from their leaders",
            )
    if not (facts.fenced or facts.failures):
        yield Finding(GOOD, "brokers", f"all {len(facts.brokers)} brokers answer")
    without = [each.node_id for each in facts.brokers if not each.rack]
    if without and len(without) < len(facts.brokers):
        yield Finding(
            WARNING,
            "brokers",
            f"broker.rack is set on some brokers only, and not on {id_list(without)}: these count as one rack",
            "set broker.rack on all brokers or on none",
        )


def _check_partitions(facts: ClusterFacts) -> Findings:
    offline, refusing, lacking = [], [], []
    for name, number, state in _all_partitions(facts):
        if state.leader < 0:
            offline.append((name, number, state))
        elif len(state.isr) < min(facts.min_isr.get(name, 1), len(state.replicas)):
            refusing.append(f"{name}-{number}")
        elif set(state.isr) < set(state.replicas):
            lacking.append(f"{name}-{number}")
    for name, number, state in offline[:_SHOWN]:
        wanted = state.isr or state.elr or state.last_known_elr or ()
        advice = f"start broker {id_list(wanted)}, which has all records" if wanted else "start one of its replicas"
        yield Finding(
            PROBLEM,
            "partitions",
            f"{name}-{number} has no leader; its replicas are on {id_list(state.replicas)}",
            f"{advice}; if that is impossible, accept a loss: kafkapy leader-election --bootstrap-server ... "
            f"--election-type unclean --topic {name} --partition {number}",
        )
    if len(offline) > _SHOWN:
        yield Finding(PROBLEM, "partitions", f"{len(offline) - _SHOWN} more partitions have no leader")
    if refusing:
        yield Finding(
            PROBLEM,
            "partitions",
            f"{len(refusing)} partitions refuse acks=all, with too few replicas in sync: {_some(refusing)}",
            "start the missing brokers; kafkapy explain TOPIC-PARTITION says when and why replicas left",
        )
    if lacking:
        yield Finding(
            WARNING,
            "partitions",
            f"{len(lacking)} partitions have replicas that are not in sync: {_some(lacking)}",
            "wait for brokers that have just started; kafkapy explain TOPIC-PARTITION says when and why replicas left",
        )
    if not (offline or refusing or lacking):
        yield Finding(GOOD, "partitions", "every partition has a leader, and all its replicas are in sync")


def _check_leaders(facts: ClusterFacts) -> Findings:
    running = [each.node_id for each in facts.brokers if each.node_id not in facts.fenced]
    states = [state for _, _, state in _all_partitions(facts) if state.leader >= 0]
    if len(running) < 2 or not states:
        return
    elsewhere = [each for each in states if each.leader != each.replicas[0] and each.replicas[0] in each.isr]
    if elsewhere:
        yield Finding(
            WARNING,
            "leaders",
            f"{len(elsewhere)} partitions are not led by their preferred replica, which is in sync",
            "wait 5 minutes (leader.imbalance.check.interval.seconds), or: kafkapy leader-election "
            "--bootstrap-server ... --election-type preferred --all-topic-partitions",
        )
    counts = Counter(dict.fromkeys(running, 0))
    counts.update(each.leader for each in states)
    broker, most = counts.most_common(1)[0]
    share = len(states) / len(running)
    if most > share * _SKEW and most - share >= _SKEW_AT_LEAST:
        spread = ", ".join(f"{each}: {count}" for each, count in sorted(counts.items()))
        yield Finding(
            WARNING,
            "leaders",
            f"broker {broker} leads {most} of {len(states)} partitions (leaders by broker: {spread})",
            "if the preferred leaders are skewed, change the order of replicas by a reassignment",
        )
    elif not elsewhere:
        yield Finding(GOOD, "leaders", f"{len(running)} brokers share the leadership of {len(states)} partitions")


def _check_replication(facts: ClusterFacts) -> Findings:
    """Yields warnings on topics that would not survive the stop of one broker: a partition would have no replica left,
    or producers with acks=all would get errors. Yields nothing if there is only one broker."""
    if len(facts.brokers) < 2:
        return
    single, strict = [], []
    for name, states in sorted(facts.partitions.items()):
        replicas = min((len(each.replicas) for each in states), default=0)
        if replicas == 1:
            single.append(name)
        elif replicas and facts.min_isr.get(name, 1) >= replicas:
            strict.append(name)
    if single:
        yield Finding(
            WARNING,
            "replication",
            f"{len(single)} topics have partitions with one replica, which fail with its broker: {_some(single)}",
            "add replicas: kafkapy reassign-partitions --execute, with the replicas of each partition in its JSON file",
        )
    if strict:
        yield Finding(
            WARNING,
            "replication",
            f"{len(strict)} topics refuse acks=all as soon as one broker stops, because {MIN_ISR} is the number of "
            f"replicas: {_some(strict)}",
            "use three replicas with min.insync.replicas=2: kafkapy configs --bootstrap-server ... --alter "
            f"--entity-type topics --entity-name {strict[0]} --add-config {MIN_ISR}=...",
        )
    if not (single or strict) and facts.partitions:
        yield Finding(GOOD, "replication", "every topic can lose one broker")


def _check_quorum(facts: ClusterFacts) -> Findings:
    quorum = facts.quorum
    if quorum is None or quorum.leader < 0:
        yield Finding(
            PROBLEM,
            "quorum",
            "there is no active controller: nothing can be created, changed or elected",
            "start the controllers: a majority of the voters must run and reach each other",
        )
        return
    leader = next((each for each in quorum.voters if each.node_id == quorum.leader), None)
    slow = []
    for voter in quorum.voters:
        if leader is None or voter.node_id == leader.node_id:
            continue
        lag = leader.log_end_offset - voter.log_end_offset
        age_ms = leader.last_fetch_timestamp - voter.last_fetch_timestamp
        if voter.last_fetch_timestamp < 0 or age_ms > _LAG_MS or lag > _LAG_RECORDS:
            slow.append(voter.node_id)
            silence = "has never fetched" if voter.last_fetch_timestamp < 0 else f"last fetched {age_ms} ms ago"
            yield Finding(
                PROBLEM,
                "quorum",
                f"voter {voter.node_id} is {max(lag, 0)} records behind and {silence}",
                "start it, or replace it: kafkapy metadata-quorum --bootstrap-server ... remove-controller "
                f"--controller-id {voter.node_id} --controller-directory-id ...",
            )
    count = len(quorum.voters)
    if count == 1 and len(facts.brokers) > 1:
        yield Finding(
            WARNING,
            "quorum",
            f"node {quorum.leader} is the only voter: the cluster cannot be changed without it",
            "add two controllers: kafkapy metadata-quorum ... add-controller",
        )
    elif count % 2 == 0:
        yield Finding(
            NOTE,
            "quorum",
            f"{count} voters survive the loss of {(count - 1) // 2}, as {count - 1} voters do",
            "use an odd number of controllers",
        )
    if not slow:
        yield Finding(
            GOOD, "quorum", f"node {quorum.leader} is the active controller, and {count} voters follow the log"
        )


def _check_configuration(facts: ClusterFacts) -> Findings:
    """Yields a warning for each key whose values differ between brokers; such a difference is rarely intended."""
    values: dict[str, dict[str | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    shared = [set(entries) for entries in facts.configs.values()]
    for name in sorted(set.intersection(*shared) if shared else ()):
        if name not in _OWN_KEYS and not name.startswith("listener.name."):
            for broker, entries in sorted(facts.configs.items()):
                values[name][entries[name]].append(broker)
    differing = {name: each for name, each in values.items() if len(each) > 1}
    for name, each in list(differing.items())[: 2 * _SHOWN]:
        shown = "; ".join(f"{value or 'empty'} on {id_list(brokers)}" for value, brokers in each.items())
        yield Finding(
            WARNING,
            "configuration",
            f"{name} differs between brokers: {shown}",
            "make the files equal, or set the key for all: kafkapy configs --bootstrap-server ... --alter "
            "--entity-type brokers --entity-default --add-config ...",
        )
    if not differing and len(facts.configs) > 1:
        yield Finding(GOOD, "configuration", f"{len(facts.configs)} brokers have the same configuration")


def _check_clock(facts: ClusterFacts) -> Findings:
    if facts.controller_ms < 0:
        return
    if facts.controller_ms < facts.asked_ms - _CLOCK_MS:
        difference = facts.controller_ms - facts.asked_ms
    elif facts.controller_ms > facts.answered_ms + _CLOCK_MS:
        difference = facts.controller_ms - facts.answered_ms
    else:
        yield Finding(GOOD, "clock", "the clock of the active controller agrees with that of this machine")
        return
    direction = "behind" if difference < 0 else "ahead of"
    yield Finding(
        WARNING,
        "clock",
        f"the clock of the active controller is {abs(difference) / 1000:.1f} s {direction} that of this machine",
        "synchronize the clocks by NTP: retention, timestamps and expiry depend on them",
    )


def _all_partitions(facts: ClusterFacts) -> Iterable[tuple[str, int, PartitionDescription]]:
    for name, states in sorted(facts.partitions.items()):
        for state in states:
            yield name, state.partition, state


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
