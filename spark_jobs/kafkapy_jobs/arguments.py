"""The options that jobs share. Each job builds its parser from them and adds its own."""

from __future__ import annotations

import argparse
import datetime
import difflib
import re
import shlex
import sys
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

SOURCES = ("kafkapy", "kafka", "files")
VERBOSE = "--verbose"
# The trigger that processes the records that are there now, in as many micro-batches as it takes, and ends.
AVAILABLE_NOW = "available-now"
# The formats whose values name their schema in a registry.
REGISTRY_FORMATS = ("avro", "protobuf", "json-schema")
VALUE_FORMATS = ("text", "json", "msgpack", *REGISTRY_FORMATS)
# The sinks whose files are in the folder of --output-path.
_IN_FOLDERS = ("parquet", "text", "delta", "iceberg")
OBJECT_FORMATS = VALUE_FORMATS[1:]
_DURATION = re.compile(r"(\d+)\s*(milliseconds?|ms|seconds?|s|minutes?|min|m|hours?|h|days?|d)", re.IGNORECASE)
_MILLISECONDS = {"ms": 1, "mi": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class RegistryFormat(str):
    """A format of values that name their schema in the registry at `url`."""

    url: str

    def __new__(cls, name: str, url: str) -> RegistryFormat:
        made = super().__new__(cls, name)
        made.url = url
        return made


class JobParser(argparse.ArgumentParser):
    """An argument parser that accepts no abbreviations and names the nearest option for one that does not exist."""

    def __init__(self, description: str | None, **more: Any) -> None:
        """The arguments are those of ArgumentParser."""
        super().__init__(description=description, allow_abbrev=False, **more)

    def fix_in_checkpoint(self, *flags: str) -> None:
        """Declares options that the state of the job depends on.

        A checkpoint stores their values, and the job refuses a checkpoint with other values (see `checkpoint_owner`).
        """
        fixed = {flag: self._option_string_actions[flag].dest for flag in flags}
        self.set_defaults(fixed_options={**(self.get_default("fixed_options") or {}), **fixed})

    def parse_args(  # type: ignore[override]  # it has one result for all forms of its arguments
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parses the arguments; ends the program with a message, before a session starts, if they are wrong."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown[0])
        for problem in _problems(found):
            self.error(problem)
        return found

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"{word!r} belongs to no option")
        self.error(f"there is no option {word!r}{_did_you_mean(word.partition('=')[0], self._option_string_actions)}")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def milliseconds(duration: str) -> int:
    """Parses a positive length of time such as `5 minutes`, `10s` or `500 ms`.

    Raises ValueError for any other text.
    """
    found = _DURATION.fullmatch(duration.strip())
    if found is None or int(found[1]) == 0:
        raise ValueError(duration)
    unit = found[2].lower()
    return int(found[1]) * _MILLISECONDS["ms" if unit in ("ms", "millisecond", "milliseconds") else unit[0]]


def duration(text: str) -> str:
    """Parses an option that is a length of time; returns it in Spark's words."""
    try:
        return f"{milliseconds(text)} milliseconds"
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time such as '5 minutes' or '10 s'") from None


def length_or_zero(text: str) -> str:
    """Parses an option that is a length of time or zero; returns it in Spark's words."""
    return "0 milliseconds" if re.fullmatch(r"0\s*[a-z]*", text.strip(), re.IGNORECASE) else duration(text)


def trigger(text: str) -> str:
    """Parses an option that says when a micro-batch begins: a length of time, or `available-now`."""
    return text if text == AVAILABLE_NOW else duration(text)


def count(text: str) -> int:
    """Parses an option that is a whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def counts(text: str) -> list[int]:
    """Parses an option of whole numbers from 1 with commas between them; returns them in order, each once."""
    return sorted({count(number.strip()) for number in text.split(",")})


def date(text: str) -> str:
    """Parses an option that is a date, such as 2017-03-01."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2017-03-01") from None


def key_value(text: str) -> tuple[str, str]:
    """Parses an option of the form `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def time_zone(text: str) -> str:
    """Parses an option that is the name of a time zone, such as Asia/Shanghai."""
    names = zoneinfo.available_timezones()
    if text not in names:
        raise argparse.ArgumentTypeError(f"there is no time zone {text!r}{_did_you_mean(text, names)}")
    return text


def add_session(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the session; those that spark-submit has (master, memory, packages) are not repeated."""
    group = parser.add_argument_group("session")
    group.add_argument(
        "--shuffle-partitions", type=count, default=4, metavar="N", help="default 4; fixed by a checkpoint"
    )
    group.add_argument(
        "--time-zone", type=time_zone, metavar="ZONE", help="of dates that are printed; default: the machine's"
    )
    group.add_argument(VERBOSE, action="store_true", help="print errors with all that Spark says about them")


