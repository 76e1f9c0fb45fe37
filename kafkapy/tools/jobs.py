"""The tool `kafkapy jobs`: lists and submits the bundled Spark jobs, generates sample data, and runs a demo of both."""

from __future__ import annotations

import datetime
import os
import random
import signal
import subprocess
import threading
from collections.abc import Sequence

from kafkapy.client import Producer
from kafkapy.config.properties import read_properties
from kafkapy.tools import job_catalog, jobs_demo, jobs_new, sample_data, spark_submit, topic_feeder
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.spark_requirements import check_requirements
from kafkapy.tools.tool import run_tool, stops_by
from kafkapy.types import SystemClock

BOOTSTRAP_SERVER = Option(
    "bootstrap-server",
    "The brokers to write to, HOST1:PORT1,HOST2:PORT2; $KAFKAPY_BOOTSTRAP_SERVERS and the profile replace the default.",
    "server to connect to",
    default="localhost:9092",
)
GENERATE_OPTIONS = (
    Option(
        "data",
        "The data to write: "
        + "; ".join(f"{name}, {what}" for name, (_, _, what) in sample_data.GENERATORS.items())
        + ".",
        "name",
        is_required=True,
        choices=tuple(sample_data.GENERATORS),
    ),
    BOOTSTRAP_SERVER,
    Option("topic", "The topic; by default the one that the jobs for this data read.", "topic"),
    Option("rate", "Records per second; 0 for no limit.", "records/s", DOUBLE, default=1000.0),
    Option("num-records", "End after this many records; by default only when interrupted.", "count", LONG),
    Option("value-format", "The format of values.", "format", default="text", choices=topic_feeder.VALUE_FORMATS),
    Option("seed", "The seed of the data, which is the same for the same seed; by default random.", "number", LONG),
    Option(
        "start-time",
        "The first record's timestamp, such as 2017-03-01T09:30:00+08:00; by default records have the time of sending.",
        "time",
    ),
    Option(
        "step-ms",
        "With --start-time: the distance between timestamps of consecutive records.",
        "ms",
        INTEGER,
        default=1,
    ),
    Option(
        "producer.config",
        "A file with the producer's configuration.",
        "config file",
        completes="file",
    ),
)
SUBMIT_HELP = """\
usage: kafkapy jobs submit [spark-submit's options] NAME|FILE.py [the job's options]

Runs a bundled job or a Python file with Spark, with --master local[*] unless another is given, and with the packages
that the job's options need. A file may import the job library, kafkapy_jobs. The job's own options:
kafkapy jobs submit NAME --help
"""


def run(arguments: Arguments) -> int | None:
    """Carries out a subcommand; returns its exit code, where None means 0."""
    if arguments.command == "list":
        return list_jobs()
    if arguments.command == "demo":
        return jobs_demo.run_demo(arguments)
    return generate(arguments)


def list_jobs() -> int:
    """Prints name and purpose of every job; returns 0, the exit code.

    Raises ToolError if the installation does not contain the jobs.
    """
    paths = job_catalog.job_paths()
    if not paths:
        raise ToolError(f"there are no jobs in {job_catalog.JOBS_DIRECTORY}: this installation is not complete")
    width = max(map(len, paths)) + 2
    for name, path in paths.items():
        print(f"{name:<{width}}{job_catalog.describe(path)}")
    return 0


def submit(words: Sequence[str]) -> int:
    """Runs a job until it ends and returns its exit status; `words` are the options for Spark, the name of the job, and
    the options of the job.

    If a signal has ended the job, the status is 128 plus the signal's number. Without words it prints the help and
    returns 1.
    """
    if not words or words[0] in ("--help", "-h"):
        print(SUBMIT_HELP, end="")
        return 0 if words else 1
    index = spark_submit.first_positional(words)
    if index is None:
        raise ToolError(f"no job is named: {' '.join(words)}; the jobs are {', '.join(job_catalog.job_paths())}")
    job = job_catalog.find_job(words[index])
    environment = spark_submit.spark_environment(spark_submit.find_spark_submit(os.environ), os.environ)
    program = spark_submit.find_spark_submit(environment)
    if not {"-h", "--help"} & set(words[index + 1 :]):
        remote = spark_submit.connect_server(words[:index])
        if remote is None:
            check_requirements(program.resolve().parent.parent, environment)
        else:
            spark_submit.require_connect_server(remote)
    command = spark_submit.job_program(program, words[:index], job, words[index + 1 :], environment)
    process = subprocess.Popen(command.words, env=command.environment)
    received: list[int] = []

    def forward() -> None:
        if received and received[-1] == signal.SIGTERM:  # the terminal sends Ctrl-C to the job itself
            process.terminate()

    with stops_by(forward) as signals:
        received = signals
        status = process.wait()
    if received:
        return 128 + received[0]
    return status if status >= 0 else 128 - status


def generate(arguments: Arguments) -> int:
    """Sends sample data to a topic until the wanted number of records was sent, or until Ctrl-C.

    Returns 0, the exit code.
    """
    make, topic, _ = sample_data.GENERATORS[arguments["data"]]
    properties = read_properties(arguments["producer.config"]) if arguments.has("producer.config") else {}
    properties["bootstrap.servers"] = arguments["bootstrap-server"]
    await_broker(properties)
    seed = arguments["seed"] if arguments.has("seed") else random.randrange(1 << 32)
    stopped = threading.Event()
    with Producer({"linger.ms": 20, **properties}) as producer:
        feeder = topic_feeder.TopicFeeder(
            producer,
            arguments["topic"] or topic,
            make(seed),
            clock=SystemClock(),
            wait=stopped.wait,
            rate=arguments["rate"],
            value_format=arguments["value-format"],
            start_ms=_start_ms(arguments["start-time"]),
            step_ms=arguments["step-ms"],
        )

        def stop() -> None:
            feeder.stop()
            stopped.set()

        with stops_by(stop):
            sent = feeder.feed(arguments["num-records"])
    print(f"{sent} records sent")
    return 0


def _start_ms(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(f"argument --start-time: {text!r} is not a time such as 2017-03-01T09:30:00+08:00") from None


TOOL = Tool(
    "jobs",
    "Runs Spark jobs over topics, and generates sample data for them.",
    run,
    grammar=Grammar.ARGPARSE4J,
    commands=(
        Command("list", "list the bundled jobs", ()),
        Command(
            "submit",
            "run a job: kafkapy jobs submit [spark-submit's options] NAME [the job's options]",
            (),
            completes="job",
        ),
        Command("new", "write a job of your own and its test from a template: kafkapy jobs new NAME", ()),
        Command("generate", "send sample data to a topic", GENERATE_OPTIONS),
        Command("demo", "run a broker, a generator of search terms and the hot search", jobs_demo.OPTIONS),
    ),
    examples=(
        Example("Ten thousand search terms a second", "generate --data search-terms --rate 10000"),
        Example("The ten most searched of each minute", "submit hot-search --window '1 min'"),
    ),
)


def main(words: list[str]) -> int:
    """Runs the tool with the words of its command line; returns the exit code.

    The words after the subcommand `submit` or `new` are passed on to it without being parsed as flags of this tool.
    """
    with_words = {"submit": submit, "new": jobs_new.new_job}.get(words[0]) if words else None
    if with_words is not None:
        rest = words[1:]
        return run_tool(Tool("jobs", TOOL.description, lambda arguments: with_words(rest), needs_arguments=False), [])
    return run_tool(TOOL, words)
