"""The options of the data source, with the names and meanings of Spark's own Kafka source, and their validation.

This module uses neither Spark nor a broker. Names are case-insensitive, as all names of Spark's options are. An unknown
name, also below `kafka.`, is refused with the nearest known one: a misspelt option that is ignored would lead to
records that are missing or read twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.keys import client_security
from kafkapy.config.row import Row
from kafkapy.config.value import parse_value
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.start_and_end import OffsetSpec, ending_spec, starting_spec
from kafkapy.spark.topic_partitions import parse_partitions
from kafkapy.types import TopicPartition

READ_NAMES = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "pushFilters",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "checkpointOwner",
    "groupIdPrefix",
)
WRITE_NAMES = ("topic",)
TRANSACTIONAL_ID = "transactional.id"  # a producer's key; without it the sink writes at least once
# Options that Spark itself passes to every source and sink.
_SPARKS_OWN = frozenset(("checkpointlocation", "queryname", "outputmode"))
_KNOWN = {name.lower(): name for name in (*READ_NAMES, *WRITE_NAMES)}
_CLIENT_KEYS = {**ADMIN_ROWS, **PRODUCER_ROWS, **CONSUMER_ROWS}
# Keys of TLS and SASL, which our client does not support: a query with them must not continue unencrypted.
_SECURITY_KEYS = frozenset(row.name for row in client_security.ROWS if not row.has_effect)
_SECRET_KEYS = frozenset(row.name for row in client_security.ROWS if row.sensitive)
_REFUSED_READING = {
    "auto.offset.reset": "the option startingOffsets sets the start, and Spark stores the position",
    "key.deserializer": "keys are bytes; use the DataFrame's operations",
    "value.deserializer": "values are bytes; use the DataFrame's operations",
    "enable.auto.commit": "Spark stores the offsets in its checkpoint",
    "interceptor.classes": "records are decoded in columns, not one by one",
}
_REFUSED_WRITING = {
    "key.serializer": "keys are written as they are",
    "value.serializer": "values are written as they are",
}
# One fetch returns enough for several Arrow batches.
_FETCH_BYTES = str(8 << 20)
# A task writes much at once. With its default of 16 KiB, the client needs nearly twice the processor time for that.
_BATCH_BYTES = str(128 << 10)
_DEFAULT_MAX_TRIGGER_DELAY = "15m"
_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Selection(NamedTuple):
    """The partitions to read: exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def may_have(self, partition: TopicPartition) -> bool:
        """Returns whether the partition is selected if it exists."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition.topic) is not None
        return partition.topic in self.topics or partition in self.partitions


class ClientProperties(dict[str, str]):
    """The properties of a Kafka client. Its representation hides passwords, keys and certificates."""

    def __repr__(self) -> str:
        return repr({key: "[hidden]" if key in _SECRET_KEYS else value for key, value in self.items()})


class ReadOptions(NamedTuple):
    """The options of a reader. The object does not change, and is pickled for the executors."""

    properties: ClientProperties
    selection: Selection
    starting: OffsetSpec
    ending: OffsetSpec
    fail_on_data_loss: bool
    include_headers: bool
    push_filters: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    poll_timeout_ms: int
    retries: int
    retry_interval_ms: int
    checkpoint_owner: str  # empty without the option


class WriteOptions(NamedTuple):
    """The options of a writer. The object does not change, and is pickled for the executors.

    If `topic` is None, each row names its topic in the column `topic`.
    """

    properties: ClientProperties
    topic: str | None


def read_options(options: Mapping[str, str], *, is_streaming: bool) -> ReadOptions:
    """Parses the options of a batch or streaming reader.

    Raises ConfigError for an option that is unknown, invalid, or contradicts another.
    """
    given = _by_name(options)
    reader = _Values(given)
    properties = _client_properties(given, _REFUSED_READING, CONSUMER_ROWS)
    own = {"fetch.max.bytes": _FETCH_BYTES, "max.partition.fetch.bytes": _FETCH_BYTES}
    properties = ClientProperties({**own, **properties})
    least, most = reader.count("minOffsetsPerTrigger"), reader.count("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigError(f"The value of minOffsetsPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})")
    return ReadOptions(
        properties=properties,
        selection=_selection(given),
        starting=starting_spec(given, is_streaming=is_streaming),
        ending=ending_spec(given, is_streaming=is_streaming),
        fail_on_data_loss=reader.flag("failOnDataLoss", True),
        include_headers=reader.flag("includeHeaders", False),
        push_filters=reader.flag("pushFilters", False),
        min_partitions=reader.count("minPartitions"),
        max_records_per_partition=reader.count("maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=milliseconds("maxTriggerDelay", given.get("maxTriggerDelay", _DEFAULT_MAX_TRIGGER_DELAY)),
        poll_timeout_ms=reader.number("kafkaConsumer.pollTimeoutMs", 120_000),
        retries=reader.number("fetchOffset.numRetries", 3),
        retry_interval_ms=reader.number("fetchOffset.retryIntervalMs", 10),
        checkpoint_owner=given.get("checkpointOwner", "").strip(),
    )


def includes_headers(options: Mapping[str, str]) -> bool:
    """Returns the option includeHeaders, the only option that the schema depends on.

    Raises ConfigError if any option is wrong.
    """
    return _Values(_by_name(options)).flag("includeHeaders", False)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parses the options of a batch or streaming writer.

    Raises ConfigError for an option that is unknown or invalid.
    """
    given = _by_name(options)
    properties = _client_properties(given, _REFUSED_WRITING, PRODUCER_ROWS)
    if "buffer.memory" not in properties:  # which limits the size of batches too
        properties = ClientProperties({"batch.size": _BATCH_BYTES, **properties})
    return WriteOptions(properties=properties, topic=given.get("topic"))