def add_stream(
    parser: JobParser,
    topic: str,
    *,
    value_formats: Sequence[str] = VALUE_FORMATS,
    is_final: bool = True,
    files_at_once: bool = False,
    more_sinks: Sequence[str] = (),
) -> JobParser:
    """Adds the options of every job over a stream and returns the parser.

    With `files_at_once` the job is a batch if it reads files. `add_source` and `add_sinks` explain the other arguments.
    """
    parser.set_defaults(files_at_once=files_at_once)
    add_source(parser, topic, is_stream=True, value_formats=value_formats)
    add_sinks(parser, is_stream=True, is_final=is_final, more=more_sinks)
    add_session(parser)
    return parser


def add_batch(parser: JobParser, topic: str) -> JobParser:
    """Adds the options of every job over a batch and returns the parser."""
    add_source(parser, topic, is_stream=False)
    add_sinks(parser, is_stream=False)
    add_session(parser)
    return parser


def add_source(
    parser: argparse.ArgumentParser,
    topic: str,
    *,
    is_stream: bool,
    value_formats: Sequence[str] = VALUE_FORMATS,
) -> None:
    """Adds the options of the source, which is a topic, by either data source, or files of one value per line.

    The first of `value_formats` is the default; a job that reads only one format passes none.
    """
    group = parser.add_argument_group("source")
    group.add_argument(
        "--source", choices=SOURCES, default="kafkapy", help="default kafkapy; kafka is Spark's own, a jar"
    )
    group.add_argument(
        "--bootstrap-server", default="localhost:9092", metavar="HOST:PORT", help="default localhost:9092"
    )
    which = group.add_mutually_exclusive_group()
    which.add_argument("--topic", default=topic, metavar="NAME", help=f"one, or several with commas; default {topic}")
    which.add_argument("--topic-pattern", metavar="EXPRESSION", help="all topics whose name matches")
    group.add_argument("--input", metavar="PATH", help="with --source files: a file or folder, one value per line")
    group.add_argument(
        "--starting-offsets", default="earliest", metavar="OFFSETS", help="earliest (default), latest, or Spark's JSON"
    )
    if is_stream:
        group.add_argument("--max-offsets", type=count, metavar="N", help="at most this many records per micro-batch")
        group.add_argument(
            "--trigger",
            type=trigger,
            default=duration("1 s"),
            metavar="EVERY",
            help="a length of time, or available-now; default 1 s",
        )
    else:
        group.add_argument(
            "--ending-offsets", default="latest", metavar="OFFSETS", help="latest (default), or Spark's JSON"
        )
    if value_formats:
        group.add_argument(
            "--value-format",
            choices=value_formats,
            default=value_formats[0],
            help=f"of values; default {value_formats[0]}",
        )
        group.add_argument("--schema-registry", metavar="URL", help="of --value-format avro, protobuf and json-schema")
    group.add_argument(
        "--source-option", type=key_value, action="append", default=[], metavar="KEY=VALUE", help="passed to the source"
    )
    group.add_argument(
        "--command-config", metavar="FILE", help="the keys of TLS and SASL for the brokers, one key=value per line"
    )


def add_windows(parser: JobParser, window: str, lateness: str, *, slides: bool = True) -> None:
    """Adds the options of windows of event time.

    `window` and `lateness` are the options' default values. Without `slides` there is no option --slide.
    """
    group = parser.add_argument_group("windows")
    group.add_argument(
        "--window", type=duration, default=duration(window), metavar="LENGTH", help=f"of event time; default {window}"
    )
    if slides:
        group.add_argument("--slide", type=duration, metavar="EVERY", help="from window to window; default: its length")
    else:
        parser.set_defaults(slide=None)
    group.add_argument(
        "--window-start",
        type=length_or_zero,
        default=length_or_zero("0 s"),
        metavar="LENGTH",
        help="windows begin so long after multiples of --slide since 1970 in UTC; default 0 s",
    )
    group.add_argument(
        "--lateness",
        type=length_or_zero,
        default=length_or_zero(lateness),
        metavar="LENGTH",
        help=f"a record this much older than the newest one still counts; default {lateness}",
    )
    parser.fix_in_checkpoint("--window", *(["--slide"] if slides else []), "--window-start")


