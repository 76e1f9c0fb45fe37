"""Every script in the folder `bin` of Apache Kafka 0.7 to 4.3, with the tool of ours that does its work."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.__main__ import RUN_CLASS, script_names
from kafkapy.named_tuple import NamedTuple

LATEST = "4.3"


class Script(NamedTuple):
    """A script of Apache Kafka: the first release that has it, the last one, and what stands for it if no tool of ours
    has its name."""

    name: str
    first: str
    last: str = LATEST
    instead: str = ""


# Read from the tags of Apache Kafka's repository, 0.7.2 to 3.8.0, and from the jars of 4.0 to 4.3.
_CONNECT = "none: Kafka Connect is a framework of the JVM; that of Apache Kafka runs with our brokers"
_ZOOKEEPER = "none: there is no ZooKeeper"
_NOT_YET = "not yet"
SCRIPTS = (
    Script("connect-distributed", "0.9", instead=_CONNECT),
    Script("connect-mirror-maker", "2.4", instead=_CONNECT),
    Script("connect-plugin-path", "3.6", instead=_CONNECT),
    Script("connect-standalone", "0.9", instead=_CONNECT),
    Script("kafka-acls", "0.9"),
    Script("kafka-add-partitions", "0.8.0", "0.8.0", "`topics --alter --partitions`"),
    Script("kafka-broker-api-versions", "0.10.2"),
    Script("kafka-client-metrics", "3.7"),
    Script("kafka-cluster", "2.8"),
    Script("kafka-configs", "0.9"),
    Script("kafka-console-consumer", "0.7"),
    Script("kafka-console-producer", "0.7"),
    Script("kafka-console-share-consumer", "4.0"),
    Script("kafka-consumer-groups", "0.9"),
    Script("kafka-consumer-offset-checker", "0.8.2", "0.10.2"),
    Script("kafka-consumer-perf-test", "0.7"),
    Script("kafka-consumer-shell", "0.7", "0.7", "`console-consumer`"),
    Script("kafka-create-topic", "0.8.0", "0.8.0", "`topics --create`"),
    Script("kafka-delegation-tokens", "1.1"),
    Script("kafka-delete-records", "0.11"),
    Script("kafka-dump-log", "2.0"),
    Script("kafka-e2e-latency", "3.5"),
    Script("kafka-features", "2.7"),
    Script("kafka-get-offsets", "3.0"),
    Script("kafka-groups", "4.0"),
    Script("kafka-jmx", "3.5"),
    Script("kafka-leader-election", "2.4"),
    Script("kafka-list-topic", "0.8.0", "0.8.0", "`topics --list`"),
    Script("kafka-log-dirs", "1.0"),
    Script("kafka-metadata-quorum", "3.3"),
    Script("kafka-metadata-shell", "2.8"),
    Script("kafka-mirror-maker", "0.8.2", "3.9"),
    Script("kafka-preferred-replica-election", "0.8.0", "2.8"),
    Script("kafka-producer-perf-test", "0.7"),
    Script("kafka-producer-shell", "0.7", "0.7", "`console-producer`"),
    Script("kafka-reassign-partitions", "0.8.0"),
    Script("kafka-replay-log-producer", "0.7", "1.1"),
    Script("kafka-replica-verification", "0.8.2"),
    Script(RUN_CLASS, "0.7", instead="`run-class` or a link of this name, with the class names of the tools"),
    Script("kafka-server-start", "0.7"),
    Script("kafka-server-stop", "0.7"),
    Script("kafka-share-consumer-perf-test", "4.1"),
    Script("kafka-share-groups", "4.0"),
    Script("kafka-simple-consumer-perf-test", "0.7", "0.8.1", "`consumer-perf-test`"),
    Script("kafka-simple-consumer-shell", "0.7", "1.1"),
    Script("kafka-storage", "2.8"),
    Script("kafka-streams-application-reset", "0.10.0"),
    Script("kafka-streams-groups", "4.1"),
    Script("kafka-topics", "0.8.1"),
    Script("kafka-transactions", "3.0"),
    Script("kafka-verifiable-consumer", "0.9"),
    Script("kafka-verifiable-producer", "0.9"),
    Script("kafka-verifiable-share-consumer", "4.1"),
    Script("trogdor", "1.0"),
    Script("zookeeper-security-migration", "0.9", "3.9"),
    Script("zookeeper-server-start", "0.7", "3.9", _ZOOKEEPER),
    Script("zookeeper-server-stop", "0.7", "3.9", _ZOOKEEPER),
    Script("zookeeper-shell", "0.7", "3.9"),
)


def script_table() -> Iterator[str]:
    """Yields the lines of the table. Raises KeyError for a script that has neither a tool nor a substitute."""
    tools = script_names()
    yield "| script | releases | ours |"
    yield "|---|---|---|"
    for script in SCRIPTS:
        releases = script.first if script.first == script.last else f"{script.first} to {script.last}"
        ours = f"`{tools[script.name]}`" if script.name in tools else script.instead
        if not ours:
            raise KeyError(script.name)
        yield f"| `{script.name}.sh` | {releases} | {ours} |"
