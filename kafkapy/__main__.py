"""One program, many tools: `kafkapy <tool> ...`, or the program under the name of Apache Kafka's script through a link.

`kafka-topics.sh` and `kafka-topics` are `kafkapy topics`. Tools are imported only when they are asked for: the broker
starts without the tools' code, and the reverse.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

# tool -> (module with `main(arguments) -> exit code`, what it is). A module of `kafkapy.tools` has a `TOOL` as well,
# from which completion and docs/compatibility.md are made.
TOOLS = {
    "broker": ("kafkapy.broker_command", "start a broker: `kafkapy broker start --config server.properties`"),
    "topics": ("kafkapy.tools.topics", "create, list, describe, change and delete topics"),
    "configs": ("kafkapy.tools.configs", "show and change the configuration of topics, brokers, users"),
    "consumer-groups": ("kafkapy.tools.consumer_groups", "list, describe and delete groups, set their offsets"),
    "get-offsets": ("kafkapy.tools.get_offsets", "print the offsets of partitions, at their ends or at a time"),
    "delete-records": ("kafkapy.tools.delete_records", "delete the records before given offsets"),
    "log-dirs": ("kafkapy.tools.log_dirs", "print what lies in the brokers' log directories"),
    "leader-election": ("kafkapy.tools.leader_election", "elect the leaders of partitions"),
    "cluster": ("kafkapy.tools.cluster", "print the cluster's id and brokers, forget a broker"),
    "features": ("kafkapy.tools.features", "print and change the levels of the cluster's features"),
    "broker-api-versions": ("kafkapy.tools.broker_api_versions", "print which APIs the brokers serve"),
    "transactions": ("kafkapy.tools.transactions", "list and describe transactions, end those that hang"),
    "console-producer": ("kafkapy.tools.console_producer", "write lines of standard input to a topic"),
    "console-consumer": ("kafkapy.tools.console_consumer", "print the records of a topic"),
    "dump-log": ("kafkapy.tools.dump_log", "print segments, indexes and snapshots; needs no broker"),
    "storage": ("kafkapy.storage_command", "format log directories, and say what is in them"),
    "producer-perf-test": ("kafkapy.tools.producer_perf_test", "measure how fast records are produced"),
    "consumer-perf-test": ("kafkapy.tools.consumer_perf_test", "measure how fast records are consumed"),
    "end-to-end-latency": ("kafkapy.tools.end_to_end_latency", "measure the time from producer to consumer"),
    "metrics": ("kafkapy.tools.metrics", "print the metrics of a running broker, or follow them"),
    "probe": ("kafkapy.tools.probe", "send records through a broker and tell how long they take"),
    "server-start": (
        "kafkapy.tools.server_start",
        "start a broker: `kafkapy server-start [-daemon] server.properties`",
    ),
    "server-stop": ("kafkapy.tools.server_stop", "stop the brokers of this user on this host"),
    "doctor": ("kafkapy.tools.doctor", "look for what is wrong with a broker's machine, configuration and data"),
    "jobs": ("kafkapy.tools.jobs", "run Spark jobs over topics, and feed topics with sample data"),
}
# What is about these tools themselves -> (module, what it is).
ABOUT_TOOLS = {
    "completion": ("kafkapy.tools.completion", "print a completion script: `kafkapy completion bash|zsh|fish`"),
    "install-links": ("kafkapy.script_links", "make links with the names of Apache Kafka's scripts in a directory"),
}
# Tools that Apache Kafka has no script for.
OUR_OWN = ("broker", "doctor", "jobs", "metrics", "probe")
# Apache Kafka's scripts whose name is not `kafka-` and the tool's.
OTHER_SCRIPTS = {"kafka-e2e-latency": "end-to-end-latency"}
RUN_CLASS = "kafka-run-class"
# What it takes: the classes of those tools that have no script of their own in some release.
CLASSES = {
    "kafka.tools.GetOffsetShell": "get-offsets",
    "org.apache.kafka.tools.GetOffsetShell": "get-offsets",
    "kafka.tools.DumpLogSegments": "dump-log",
    "org.apache.kafka.tools.DumpLogSegments": "dump-log",
    "kafka.tools.ConsoleProducer": "console-producer",
    "org.apache.kafka.tools.ConsoleProducer": "console-producer",
    "kafka.tools.ConsoleConsumer": "console-consumer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer": "console-consumer",
    "org.apache.kafka.tools.ProducerPerformance": "producer-perf-test",
    "org.apache.kafka.tools.ConsumerPerformance": "consumer-perf-test",
    "org.apache.kafka.tools.EndToEndLatency": "end-to-end-latency",
    "kafka.tools.StorageTool": "storage",
}


def script_names() -> dict[str, str]:
    """The scripts of Apache Kafka that this program answers to, without `.sh` -> the tool."""
    names = {f"kafka-{name}": name for name in TOOLS if name not in (*OUR_OWN, *OTHER_SCRIPTS.values())}
    return names | {script: name for script, name in OTHER_SCRIPTS.items() if name in TOOLS}


def usage() -> str:
    lines = [
        "usage: kafkapy <tool> [arguments]",
        "       kafkapy <tool> --help",
        "       kafkapy --version",
        "",
        "tools:",
    ]
    words = TOOLS | ABOUT_TOOLS
    width = max(map(len, words)) + 2
    lines += [f"  {name:<{width}}{description}" for name, (_, description) in words.items()]
    return "\n".join(lines)


def words_of(program: str, arguments: list[str]) -> list[str]:
    """The tool and its arguments, whatever name the program was started by."""
    script = Path(program).name.removesuffix(".sh")
    if script == RUN_CLASS:
        return [CLASSES.get(arguments[0], arguments[0]), *arguments[1:]] if arguments else []
    tool = script_names().get(script)
    return arguments if tool is None else [tool, *arguments]


def main(arguments: list[str] | None = None) -> int:
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run(arguments: list[str] | None) -> int:
    """The exit code of what the words ask for; None: those of the command line."""
    words = list(sys.argv[1:]) if arguments is None else arguments
    words = words_of(sys.argv[0], words)
    if words and words[0] in ("--version", "-V"):
        print(import_module("kafkapy.build_data").version_text())
        return 0
    if words and words[0] in ("--help", "-h", "help"):
        print(usage())
        return 0
    if words[:1] == ["completion"]:
        result: int = import_module(ABOUT_TOOLS[words[0]][0]).main(words[1:], TOOLS | ABOUT_TOOLS, script_names())
        return result
    if words[:1] == ["install-links"]:
        names = [*script_names(), RUN_CLASS]
        links: int = import_module(ABOUT_TOOLS[words[0]][0]).install_links(words[1:], names, sys.argv[0])
        return links
    if not words or words[0] not in TOOLS:
        if words:
            print(f"kafkapy: there is no tool {words[0]!r}", file=sys.stderr)
        print(usage(), file=sys.stderr)
        return 1
    module, _ = TOOLS[words[0]]
    code: int = import_module(module).main(words[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
