"""Checks what a job needs before its session starts, and says in one line what the job reads and where results go.

A JVM needs seconds to start and reports a misspelt topic in a hundred lines, so that the driver asks the broker first.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafkapy_jobs.arguments import RegistryFormat, fail
from kafkapy_jobs.redis_list import without_password
from kafkapy_jobs.source import connection_options, refuse_python, topic_options
from kafkapy_jobs.tables import destination

# A broker that accepts a connection and does not answer is given up after this long.
_TIMEOUT_MS = "10000"
# The options of jobs that read more topics than one.
_FURTHER_TOPICS = ("right_topic", "profile_topic", "search_topic")


def check_job(name: str, arguments: Any) -> None:
    """Ends the program with one line if a broker, a topic or a file is missing or an option is wrong; otherwise prints
    what it reads.

    The line is printed on standard error. The broker and topics are not checked for Spark's own source, which has a
    client of its own, and nothing is checked for a job whose properties file names the broker, because that file is
    read only when the session exists.
    """
    given = vars(arguments)
    source = given.get("source")
    require_broker(arguments)
    require_registry(arguments)
    if source is None or (given.get("bootstrap_server") is None and source != "files"):
        return
    if source == "files":
        require_input(arguments.input)
        read = arguments.input
    elif source == "kafka":
        read = f"{arguments.topic_pattern or arguments.topic} on {arguments.bootstrap_server}"
    else:
        read = _topics(arguments)
    print(f"{name}: reads {read}; {'; '.join(destinations(arguments))}", file=sys.stderr)


def require_broker(arguments: Any) -> None:
    """Ends the program, before a JVM starts, if no broker of the data source kafkapy accepts a connection."""
    given = vars(arguments)
    writes = "topic" in (given.get("sink") or ()) or given.get("dead_letter_topic") or given.get("progress_topic")
    if given.get("source") == "kafka" or (given.get("source") == "files" and not writes):
        return
    if given.get("bootstrap_server") is None:  # a job's own file names it, which is read with a session
        return
    servers = connection_options(arguments)["kafka.bootstrap.servers"]
    try:
        from kafkapy.tools.bootstrap import await_broker
        from kafkapy.tools.option import ToolError
    except ModuleNotFoundError as error:
        refuse_python(error.name)
    try:
        await_broker({"bootstrap.servers": servers})
    except ToolError as error:
        fail(f"--bootstrap-server {servers}: {error}")


def require_registry(arguments: Any) -> None:
    """Ends the program if the values have a schema in a registry that does not answer."""
    value_format = vars(arguments).get("value_format")
    if not isinstance(value_format, RegistryFormat):
        return
    try:
        from kafkapy.client.schema import RegistryClient, RegistryFailure
        from kafkapy.errors import ConfigError
    except ModuleNotFoundError as error:
        refuse_python(error.name)
    try:
        RegistryClient(value_format.url, retries=0).subjects(prefix="-")
    except (ConfigError, RegistryFailure, ValueError) as error:
        fail(f"--schema-registry {value_format.url}: {error}")


def require_input(path: str) -> None:
    """Ends the program if a local path without wildcards does not exist; Spark looks up all other paths."""
    is_local = not urlsplit(path).scheme and not set("*?[{") & set(path)
    if is_local and not Path(path).exists():
        fail(f"--input {path}: there is no such file or folder")


def destinations(arguments: Any) -> Iterator[str]:
    """Yields a phrase for each place that a job writes to, without passwords."""
    given = vars(arguments)
    names = {
        "console": "standard output",
        "topic": f"topic {given.get('output_topic')}",
        "redis": f"Redis {without_password(str(given.get('redis_url')))}",
        "jdbc": f"table {given.get('jdbc_table')} of {str(given.get('jdbc_url')).partition('?')[0]}",
    }
    sinks = given.get("sink") or ["console"]
    yield f"results go to {', '.join(names.get(sink) or destination(arguments, sink) for sink in sinks)}"
    if given.get("dead_letter_topic"):
        yield f"unreadable values to topic {given['dead_letter_topic']}"
    if given.get("http"):
        yield f"page and metrics on http://{given['http']}"
    if given.get("checkpoint"):
        yield f"the position is in {given['checkpoint']}"


def _topics(arguments: Any) -> str:
    """Looks up the topics of a job in the cluster; returns them with the numbers of their partitions and records."""
    from kafkapy.errors import ApiError, ConfigError

    given = vars(arguments)
    topics = [None, *(given[name] for name in _FURTHER_TOPICS if given.get(name))]
    is_stream = "trigger" in vars(arguments)
    end = {} if is_stream else {"endingOffsets": arguments.ending_offsets}
    try:
        found = [_looked_up(topic_options(arguments, topic) | end, is_stream=is_stream) for topic in topics]
    except (ApiError, ConfigError, TimeoutError) as error:
        fail(str(error))
    return f"{' and '.join(found)} on {connection_options(arguments)['kafka.bootstrap.servers']}"


def _looked_up(options: dict[str, str], *, is_stream: bool) -> str:
    """Returns the name of topics or of a pattern, with the number of partitions and of records to read.

    Ends the program if a topic does not exist. Raises ConfigError for a wrong option, ApiError and TimeoutError if the
    cluster refuses or does not answer.
    """
    from kafkapy.spark.options import read_options
    from kafkapy.spark.source_cluster import SourceCluster
    from kafkapy.spark.start_and_end import resolve

    parsed = read_options(options, is_streaming=is_stream)
    own = {"default.api.timeout.ms": _TIMEOUT_MS, **parsed.properties}
    cluster = SourceCluster(parsed._replace(properties=type(parsed.properties)(own)))
    try:
        found = cluster.partitions()
        if found.missing:
            _refuse_topics(found.missing, parsed.properties)
        starts = resolve(parsed.starting, found.partitions, cluster.look_up)
        ends = resolve(parsed.ending, found.partitions, cluster.look_up)
    finally:
        cluster.close()
    names = sorted({partition.topic for partition in found.partitions})
    shown = ",".join(names) if parsed.selection.pattern is None else f"topics {parsed.selection.pattern}"
    records = sum(max(0, ends[partition] - starts[partition]) for partition in found.partitions)
    return f"{shown} ({_counted(len(found.partitions), 'partition')}, {_counted(records, 'record')} now)"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _refuse_topics(missing: list[str], properties: dict[str, str]) -> None:
    from kafkapy.client import Admin

    with Admin(properties) as admin:
        known = list(admin.list_topics(timeout=int(_TIMEOUT_MS) / 1000))
    names = ", ".join(missing)
    servers = properties["bootstrap.servers"]
    near = [match for name in missing for match in difflib.get_close_matches(name, known, 1)]
    advice = f"did you mean {', '.join(near)}?" if near else "`kafkapy topics --list` prints those that exist"
    fail(f"--topic {names}: there is no such topic on {servers}; {advice}")
