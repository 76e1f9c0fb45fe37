"""The strategies of `kafka-consumer-groups --reset-offsets`, which choose the new offsets of a group."""

from __future__ import annotations

import csv
import logging
import re
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

from kafkapy.client.admin import EARLIEST, LATEST, Admin
from kafkapy.errors import ApiError
from kafkapy.tools.group_description import print_table
from kafkapy.tools.option import Arguments, ToolError, UsageError
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.tools.offset_reset")

STRATEGIES = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
    "from-file",
    "to-current",
)
_PARSE_EXCEPTION = "java.text.ParseException: "
Plan = dict[TopicPartition, int]
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


def parse_datetime(text: str) -> int:
    """Returns the ms since 1970 of a time such as `YYYY-MM-DDThh:mm:ss.sss`, which is UTC if it names no zone.

    Raises ToolError for another text.
    """
    if "T" not in text:
        what = "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        raise ToolError(_PARSE_EXCEPTION + what)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(f"{_PARSE_EXCEPTION}{error}") from error
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration(text: str) -> int:
    """Returns the ms of a duration such as `PnDTnHnMnS`. Raises ToolError for another text."""
    matched = _DURATION.fullmatch(text)
    if matched is None or not any(matched.group(2, 4, 5, 6)):
        raise ToolError("Text cannot be parsed to a Duration")
    days, hours, minutes, seconds = (float(each or 0) for each in matched.group(2, 4, 5, 6))
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    return int(-total if matched[1] == "-" else total)


def parse_partitions(admin: Admin, words: Collection[str]) -> list[TopicPartition]:
    """Returns the partitions that words such as `topic` (all its partitions) and `topic:0,1` name.

    Raises UsageError for another form, and ToolError for a topic that does not exist.
    """
    found: list[TopicPartition] = []
    whole: list[str] = []
    for word in words:
        topic, colon, numbers = word.partition(":")
        if not colon:
            whole.append(word)
            continue
        if not topic or not numbers or ":" in numbers:
            raise UsageError(f"Invalid topic arg '{word}', expected topic name and partitions")
        for number in numbers.split(","):
            if not (number.isascii() and number.isdigit()):
                raise UsageError(f"Invalid partition '{number}' specified in topic arg '{word}''")
            found.append(TopicPartition(topic, int(number)))
    try:
        topics = admin.describe_topics(whole).check() if whole else {}
    except ApiError as error:
        raise ToolError(error.message) from error
    for topic, described in topics.items():
        found += [TopicPartition(topic, each.partition) for each in described.partitions]
    return found


def read_plans(path: str, group: str | None) -> dict[str, Plan]:
    """Returns the new offsets of each group from a CSV file. Its columns are group, topic, partition and offset.

    If `group` is not None, a line may lack the first column; such a line concerns `group`. Raises ToolError if the file
    cannot be read or is malformed.
    """
    plans: dict[str, Plan] = {}
    try:
        with Path(path).open(newline="") as file:
            for row in csv.reader(file):
                if not row:
                    continue
                name, topic, number, offset = [group, *row] if group is not None and len(row) == 3 else row
                plans.setdefault(str(name), {})[TopicPartition(str(topic), int(str(number)))] = int(str(offset))
    except OSError as error:
        raise ToolError(f"{error.strerror}: {path}") from error
    except ValueError as error:
        raise ToolError(f"{path} is not a list of topic, partition and offset: {error}") from error
    return plans


def print_plans(plans: Mapping[str, Plan]) -> None:
    """Prints the new offsets of each group as a table."""
    print_table(
        [
            ("GROUP", 15, lambda row: row[0]),
            ("TOPIC", 15, lambda row: row[1]),
            ("PARTITION", -10, lambda row: row[2]),
            ("NEW-OFFSET", 0, lambda row: row[3]),
        ],
        plan_rows(plans),
    )


def plan_rows(plans: Mapping[str, Plan]) -> list[tuple[str, str, int, int]]:
    """Returns group, topic, partition and new offset of each partition."""
    return [(group, *partition, offset) for group, plan in plans.items() for partition, offset in sorted(plan.items())]


