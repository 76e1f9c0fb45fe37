"""The tool `kafka-console-consumer`: prints the records of topics."""

from __future__ import annotations

import logging
import random
import re
import select
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition, WakeupError
from kafkapy.config.properties import read_properties
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, ZOOKEEPER, await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.message_formatter import FORMATTER_PROPERTIES, JsonFormatter, MessageFormatter, make_formatter
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, ToolError, UsageError, parse_key_values
from kafkapy.tools.tool import run_tool, script_name, sentence, stops_by

log = logging.getLogger("kafkapy.tools.console_consumer")

EARLIEST, LATEST = -2, -1
_METADATA_TIMEOUT_S = 5.0
# The longest time of one poll if the user has not set a timeout.
LONGEST_POLL_S = 3600.0
DEPRECATED = "(DEPRECATED) Use {} instead."
NO_RECORD_IN_TIME = "Error processing message, terminating consumer process: no record was received within %d ms"
_DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that exclude each other or are missing."""
    arguments.require_one_of("topic", "include")
    if arguments.has("partition"):
        if not arguments.has("topic"):
            raise UsageError("The topic is required when partition is specified.")
        if arguments.has("from-beginning") and arguments.has("offset"):
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif arguments.has("offset"):
        raise UsageError("The partition is required when offset is specified.")
    arguments.require("bootstrap-server")
    for old, new in (
        ("consumer-property", "command-property"),
        ("consumer.config", "command-config"),
        ("property", "formatter-property"),
    ):
        if arguments.has(old) and arguments.has(new):
            raise UsageError(f"Options --{old} and --{new} cannot be specified together.")


def print_deprecated(arguments: Arguments, *names: tuple[str, str]) -> None:
    """Prints a warning for each deprecated flag that was given; `names` are pairs of the old and the new flag."""
    for old, new in names:
        if arguments.has(old):
            print(f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead.")


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration from the file, the properties and the flags that the user gave.

    Properties override the file, and flags override both. Raises UsageError or ToolError for settings that contradict
    each other, such as two different groups.
    """
    print_deprecated(arguments, ("consumer-property", "command-property"), ("consumer.config", "command-config"))
    config = "consumer.config" if arguments.has("consumer.config") else "command-config"
    from_file = read_properties(arguments[config]) if arguments.has(config) else {}
    extra = parse_key_values(arguments.values("consumer-property") or arguments.values("command-property"))
    group = named_group(arguments, from_file, extra, "consumer.config")
    if group is not None and arguments.has("partition"):
        raise UsageError("Options group and partition cannot be specified together.")
    properties: dict[str, Any] = {**from_file, **extra}
    _set_reset(properties, is_from_beginning=arguments["from-beginning"])
    properties["bootstrap.servers"] = arguments["bootstrap-server"]
    properties.setdefault("client.id", "console-consumer")
    if arguments.has("isolation-level") or "isolation.level" not in properties:
        properties["isolation.level"] = arguments["isolation-level"]
    if group is None:
        group = f"console-consumer-{random.randrange(100000)}"
        properties.setdefault("enable.auto.commit", "false")
    properties["group.id"] = group
    for key in ("key.deserializer", "value.deserializer"):
        properties[key] = "bytes"
    return properties


def named_group(arguments: Arguments, from_file: dict[str, str], extra: dict[str, str], config_flag: str) -> str | None:
    """Returns the group id that the user named by --group or as group.id in a property; None if the user named no
    group.

    `from_file` and `extra` are the properties of the configuration file and of the command line. Raises UsageError if
    the sources name different groups. Its message contains `config_flag`, the name of the flag for the configuration
    file.
    """
    named = [arguments["group"], from_file.get("group.id"), extra.get("group.id")]
    groups = list(dict.fromkeys(name for name in named if name is not None))
    if len(groups) > 1:
        shown = ", ".join(f"'{group}'" for group in groups)
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--{config_flag}') do not match. Detected group ids: {shown}"
        )
    return groups[0] if groups else None


def _set_reset(properties: dict[str, Any], *, is_from_beginning: bool) -> None:
    reset = properties.get("auto.offset.reset")
    if reset is None:
        properties["auto.offset.reset"] = "earliest" if is_from_beginning else "latest"
    elif is_from_beginning and reset != "earliest":
        raise ToolError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )


def start_offset(arguments: Arguments) -> int:
    """Returns where the reading of `--partition` begins: an offset, EARLIEST or LATEST.

    Raises UsageError for an invalid offset.
    """
    if not arguments.has("offset"):
        return EARLIEST if arguments["from-beginning"] else LATEST
    text: str = arguments["offset"]
    named = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if named is not None:
        return named
    try:
        offset: int = LONG.parse(text)
    except ValueError:
        offset = -1
    if offset < 0:
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return offset


def formatter_of(arguments: Arguments) -> MessageFormatter:
    """Returns the formatter that --formatter names, or the formatter of --json.

    It is configured by the file of --formatter-config, the flags for deserializers, and the properties on the command
    line; a later source takes precedence.
    """
    if arguments["json"]:
        return JsonFormatter()
    print_deprecated(arguments, ("property", "formatter-property"))
    properties = read_properties(arguments["formatter-config"]) if arguments.has("formatter-config") else {}
    for kind in ("key", "value"):
        if arguments[f"{kind}-deserializer"]:
            properties[f"{kind}.deserializer"] = arguments[f"{kind}-deserializer"]
    properties.update(parse_key_values(arguments.values("property") or arguments.values("formatter-property")))
    return make_formatter(arguments["formatter"], properties)


class RecordOutput:
    """An output of records that counts those that it has accepted. Not thread-safe.

    It passes the texts of records on in chunks that a pipe accepts as a whole or not at all, so that the count is right
    also if the reader of the pipe ends. A chunk is larger only if it is one record.
    """

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._texts: list[bytes] = []
        self._size = 0
        self.accepted = 0

    def write(self, text: bytes) -> None:
        """Writes the text of a record, which `flush` or a later call passes on. Raises OSError if the output fails."""
        if self._size + len(text) > select.PIPE_BUF:
            self.flush()
        self._texts.append(text)
        self._size += len(text)

    def flush(self) -> None:
        """Passes all texts on. Raises OSError if the output fails; the texts are then lost."""
        texts, self._texts, self._size = self._texts, [], 0
        self._output.write(b"".join(texts))
        self._output.flush()
        self.accepted += len(texts)


class ConsoleConsumer:
    """Prints records as they are received. Not thread-safe, but a signal's handler may call `stop`.

    `has_failed` is True after an ApiError of the consumer, which ends the reading.
    """

    def __init__(
        self,
        consumer: Consumer,
        formatter: MessageFormatter,
        output: BinaryIO,
        *,
        skips_errors: bool,
        is_done: Callable[[], bool] = lambda: False,
        is_wanted: Callable[[ConsumerRecord], bool] = lambda record: True,
        poll_s: float = LONGEST_POLL_S,
    ) -> None:
        """If `skips_errors` is True, a record that cannot be formatted is left out; otherwise it ends the program.

        `is_done` is called before each poll; if it returns True, no further records are read. `is_wanted` returns
        whether a record is printed. `poll_s` is the longest time of one poll if the user has not set a timeout.
        """
        self._consumer = consumer
        self._formatter = formatter
        self._output = output
        self._skips_errors = skips_errors
        self._is_done = is_done
        self._is_wanted = is_wanted
        self._poll_s = poll_s
        self.message_count = 0
        self.has_failed = False

    def stop(self) -> None:
        """Makes `print_all` return. Any thread may call it."""
        self._consumer.wakeup()

    def print_all(self, max_messages: int, timeout_ms: int | None) -> None:
        """Prints until `max_messages` records were printed (-1: no limit), or until `stop` is called.

        Also returns when no record has arrived for `timeout_ms`, when no further records have to be read, and after an
        ApiError, which is logged. If `timeout_ms` is None, there is no limit of time.
        """
        try:
            while max_messages < 0 or self.message_count < max_messages:
                records = self._receive(timeout_ms)
                if records is None:
                    return
                wanted = len(records) if max_messages < 0 else max_messages - self.message_count
                self._rewind(records[wanted:])
                self._print(records[:wanted])
        except WakeupError:
            return
        except ApiError as error:
            log.error("Error processing message, terminating consumer process: %s", error.message)
            self.has_failed = True

    def _receive(self, timeout_ms: int | None) -> list[ConsumerRecord] | None:
        start = time.monotonic()
        limit_s = self._poll_s if timeout_ms is None else timeout_ms / 1000
        while not self._is_done():
            records = list(filter(self._is_wanted, self._consumer.poll(limit_s)))
            if records:
                return records
            if timeout_ms is not None and time.monotonic() - start >= limit_s:
                log.error(NO_RECORD_IN_TIME, timeout_ms)
                break
        return None

    def _rewind(self, unread: list[ConsumerRecord]) -> None:
        """Moves the consumer's positions back to the first records that were not printed, so that the offsets of
        unprinted records are not committed."""
        first: dict[TopicPartition, int] = {}
        for record in unread:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        for partition, offset in first.items():
            self._consumer.seek(partition, offset)

    def _print(self, records: list[ConsumerRecord]) -> None:
        """Prints records; if that fails, moves the consumer's positions back, so that the offsets of unprinted records
        are not committed.

        A record that cannot be formatted counts as read, as in Apache Kafka's tool.
        """
        output = RecordOutput(self._output)
        try:
            try:
                for record in records:
                    output.write(self._formatted(record))
            finally:
                output.flush()
        except (OSError, KeyboardInterrupt):  # KeyboardInterrupt: a second signal
            self._rewind(records[output.accepted :])
            raise
        except Exception:
            self._rewind(records[output.accepted + 1 :])
            raise

    def _formatted(self, record: ConsumerRecord) -> bytes:
        """Returns the text of a record, or b"" for a record that cannot be formatted if such records are skipped.

        Otherwise raises ToolError for such a record. A deserializer of the user may raise any other exception.
        """
        self.message_count += 1
        try:
            return self._formatter.format(record)
        except Exception as error:
            if not self._skips_errors:
                raise (ToolError(str(error)) if isinstance(error, ValueError | ToolError) else error) from None
            log.error("Error processing message, skipping this message: %s", sentence(error))
            return b""