def add_sinks(
    parser: argparse.ArgumentParser,
    *,
    is_stream: bool,
    is_final: bool = True,
    names: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Adds the options of the sinks, of which a job may have several: `names`, by default all that fit, and `more`.

    Without `is_final` later rows replace the rows of a result, so that there is no option to write them to files.
    """
    tables = ["parquet", "delta", "iceberg"] if is_final else []
    names = names or ["console", "topic", *tables, *([] if is_stream else ["jdbc"]), *more]
    group = parser.add_argument_group("sinks")
    parser.set_defaults(default_sink=names[0])
    group.add_argument("--sink", choices=names, action="append", help=f"may be repeated; default {names[0]}")
    if "topic" in names:
        group.add_argument("--output-topic", metavar="NAME", help="of --sink topic: results as JSON")
    if is_final:
        group.add_argument("--output-path", metavar="PATH", help="of --sink parquet and delta: a folder; of iceberg: "
                           "the folder of the tables")  # fmt: skip
        group.add_argument("--output-table", metavar="NAME", help="of --sink iceberg: NAMESPACE.TABLE")
    group.add_argument(
        "--sink-option",
        type=key_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="passed to the sink, such as mergeSchema=true to delta",
    )
    group.add_argument("--dead-letter-topic", metavar="NAME", help="receives unreadable values, with the reason")
    if is_stream:
        add_observation(parser)
        group.add_argument("--checkpoint", metavar="PATH", help="a folder; needed for every sink but the console")
        group.add_argument(
            "--delivery",
            choices=("exactly-once", "at-least-once"),
            default="exactly-once",
            help="of --sink topic; exactly-once (default) writes each micro-batch in one transaction of the driver",
        )
    else:
        group.add_argument("--jdbc-url", metavar="URL", help="of --sink jdbc: jdbc:postgresql://HOST:PORT/DATABASE")
        group.add_argument("--jdbc-table", metavar="NAME", help="of --sink jdbc")
        group.add_argument(
            "--save-mode",
            choices=("append", "overwrite"),
            default="overwrite",
            help="of files, tables and jdbc; default overwrite",
        )


def add_observation(parser: argparse.ArgumentParser) -> None:
    """Adds the options that show what a stream does."""
    group = parser.add_argument_group("observation")
    group.add_argument("--http", metavar="HOST:PORT", help="serves a page (/) and metrics for Prometheus (/metrics)")
    group.add_argument("--progress-topic", metavar="NAME", help="receives the figures of each micro-batch as JSON")
    group.add_argument("--language", choices=("en", "zh"), default="en", help="of the page; default en")


def _problems(arguments: Any) -> Iterator[str]:
    """Yields the contradictions between arguments, and sets the defaults that depend on other arguments."""
    given = vars(arguments)
    if given.get("source") == "files" and not arguments.input:
        yield "--source files needs --input"
    if given.get("value_format") in REGISTRY_FORMATS:
        if not arguments.schema_registry:
            yield f"--value-format {arguments.value_format} needs --schema-registry, such as http://localhost:8081"
        else:
            arguments.value_format = RegistryFormat(arguments.value_format, arguments.schema_registry)
    if given.get("source") == "files" and given.get("max_offsets"):
        yield "--max-offsets is of topics; of files --source-option maxFilesPerTrigger=N"
    if "slide" in given:
        arguments.slide = arguments.slide or arguments.window
        if milliseconds(arguments.slide) > milliseconds(arguments.window):
            yield "--slide is longer than --window: records between two windows would be lost"
        if int(arguments.window_start.split()[0]) >= milliseconds(arguments.slide):
            yield "--window-start is not shorter than --slide"
    if "sink" not in given:
        return
    arguments.sink = list(dict.fromkeys(arguments.sink or [arguments.default_sink]))
    if given.get("is_checkpoint_in_output") and arguments.output_path and not arguments.checkpoint:
        arguments.checkpoint = f"{arguments.output_path.rstrip('/')}/_checkpoint"
    if len([sink for sink in arguments.sink if sink in _IN_FOLDERS]) > 1:
        yield f"only one of --sink {', '.join(_IN_FOLDERS)}: they share --output-path"
    table = given.get("output_table") or ""
    if "iceberg" in arguments.sink and table and not re.fullmatch(r"\w+(\.\w+)+", table):
        yield f"--output-table {table}: the name is NAMESPACE.TABLE, of letters, digits and underscores"
    is_stream = "checkpoint" in given and not (given.get("files_at_once") and arguments.source == "files")
    needed = {
        "topic": ["output_topic"],
        **dict.fromkeys(_IN_FOLDERS, ("output_path",)),
        "iceberg": ["output_path", "output_table"],
        "jdbc": ["jdbc_url", "jdbc_table"],
    }
    for sink in arguments.sink:
        names = [*needed.get(sink, []), *(["checkpoint"] if sink != "console" and is_stream else [])]
        for name in names:
            if not given[name]:
                yield f"--sink {sink} needs --{name.replace('_', '-')}"
    if given.get("dead_letter_topic") and is_stream and not arguments.checkpoint:
        yield "--dead-letter-topic needs --checkpoint"


def checkpoint_owner(arguments: Any) -> str:
    """Returns the name that the job's checkpoint stores: the job, and the options that its state depends on.

    Options without a value are left out. Returns an empty text for a program without a job's name.
    """
    given = vars(arguments)
    name = given.get("job_name")
    fixed = given.get("fixed_options", {})
    return shlex.join([name, *(word for flag in fixed for word in _words(flag, given[fixed[flag]]))]) if name else ""


def _words(flag: str, value: Any) -> list[str]:
    return [flag, str(value)] if value else []


def fail(message: str) -> NoReturn:
    """Ends the program with status 1 and one line on standard error."""
    print(message, file=sys.stderr)
    raise SystemExit(1)