class OffsetReset:
    """Chooses new offsets by the strategy that the arguments name. Not thread-safe."""

    def __init__(self, admin: Admin, arguments: Arguments) -> None:
        self._admin = admin
        self._arguments = arguments

    def prepare(
        self, group: str, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> Plan:
        """Returns the new offset of each partition by the strategy that the arguments name.

        Raises UsageError without a strategy, and ToolError if the offsets cannot be determined.
        """
        arguments = self._arguments

        def has(name: str) -> bool:
            return arguments.declares(name) and arguments.has(name)

        if partitions:
            self._ensure_exist(partitions)
        if has("to-offset"):
            return self._within_range(dict.fromkeys(partitions, arguments["to-offset"]))
        if has("to-earliest"):
            return self._ends(partitions, EARLIEST)
        if has("to-latest"):
            return self._ends(partitions, LATEST)
        if has("shift-by"):
            return self._within_range(self._shifted(partitions, committed))
        if has("to-datetime"):
            return self._at_time(partitions, parse_datetime(arguments["to-datetime"]))
        if has("by-duration"):
            return self._at_time(partitions, int(time.time() * 1000) - parse_duration(arguments["by-duration"]))
        if has("from-file"):
            return self._from_file(group)
        if has("to-current"):
            known = {partition: committed[partition] for partition in partitions if partition in committed}
            return {**known, **self._ends([partition for partition in partitions if partition not in known], LATEST)}
        scenarios = ", ".join(f"[{name}]" for name in STRATEGIES)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")

    def _ensure_exist(self, partitions: Collection[TopicPartition]) -> None:
        described = self._admin.describe_topics({partition.topic for partition in partitions}).values
        leaders = {
            TopicPartition(topic, each.partition): each.leader
            for topic, description in described.items()
            for each in description.partitions
        }
        missing = [partition for partition in partitions if partition not in leaders]
        if missing:
            raise ToolError(f'The partitions "{",".join(map(str, missing))}" do not exist')
        lost = [partition for partition in partitions if leaders[partition] < 0]
        if lost:
            raise ToolError(f'The partitions "{",".join(map(str, lost))}" have no leader')

    def _ends(self, partitions: Collection[TopicPartition], end: int) -> Plan:
        plan: Plan = {}
        if not partitions:
            return plan
        found = self._admin.list_offsets(dict.fromkeys(partitions, end))
        for partition in partitions:
            try:
                plan[partition] = found[partition].offset
            except ApiError:
                name = "ending" if end == LATEST else "starting"
                raise UsageError(f"Error getting {name} offset of topic partition: {partition}") from None
        return plan

    def _shifted(self, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]) -> Plan:
        for partition in partitions:
            if partition not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {partition} since there is no current committed offset"
                )
        return {partition: committed[partition] + self._arguments["shift-by"] for partition in partitions}

    def _at_time(self, partitions: Collection[TopicPartition], timestamp: int) -> Plan:
        found = self._admin.list_offsets(dict.fromkeys(partitions, timestamp))
        plan: Plan = {}
        late: list[TopicPartition] = []
        for partition in partitions:
            offset = found[partition].offset
            if offset >= 0:
                plan[partition] = offset
            else:
                late.append(partition)
                print(
                    f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. Falling back to "
                    "latest known offset."
                )
        return {**plan, **self._ends(late, LATEST)}

    def _from_file(self, group: str) -> Plan:
        groups = self._arguments.values("group")
        plan = read_plans(self._arguments["from-file"], groups[0] if len(groups) == 1 else None).get(group)
        if plan is None:
            print(f"\nError: No reset plan for group {group} found")
            return {}
        self._ensure_exist(plan)
        return self._within_range(plan)

    def _within_range(self, wanted: Plan) -> Plan:
        """Returns `wanted` with each offset outside of its partition replaced by the nearer end of the partition."""
        first, end = self._ends(list(wanted), EARLIEST), self._ends(list(wanted), LATEST)
        plan: Plan = {}
        for partition, offset in wanted.items():
            plan[partition] = nearest = min(max(offset, first[partition]), end[partition])
            if nearest != offset:
                log.warning(
                    "New offset (%d) is %s offset for topic partition %s. Value will be set to %d",
                    *(offset, "higher than latest" if offset > nearest else "lower than earliest", partition, nearest),
                )
        return plan