def begin(consumer: Consumer, arguments: Arguments) -> None:
    """Subscribes the consumer to the topics, or assigns it the partition of `--partition`."""
    if arguments.has("include"):
        try:
            pattern = re.compile(rf"\A(?:{arguments['include']})\Z")
        except re.error as error:
            raise ToolError(f"{arguments['include']} is not a regular expression: {error}") from None
        consumer.subscribe(pattern)
    elif not arguments.has("partition"):
        consumer.subscribe([arguments["topic"]])
    else:
        partition = TopicPartition(arguments["topic"], arguments["partition"])
        offset = start_offset(arguments)
        consumer.assign([partition])
        warn_of_missing_partition(consumer, partition)
        if offset == EARLIEST:
            consumer.seek_to_beginning([partition])
        elif offset == LATEST:
            consumer.seek_to_end([partition])
        else:
            consumer.seek(partition, offset)


def warn_of_missing_partition(consumer: Consumer, partition: TopicPartition) -> None:
    """Logs a warning if the topic has no partition with this number.

    As in Kafka, the consumer waits until the partition is created.
    """
    try:
        infos = consumer.partitions_for(partition.topic, _METADATA_TIMEOUT_S)
    except (ApiError, TimeoutError):
        return  # the consumer itself reports failures
    if infos and partition.partition not in {each.partition for each in infos}:
        log.warning(
            "Topic %s has %d partitions; waiting until partition %d is created",
            *(partition.topic, len(infos), partition.partition),
        )


def run(arguments: Arguments, output: BinaryIO | None = None) -> int:
    """Prints records to `output`, or to standard output if `output` is None; returns the exit code.

    The code is 128 plus the signal's number if a signal ended the tool, 1 after an error of the consumer, otherwise 0.
    If the program was started by the name of Apache Kafka's script, the code is 0 after such an error too, as with that
    script.
    """
    check(arguments)
    properties = consumer_properties(arguments)
    start_offset(arguments)
    formatter = formatter_of(arguments)
    await_broker(properties)
    sys.stdout.flush()
    stream = sys.stdout.buffer if output is None else output
    max_messages = arguments["max-messages"] if arguments.has("max-messages") else -1
    timeout_ms = arguments["timeout-ms"] if arguments.has("timeout-ms") and arguments["timeout-ms"] >= 0 else None
    consumer = Consumer(properties)
    console = ConsoleConsumer(consumer, formatter, stream, skips_errors=arguments["skip-message-on-error"])
    with stops_by(console.stop) as signals:
        try:
            begin(consumer, arguments)
            console.print_all(max_messages, timeout_ms)
        finally:
            consumer.close()
            print(f"Processed a total of {console.message_count} messages", file=sys.stderr)
    if arguments["enable-systest-events"]:
        print("shutdown_complete")
    if signals:
        return 128 + signals[0]
    return 1 if console.has_failed and not script_name() else 0