def milliseconds(name: str, text: str) -> int:
    """Parses a time in Spark's notation (`30s`, `15m`, `100ms`; plain numbers are ms).

    Raises ConfigError, with the option's `name`, for another text.
    """
    found = re.fullmatch(r"(-?\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise ConfigError(f"Option {name}: {text!r} is not a time such as 30s, 15m or 100ms")
    return int(int(found[1]) * _UNITS_MS[found[2] or "ms"])


def _by_name(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options by name in their usual spelling, because the case of names does not matter in Spark. Raises
    ConfigError for an unknown option."""
    given: dict[str, str] = {}
    for written, value in options.items():
        name = written.lower()
        if name in _SPARKS_OWN:
            continue
        if name.startswith("kafka."):
            _check_client_key(name.removeprefix("kafka."))
            given[name] = value
        elif name in _KNOWN:
            given[_KNOWN[name]] = value
        else:
            every = [*_KNOWN.values(), *(f"kafka.{key}" for key in _CLIENT_KEYS)]
            raise ConfigError(f"Unknown option {written!r} of the data source kafkapy{_nearest(written, every)}")
    return given


def _check_client_key(key: str) -> None:
    if key not in _CLIENT_KEYS:
        nearest = _nearest(f"kafka.{key}", [f"kafka.{each}" for each in _CLIENT_KEYS])
        raise ConfigError(f"Unknown option 'kafka.{key}' of the data source kafkapy: no client has that key{nearest}")


def _nearest(written: str, names: list[str]) -> str:
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(written.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def _client_properties(
    given: Mapping[str, str], refused: Mapping[str, str], rows: Mapping[str, Row]
) -> ClientProperties:
    """Returns the client properties among the options: the options kafka.*, without this prefix.

    `given` has all options. `refused` has the keys that the user must not set, each with the reason. `rows` describes
    the keys that the client has; other keys are left out. Raises ConfigError if kafka.bootstrap.servers is missing, for
    a refused key and for a value that the client does not accept.
    """
    properties = {name.removeprefix("kafka."): given[name] for name in given if name.startswith("kafka.")}
    if not properties.get("bootstrap.servers"):
        raise ConfigError("Option 'kafka.bootstrap.servers' must be specified for configuring the data source kafkapy")
    for key, reason in refused.items():
        if key in properties:
            raise ConfigError(f"Kafka option '{key}' is not supported: {reason}")
    chosen = ClientProperties({key: value for key, value in properties.items() if key in rows})
    for key, value in chosen.items():
        parse_value(rows[key], value)
        if key in _SECURITY_KEYS:
            raise ConfigError(f"Kafka option '{key}' is not supported: it has no effect in kafkapy's client")
    return chosen


def _selection(given: Mapping[str, str]) -> Selection:
    names = [name for name in ("subscribe", "subscribePattern", "assign") if name in given]
    if not names:
        raise ConfigError(
            "One of the following options must be specified for the data source kafkapy: assign, subscribe, "
            "subscribePattern"
        )
    if len(names) > 1:
        raise ConfigError(
            "Only one of the following options can be specified for the data source kafkapy: assign, subscribe, "
            f"subscribePattern; given: {', '.join(names)}"
        )
    value = given[names[0]]
    if names[0] == "assign":
        return Selection(partitions=parse_partitions(value))
    if names[0] == "subscribePattern":
        if not value.strip():
            raise ConfigError("Option subscribePattern: the pattern is empty")
        try:
            re.compile(value)
        except re.error as error:
            raise ConfigError(f"Option subscribePattern: {value!r} is not a regular expression ({error})") from None
        return Selection(pattern=value.strip())
    topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not topics:
        raise ConfigError("Option subscribe: no topics to subscribe to")
    return Selection(topics=topics)


class _Values:
    """The options as texts, with a method for each type that parses one of them. The object does not change after its
    construction.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def count(self, name: str, *, least: int = 1) -> int | None:
        text = self._given.get(name)
        if text is None:
            return None
        if not re.fullmatch(r"\d{1,18}", text.strip()) or int(text) < least:
            raise ConfigError(f"Option {name}: {text!r} is not a whole number of at least {least}")
        return int(text)

    def number(self, name: str, default: int) -> int:
        found = self.count(name, least=0)
        return default if found is None else found

    def flag(self, name: str, default: bool) -> bool:
        text = self._given.get(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise ConfigError(f"Option {name}: {text!r} is neither true nor false")
        return text.strip().lower() == "true"
