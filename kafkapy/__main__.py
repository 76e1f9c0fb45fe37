"""The program `kafkapy`, whose command line is `kafkapy TOOL ARGUMENTS`: runs the tool that the first word names.

A link with the name of Apache Kafka's script runs the tool of that script: `kafka-topics.sh` and `kafka-topics` are
`kafkapy topics`. A tool's module is imported only when the tool runs: the broker starts without the tools' code.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

# tool -> (module with `main(arguments) -> exit code`, description). A module of `kafkapy.tools` has a `TOOL` as well,
# from which completion and docs/compatibility.md are generated.
TOOLS = {
    "broker": ("kafkapy.broker_command", "start a broker: `kafkapy broker start --config server.properties`"),
    "ls": ("kafkapy.tools.short.listing", "list topics, groups or brokers"),
    "describe": ("kafkapy.tools.short.describe", "print the details of topics, groups, brokers or the cluster"),
    "produce": ("kafkapy.tools.short.produce", "write records: `kafkapy produce TOPIC VALUE`, or lines of input"),
    "consume": ("kafkapy.tools.short.consume", "print records: `kafkapy consume TOPIC --from -10`"),
    "topics": ("kafkapy.tools.topics", "create, list, describe, change and delete topics"),
    "configs": ("kafkapy.tools.configs", "show and change the configuration of topics, brokers, users"),
    "groups": ("kafkapy.tools.groups", "list groups of all types"),
    "client-metrics": ("kafkapy.tools.client_metrics", "show and change which metrics clients send"),
    "streams-application-reset": (
        "kafkapy.tools.streams_application_reset",
        "reset a Kafka Streams application, so that it processes its input again",
    ),
    "consumer-groups": ("kafkapy.tools.consumer_groups", "list, describe and delete groups, set their offsets"),
    "share-groups": ("kafkapy.tools.share_groups", "list, describe and delete share groups, set their offsets"),
    "streams-groups": ("kafkapy.tools.streams_groups", "list, describe and delete streams groups, set their offsets"),
    "get-offsets": ("kafkapy.tools.get_offsets", "print the offsets of partitions, at their ends or at a time"),
    "delete-records": ("kafkapy.tools.delete_records", "delete the records before given offsets"),
    "log-dirs": ("kafkapy.tools.log_dirs", "print the partitions in the brokers' log directories"),
    "leader-election": ("kafkapy.tools.leader_election", "elect the leaders of partitions"),
    "reassign-partitions": ("kafkapy.tools.reassign_partitions", "move the replicas of partitions to other brokers"),
    "acls": ("kafkapy.tools.acls", "list, add and remove ACLs"),
    "delegation-tokens": (
        "kafkapy.tools.delegation_tokens",
        "create, renew, expire and describe delegation tokens",
    ),
    "cluster": ("kafkapy.tools.cluster", "print the cluster's id and brokers, unregister a broker"),
    "metadata-shell": ("kafkapy.tools.metadata_shell", "show the metadata of a snapshot as a directory tree"),
    "features": ("kafkapy.tools.features", "print and change the levels of the cluster's features"),
    "metadata-quorum": ("kafkapy.tools.metadata_quorum", "describe the metadata quorum, add and remove controllers"),
    "broker-api-versions": ("kafkapy.tools.broker_api_versions", "print which APIs the brokers serve"),
    "transactions": ("kafkapy.tools.transactions", "list and describe transactions, abort hanging ones"),
    "console-producer": ("kafkapy.tools.console_producer", "write lines of standard input to a topic"),
    "console-consumer": ("kafkapy.tools.console_consumer", "print the records of a topic"),
    "console-share-consumer": (
        "kafkapy.tools.console_share_consumer",
        "print the records that a share group delivers",
    ),
    "dump-log": ("kafkapy.tools.dump_log", "print segments, indexes and snapshots; needs no broker"),
    "storage": ("kafkapy.storage_command", "format log directories and describe them"),
    "producer-perf-test": ("kafkapy.tools.producer_perf_test", "measure how fast records are produced"),
    "consumer-perf-test": ("kafkapy.tools.consumer_perf_test", "measure how fast records are consumed"),
    "share-consumer-perf-test": (
        "kafkapy.tools.share_consumer_perf_test",
        "measure how fast a share group consumes records",
    ),
    "verifiable-producer": (
        "kafkapy.tools.verifiable_producer",
        "write increasing numbers and print the fate of each as JSON",
    ),
    "verifiable-consumer": ("kafkapy.tools.verifiable_consumer", "read in a group and print the events as JSON"),
    "verifiable-share-consumer": (
        "kafkapy.tools.verifiable_share_consumer",
        "read in a share group and print the events as JSON",
    ),
    "transactional-message-copier": (
        "kafkapy.tools.transactional_message_copier",
        "copy a partition's records in transactions, for system tests",
    ),
    "trogdor": ("kafkapy.tools.trogdor.command", "run a workload of Trogdor from its specification"),
    "end-to-end-latency": ("kafkapy.tools.end_to_end_latency", "measure the time from producer to consumer"),
    "metrics": ("kafkapy.tools.metrics", "print the metrics of a running broker, once or repeatedly"),
    "jmx": ("kafkapy.tools.jmx", "print metrics of a running broker by the names of Apache Kafka's beans"),
    "probe": ("kafkapy.tools.probe", "send records through a broker and print how long they take"),
    "replica-verification": ("kafkapy.tools.replica_verification", "compare the replicas of topics"),
    "rebalance": ("kafkapy.tools.rebalance", "even out replicas and leaders, or move the active controller"),
    "explain": ("kafkapy.tools.explain", "print the history of a partition, or the state of the cluster at a time"),
    "simple-consumer-shell": ("kafkapy.tools.simple_consumer_shell", "print the records of one partition (Kafka 0.8)"),
    "replay-log-producer": ("kafkapy.tools.replay_log_producer", "copy a topic to another one (Kafka 0.8)"),
    "preferred-replica-election": (
        "kafkapy.tools.preferred_replica_election",
        "elect preferred replicas as leaders (Kafka 0.8 to 2.8)",
    ),
    "consumer-offset-checker": (
        "kafkapy.tools.zookeeper.offset_checker",
        "print the offsets of a group that uses ZooKeeper (Kafka 0.8 to 0.10)",
    ),
    "export-zk-offsets": (
        "kafkapy.tools.zookeeper.export_offsets",
        "write offsets in ZooKeeper to a file (Kafka 0.8 to 0.10)",
    ),
    "import-zk-offsets": (
        "kafkapy.tools.zookeeper.import_offsets",
        "set offsets in ZooKeeper from a file (Kafka 0.8 to 0.10)",
    ),
    "zookeeper-security-migration": (
        "kafkapy.tools.zookeeper.security_migration",
        "set or remove the ACLs of Kafka's znodes (Kafka 0.9 to 3.9)",
    ),
    "zookeeper-shell": ("kafkapy.tools.zookeeper.shell", "show and change znodes, as ZooKeeper's shell does"),
    "find": ("kafkapy.tools.short.find", "print the records of a topic that have a key"),
    "tail": ("kafkapy.tools.reliable.tail", "write the lines of growing files to a topic"),
    "audit": ("kafkapy.tools.reliable.audit", "name the records that groups have missed or read twice"),
    "delay": ("kafkapy.tools.reliable.delay", "keep records until they are due, then send each to its topic"),
    "mirror": ("kafkapy.tools.reliable.mirror", "copy topics to another cluster, each record exactly once"),
    "retry": ("kafkapy.tools.reliable.retry", "pass records to a function; retry topics and dead letters"),
    "redrive": ("kafkapy.tools.reliable.redrive", "move dead letters back to the topics that they came from"),
    "route": ("kafkapy.tools.reliable.route", "send records to the topics that rules choose"),
    "trace": ("kafkapy.tools.reliable.trace", "print what happened to a record, or export it as OTLP"),
    "server-start": (
        "kafkapy.tools.server_start",
        "start a broker: `kafkapy server-start [-daemon] server.properties`",
    ),
    "container-start": (
        "kafkapy.container_command",
        "start a broker in a container, configured by environment variables",
    ),
    "server-stop": ("kafkapy.tools.server_stop", "stop the brokers of this user on this host"),
    "doctor": ("kafkapy.tools.doctor", "check a broker's machine, configuration and data for problems"),
    "security": ("kafkapy.security_command", "create the keys, certificates and files of a secured broker"),
    "jobs": ("kafkapy.tools.jobs", "run Spark jobs over topics, and feed topics with sample data"),
    "rest": ("kafkapy.rest.command", "serve a REST proxy with Confluent's HTTP interfaces"),
    "registry": ("kafkapy.registry.command", "serve a schema registry with Confluent's HTTP API"),
    "top": ("kafkapy.tools.top", "show the busiest topics and the lags of groups live"),
    "console": ("kafkapy.console.command", "serve a web application that shows and changes clusters"),
    "sandbox": ("kafkapy.sandbox.command", "run a cluster on this machine, and kill or pause its nodes"),
}
# Commands about the tools themselves -> (module, description).
ABOUT_TOOLS = {
    "completion": ("kafkapy.tools.completion", "print a completion script: `kafkapy completion bash|zsh|fish`"),
    "man": ("kafkapy.tools.manual", "print a manual page: `kafkapy man topics | man -l -`"),
    "install-links": ("kafkapy.script_links", "create links with the names of Apache Kafka's scripts"),
}
# Tools without a script in Apache Kafka.
OUR_OWN = (
    "audit",
    "broker",
    "console",
    "consume",
    "container-start",
    "delay",
    "describe",
    "doctor",
    "explain",
    "export-zk-offsets",
    "find",
    "import-zk-offsets",
    "jobs",
    "ls",
    "metrics",
    "probe",
    "produce",
    "rebalance",
    "redrive",
    "registry",
    "rest",
    "retry",
    "route",
    "sandbox",
    "security",
    "tail",
    "top",
    "trace",
    "transactional-message-copier",
)
# Scripts of Apache Kafka whose name is not the tool's name after `kafka-`.
OTHER_SCRIPTS = {
    "kafka-e2e-latency": "end-to-end-latency",
    "trogdor": "trogdor",
    "kafka-mirror-maker": "mirror",
    "zookeeper-security-migration": "zookeeper-security-migration",
    "zookeeper-shell": "zookeeper-shell",
}
RUN_CLASS = "kafka-run-class"
VERSION_WORDS = ("--version", "-V", "-v", "version")
HELP_WORDS = ("--help", "-h", "help")
# The classes of tools that `kafka-run-class` accepts, with our tools. Some classes have no script in some releases.
CLASSES = {
    "kafka.tools.MirrorMaker": "mirror",
    "kafka.admin.AclCommand": "acls",
    "org.apache.kafka.tools.AclCommand": "acls",
    "kafka.admin.BrokerApiVersionsCommand": "broker-api-versions",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "broker-api-versions",
    "org.apache.kafka.tools.ClientMetricsCommand": "client-metrics",
    "kafka.tools.ClusterTool": "cluster",
    "org.apache.kafka.tools.ClusterTool": "cluster",
    "kafka.admin.ConfigCommand": "configs",
    "kafka.tools.ConsoleConsumer": "console-consumer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer": "console-consumer",
    "kafka.tools.ConsoleProducer": "console-producer",
    "org.apache.kafka.tools.ConsoleProducer": "console-producer",
    "org.apache.kafka.tools.consumer.ConsoleShareConsumer": "console-share-consumer",
    "kafka.admin.ConsumerGroupCommand": "consumer-groups",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": "consumer-groups",
    "kafka.tools.ConsumerPerformance": "consumer-perf-test",
    "org.apache.kafka.tools.ConsumerPerformance": "consumer-perf-test",
    "kafka.admin.DelegationTokenCommand": "delegation-tokens",
    "org.apache.kafka.tools.DelegationTokenCommand": "delegation-tokens",
    "kafka.admin.DeleteRecordsCommand": "delete-records",
    "org.apache.kafka.tools.DeleteRecordsCommand": "delete-records",
    "kafka.tools.DumpLogSegments": "dump-log",
    "org.apache.kafka.tools.DumpLogSegments": "dump-log",
    "kafka.tools.EndToEndLatency": "end-to-end-latency",
    "org.apache.kafka.tools.EndToEndLatency": "end-to-end-latency",
    "kafka.admin.FeatureCommand": "features",
    "org.apache.kafka.tools.FeatureCommand": "features",
    "kafka.tools.JmxTool": "jmx",
    "org.apache.kafka.tools.JmxTool": "jmx",
    "org.apache.kafka.trogdor.agent.Agent": "trogdor",
    "kafka.Kafka": "server-start",
    "kafka.tools.GetOffsetShell": "get-offsets",
    "org.apache.kafka.tools.GetOffsetShell": "get-offsets",
    "org.apache.kafka.tools.GroupsCommand": "groups",
    "kafka.admin.LeaderElectionCommand": "leader-election",
    "org.apache.kafka.tools.LeaderElectionCommand": "leader-election",
    "kafka.admin.LogDirsCommand": "log-dirs",
    "org.apache.kafka.tools.LogDirsCommand": "log-dirs",
    "kafka.admin.MetadataQuorumCommand": "metadata-quorum",
    "org.apache.kafka.tools.MetadataQuorumCommand": "metadata-quorum",
    "kafka.admin.PreferredReplicaLeaderElectionCommand": "preferred-replica-election",
    "kafka.tools.ProducerPerformance": "producer-perf-test",
    "org.apache.kafka.tools.ProducerPerformance": "producer-perf-test",
    "kafka.admin.ReassignPartitionsCommand": "reassign-partitions",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommand": "reassign-partitions",
    "kafka.tools.ReplayLogProducer": "replay-log-producer",
    "kafka.tools.ReplicaVerificationTool": "replica-verification",
    "org.apache.kafka.tools.ReplicaVerificationTool": "replica-verification",
    "org.apache.kafka.tools.ShareConsumerPerformance": "share-consumer-perf-test",
    "org.apache.kafka.tools.consumer.group.ShareGroupCommand": "share-groups",
    "kafka.tools.SimpleConsumerShell": "simple-consumer-shell",
    "kafka.tools.StorageTool": "storage",
    "kafka.tools.StreamsResetter": "streams-application-reset",
    "org.apache.kafka.tools.StreamsResetter": "streams-application-reset",
    "org.apache.kafka.tools.streams.StreamsGroupCommand": "streams-groups",
    "kafka.admin.TopicCommand": "topics",
    "org.apache.kafka.tools.TopicCommand": "topics",
    "org.apache.kafka.tools.TransactionalMessageCopier": "transactional-message-copier",
    "org.apache.kafka.tools.TransactionsCommand": "transactions",
    "org.apache.kafka.tools.VerifiableConsumer": "verifiable-consumer",
    "org.apache.kafka.tools.VerifiableProducer": "verifiable-producer",
    "org.apache.kafka.tools.VerifiableShareConsumer": "verifiable-share-consumer",
    "kafka.admin.ZkSecurityMigrator": "zookeeper-security-migration",
    "kafka.tools.ConsumerOffsetChecker": "consumer-offset-checker",
    "kafka.tools.ExportZkOffsets": "export-zk-offsets",
    "kafka.tools.ImportZkOffsets": "import-zk-offsets",
    "org.apache.zookeeper.ZooKeeperMain": "zookeeper-shell",
    "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka": "zookeeper-shell",
}


def script_names() -> dict[str, str]:
    """Returns a map from the names of Apache Kafka's scripts, without `.sh`, to the names of our corresponding
    tools."""
    names = {f"kafka-{name}": name for name in TOOLS if name not in (*OUR_OWN, *OTHER_SCRIPTS.values())}
    return names | {script: name for script, name in OTHER_SCRIPTS.items() if name in TOOLS}


def usage() -> str:
    """Returns the text of `kafkapy --help`: the forms of the command line and all tools."""
    lines = [
        "usage: kafkapy [--profile NAME] <tool> [arguments]",
        "       kafkapy <tool> --help",
        "       kafkapy --version",
        "",
        "tools:",
    ]
    words = TOOLS | ABOUT_TOOLS
    width = max(map(len, words)) + 2
    lines += [f"  {name:<{width}}{description}" for name, (_, description) in words.items()]
    return "\n".join(lines)


def command_line(program: str, arguments: list[str]) -> list[str]:
    """Returns the command line as a tool's name followed by its arguments.

    `program` is the path by which the program was started. If it ends in the name of one of Apache Kafka's scripts, the
    tool is the one that corresponds to the script; otherwise `arguments` begin with the tool's name and are returned
    unchanged.
    """
    script = Path(program).name.removesuffix(".sh")
    if script == RUN_CLASS:
        return tool_of_class(arguments)
    if arguments[:1] == ["run-class"]:
        return tool_of_class(arguments[1:])
    tool = script_names().get(script)
    return arguments if tool is None else [tool, *arguments]


def tool_of_class(arguments: list[str]) -> list[str]:
    """Returns the command line of the tool that replaces a Java class; [] if there are no arguments.

    `arguments` are the arguments of `kafka-run-class`: flags of the script, the class, the arguments of the class. The
    flags `-name NAME` and `-loggc` are dropped; `-daemon` is passed to the tool, because `server-start` has this flag
    too. The name of a class that no tool replaces stays the first word.
    """
    rest, flags = list(arguments), []
    while rest and rest[0] in ("-daemon", "-loggc", "-name"):
        flag = rest.pop(0)
        if flag == "-daemon":
            flags.append(flag)
        elif flag == "-name":
            del rest[:1]
    return [CLASSES.get(rest[0], rest[0]), *flags, *rest[1:]] if rest else []


def unknown_tool(word: str) -> str:
    """Returns the error for a first word that does not name a tool, with the most similar tool if there is one."""
    from difflib import get_close_matches  # needed for an error only

    is_class = word.startswith(("kafka.", "org.apache.kafka."))
    known = [*CLASSES] if is_class else [*TOOLS, *ABOUT_TOOLS]
    near = get_close_matches(word.removeprefix("kafka-").removesuffix(".sh"), known, 1)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    if is_class:
        return f"kafkapy: unknown class {word!r}{suggestion}"
    return f"kafkapy: unknown tool {word!r}{suggestion}\nSee `kafkapy --help`."


def open_closed_streams() -> None:
    """Opens the null device instead of standard input, output and error if the parent process has closed them.

    Otherwise the next file that this process opens, such as a segment of a log, would get the descriptor of the closed
    stream, and the interpreter's and libraries' messages would be written into this file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free descriptor, this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def main(arguments: list[str] | None = None) -> int:
    """Runs a tool and returns the exit code.

    If the process that reads standard output ends before the tool does, returns 0.
    """
    open_closed_streams()
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output has ended; the interpreter must not fail when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run(arguments: list[str] | None) -> int:
    """Runs the tool that the arguments name and returns its exit code; None means the process's arguments."""
    words = list(sys.argv[1:]) if arguments is None else arguments
    words = command_line(sys.argv[0], words)
    if words and words[0].partition("=")[0] == "--profile":
        _, has_value, name = words[0].partition("=")
        os.environ["KAFKAPY_PROFILE"] = name if has_value else "".join(words[1:2])
        words = words[1 if has_value else 2 :]
    if words and words[0] in VERSION_WORDS:
        print(import_module("kafkapy.build_data").version_text())
        return 0
    if words and words[0] in HELP_WORDS:
        print(usage())
        return 0
    if words[:1] in (["completion"], ["man"]):
        result: int = import_module(ABOUT_TOOLS[words[0]][0]).main(words[1:], TOOLS | ABOUT_TOOLS, script_names())
        return result
    if words[:1] == ["install-links"]:
        names = [*script_names(), RUN_CLASS]
        links: int = import_module(ABOUT_TOOLS[words[0]][0]).install_links(words[1:], names, sys.argv[0])
        return links
    if not words:
        print(usage(), file=sys.stderr)
        return 1
    if words[0] not in TOOLS:
        print(unknown_tool(words[0]), file=sys.stderr)
        return 1
    module, _ = TOOLS[words[0]]
    code: int = import_module(module).main(words[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