DESERIALIZER_OPTIONS = (
    Option(
        "key-deserializer",
        "The deserializer of keys: a class of Kafka's, or a Python callable as module:name.",
        "deserializer for keys",
    ),
    Option(
        "value-deserializer",
        "The deserializer of values: a class of Kafka's, or a Python callable as module:name.",
        "deserializer for values",
    ),
)
FORMATTER_OPTIONS = (
    Option(
        "formatter",
        "The class of the formatter, one of Kafka's, such as "
        "org.apache.kafka.tools.consumer.OffsetsMessageFormatter for __consumer_offsets.",
        "class",
        default=_DEFAULT_FORMATTER,
    ),
    Option("property", DEPRECATED.format("--formatter-property"), "prop", is_deprecated=True),
    Option(
        "formatter-property",
        "A property of the formatter, as key=value; may be repeated:\n" + FORMATTER_PROPERTIES,
        "prop",
    ),
    Option(
        "formatter-config",
        "A file of formatter properties; --formatter-property takes precedence over it.",
        "config file",
        completes="file",
    ),
)
OPTIONS = (
    Option("topic", "The topic to read.", "topic"),
    Option("include", "A regular expression; topics whose whole name matches it are read.", "Java regex (String)"),
    Option("partition", "The partition to read, from its end without --offset.", "partition", INTEGER),
    Option(
        "offset",
        "The offset to begin with, or earliest or latest.",
        "consume offset",
        default="latest",
        choices=("earliest", "latest"),
    ),
    Option("consumer-property", DEPRECATED.format("--command-property"), "consumer_prop", is_deprecated=True),
    Option("command-property", "A configuration key of the consumer, as key=value; may be repeated.", "consumer_prop"),
    Option("consumer.config", DEPRECATED.format("--command-config"), "config file", is_deprecated=True),
    Option(
        "command-config",
        "A file of the consumer's configuration; --command-property takes precedence over it.",
        "config file",
        completes="file",
    ),
    *FORMATTER_OPTIONS,
    Option("from-beginning", "Begin with the earliest record, unless the group has committed an offset."),
    Option(
        "max-messages",
        "End after this many records; without it the consumer runs until it is interrupted.",
        "num_messages",
        INTEGER,
    ),
    Option("timeout-ms", "End when no record is received for this many milliseconds.", "timeout_ms", LONG),
    Option("skip-message-on-error", "Continue after a record that cannot be formatted."),
    BOOTSTRAP_SERVER,
    ZOOKEEPER,
    *DESERIALIZER_OPTIONS,
    Option("enable-systest-events", "Print shutdown_complete at the end."),
    Option(
        "isolation-level",
        "read_committed leaves out records of aborted and open transactions, read_uncommitted prints all.",
        "",
        default="read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
    ),
    Option("group", "The group to read in; by default a new group.", "consumer group id"),
    JSON,
)
TOOL = Tool(
    name="console-consumer",
    description="This tool helps to read data from Kafka topics and outputs it to standard output.",
    run=run,
    options=OPTIONS,
    examples=(
        Example(
            "All records of a topic, then new ones",
            "--bootstrap-server localhost:9092 --topic greetings --from-beginning",
        ),
        Example(
            "Ten records with key, partition, offset and time",
            "--bootstrap-server localhost:9092 --topic prices --from-beginning --max-messages 10 "
            "--formatter-property print.key=true --formatter-property print.partition=true "
            "--formatter-property print.offset=true --formatter-property print.timestamp=true",
        ),
        Example(
            "The offsets that groups have committed",
            "--bootstrap-server localhost:9092 --topic __consumer_offsets --from-beginning "
            "--formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
        ),
        Example(
            "One JSON object per line, for another program",
            "--bootstrap-server localhost:9092 --topic prices --from-beginning --timeout-ms 2000 --json",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
