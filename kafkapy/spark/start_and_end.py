"""The start and the end of a query: by name, by offsets or by time. This module has no state and does no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.topic_partitions import parse_numbers
from kafkapy.types import TopicPartition

EARLIEST, LATEST = -2, -1  # in the options' JSON and in ListOffsets


class SpecKind(Enum):
    """The forms in which an option gives the start or the end of a query.

    EARLIEST and LATEST are the ends of the log. OFFSETS and TIMESTAMPS are one number for each partition, TIMESTAMP is
    one timestamp for all partitions.
    """

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMESTAMPS = "timestamps"
    TIMESTAMP = "timestamp"


class OffsetSpec(NamedTuple):
    """The start or the end of a query, as the options give it.

    `numbers` are offsets or timestamps (ms since 1970) by partition; `timestamp` is one timestamp for all partitions.
    If a partition has no record at or after its timestamp, ConfigError is raised if `is_strict` is true, and otherwise
    the partition's end is used.
    """

    kind: SpecKind
    numbers: dict[TopicPartition, int] = {}
    timestamp: int = -1
    is_strict: bool = False


def starting_spec(given: Mapping[str, str], *, is_streaming: bool) -> OffsetSpec:
    """Parses startingTimestamp; if it is not given, startingOffsetsByTimestamp; if neither is given, startingOffsets.

    Without any of these options a stream starts at the latest and a batch at the earliest offset. Raises ConfigError
    for an invalid value.
    """
    strategy = given.get("startingOffsetsByTimestampStrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(f"Option startingOffsetsByTimestampStrategy: {strategy!r} is neither error nor latest")
    by_time = _by_time(given, "startingTimestamp", "startingOffsetsByTimestamp", is_strict=strategy == "error")
    if by_time is not None:
        return by_time
    text = given.get("startingOffsets", "latest" if is_streaming else "earliest")
    spec = _named_or_listed("startingOffsets", text)
    if not is_streaming and (spec.kind is SpecKind.LATEST or LATEST in spec.numbers.values()):
        raise ConfigError("starting offset can't be latest for batch queries on Kafka")
    return spec


def ending_spec(given: Mapping[str, str], *, is_streaming: bool) -> OffsetSpec:
    """Parses endingTimestamp; if it is not given, endingOffsetsByTimestamp; if neither is given, endingOffsets.

    Without any of these options the query ends at the latest offset. Raises ConfigError for an invalid value, and if
    one of the options is given for a stream.
    """
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp") if is_streaming else ():
        if name in given:
            raise ConfigError(f"{name} is not valid in streaming queries")
    by_time = _by_time(given, "endingTimestamp", "endingOffsetsByTimestamp", is_strict=False)
    if by_time is not None:
        return by_time
    spec = _named_or_listed("endingOffsets", given.get("endingOffsets", "latest"))
    if spec.kind is SpecKind.EARLIEST or EARLIEST in spec.numbers.values():
        raise ConfigError("ending offset can't be earliest for batch queries on Kafka")
    return spec


def resolve(
    spec: OffsetSpec,
    partitions: list[TopicPartition],
    look_up: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]],
) -> dict[TopicPartition, int]:
    """Returns the offset of each partition.

    `look_up` finds offsets by timestamps, EARLIEST and LATEST, and returns None for a partition without a record at or
    after its timestamp. Raises ConfigError if the option's partitions are not exactly `partitions`, or if a strict
    timestamp has no record.
    """
    if spec.kind in (SpecKind.EARLIEST, SpecKind.LATEST):
        wanted = dict.fromkeys(partitions, EARLIEST if spec.kind is SpecKind.EARLIEST else LATEST)
        return {partition: offset or 0 for partition, offset in look_up(wanted).items()}
    if spec.kind is SpecKind.TIMESTAMP:
        return _by_timestamps(dict.fromkeys(partitions, spec.timestamp), spec.is_strict, look_up)
    _check_complete(spec, partitions)
    if spec.kind is SpecKind.TIMESTAMPS:
        return _by_timestamps({partition: spec.numbers[partition] for partition in partitions}, spec.is_strict, look_up)
    marks = {partition: spec.numbers[partition] for partition in partitions if spec.numbers[partition] < 0}
    found = look_up(marks) if marks else {}
    return {
        partition: (found.get(partition) or 0) if partition in marks else spec.numbers[partition]
        for partition in partitions
    }


def _by_timestamps(
    wanted: Mapping[TopicPartition, int],
    is_strict: bool,
    look_up: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]],
) -> dict[TopicPartition, int]:
    found = dict(look_up(wanted))
    missing = [partition for partition in wanted if found.get(partition) is None]
    if missing and is_strict:
        partition = missing[0]
        raise ConfigError(
            f"No offset matched from request of topic-partition {partition} and timestamp {wanted[partition]}; "
            "startingOffsetsByTimestampStrategy=latest begins at the end instead"
        )
    ends = look_up(dict.fromkeys(missing, LATEST)) if missing else {}
    return {partition: (ends.get(partition) if partition in missing else found[partition]) or 0 for partition in wanted}


def _check_complete(spec: OffsetSpec, partitions: list[TopicPartition]) -> None:
    if set(spec.numbers) != set(partitions):
        raise ConfigError(
            "If startingOffsets or endingOffsets contain specific offsets, you must specify all TopicPartitions. "
            "Use -1 for latest, -2 for earliest. "
            f"Specified: {_shown(spec.numbers)} Assigned: {_shown(partitions)}"
        )


def _shown(partitions: Mapping[TopicPartition, int] | list[TopicPartition]) -> str:
    return "{" + ", ".join(str(each) for each in sorted(partitions)) + "}"


def _by_time(given: Mapping[str, str], for_all: str, for_each: str, *, is_strict: bool) -> OffsetSpec | None:
    if for_all in given:
        text = given[for_all].strip()
        if not is_number(text):
            raise ConfigError(f"Option {for_all}: {text!r} is not a number of milliseconds since 1970")
        return OffsetSpec(SpecKind.TIMESTAMP, timestamp=int(text), is_strict=is_strict)
    if for_each not in given:
        return None
    numbers = parse_numbers(for_each, given[for_each])
    if any(number < 0 for number in numbers.values()):
        raise ConfigError(f"Option {for_each}: a timestamp is negative")
    return OffsetSpec(SpecKind.TIMESTAMPS, numbers, is_strict=is_strict)


def _named_or_listed(name: str, text: str) -> OffsetSpec:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return OffsetSpec(SpecKind(word))
    numbers = parse_numbers(name, text)
    if any(number < EARLIEST for number in numbers.values()):
        raise ConfigError(f"Option {name}: an offset is below -2")
    return OffsetSpec(SpecKind.OFFSETS, numbers)
