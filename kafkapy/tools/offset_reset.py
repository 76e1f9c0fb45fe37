"""Where the offsets of groups are to be: the strategies of `kafka-consumer-groups --reset-offsets`."""

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
    """`YYYY-MM-DDThh:mm:ss.sss`, with or without a zone (UTC), as ms since 1970.  ToolError."""
    if "T" not in text:
        what = "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        raise ToolError(_PARSE_EXCEPTION + what)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ToolError(f"{_PARSE_EXCEPTION}{error}") from error
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration(text: str) -> int:
    """`PnDTnHnMnS` in ms.  ToolError."""
    matched = _DURATION.fullmatch(text)
    if matched is None or not any(matched.group(2, 4, 5, 6)):
        raise ToolError("Text cannot be parsed to a Duration")
    days, hours, minutes, seconds = (float(each or 0) for each in matched.group(2, 4, 5, 6))
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    return int(-total if matched[1] == "-" else total)


def parse_partitions(admin: Admin, words: Collection[str]) -> list[TopicPartition]:
    """`topic` and `topic:0,1`: partitions, all of a topic without numbers.  UsageError, ToolError."""
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
    """The plans of groups in a CSV file: topic, partition, offset; with the group in front if they are several."""
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
        raise ToolError(f"{path} is no list of topic, partition and offset: {error}") from error
    return plans


class OffsetReset:
    """Prepares the new offsets by the strategy that the arguments name.  Not thread-safe."""

    def __init__(self, admin: Admin, arguments: Arguments) -> None:
        self._admin = admin
        self._arguments = arguments

    def prepare(
        self, group: str, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> Plan:
        """Where each partition goes.  UsageError or ToolError for what cannot be."""
        arguments = self._arguments
        if partitions:
            self._ensure_exist(partitions)
        if arguments.has("to-offset"):
            return self._within_range(dict.fromkeys(partitions, arguments["to-offset"]))
        if arguments.has("to-earliest"):
            return self._ends(partitions, EARLIEST)
        if arguments.has("to-latest"):
            return self._ends(partitions, LATEST)
        if arguments.has("shift-by"):
            return self._within_range(self._shifted(partitions, committed))
        if arguments.has("to-datetime"):
            return self._at_time(partitions, parse_datetime(arguments["to-datetime"]))
        if arguments.has("by-duration"):
            return self._at_time(partitions, int(time.time() * 1000) - parse_duration(arguments["by-duration"]))
        if arguments.has("from-file"):
            return self._from_file(group)
        if arguments.has("to-current"):
            known = {where: committed[where] for where in partitions if where in committed}
            return {**known, **self._ends([where for where in partitions if where not in known], LATEST)}
        scenarios = ", ".join(f"[{name}]" for name in STRATEGIES)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")

    def _ensure_exist(self, partitions: Collection[TopicPartition]) -> None:
        described = self._admin.describe_topics({where.topic for where in partitions}).values
        leaders = {
            TopicPartition(topic, each.partition): each.leader
            for topic, told in described.items()
            for each in told.partitions
        }
        missing = [where for where in partitions if where not in leaders]
        if missing:
            raise ToolError(f'The partitions "{",".join(map(str, missing))}" do not exist')
        lost = [where for where in partitions if leaders[where] < 0]
        if lost:
            raise ToolError(f'The partitions "{",".join(map(str, lost))}" have no leader')

    def _ends(self, partitions: Collection[TopicPartition], end: int) -> Plan:
        plan: Plan = {}
        if not partitions:
            return plan
        found = self._admin.list_offsets(dict.fromkeys(partitions, end))
        for where in partitions:
            try:
                plan[where] = found[where].offset
            except ApiError:
                name = "ending" if end == LATEST else "starting"
                raise UsageError(f"Error getting {name} offset of topic partition: {where}") from None
        return plan

    def _shifted(self, partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int]) -> Plan:
        for where in partitions:
            if where not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {where} since there is no current committed offset"
                )
        return {where: committed[where] + self._arguments["shift-by"] for where in partitions}

    def _at_time(self, partitions: Collection[TopicPartition], timestamp: int) -> Plan:
        found = self._admin.list_offsets(dict.fromkeys(partitions, timestamp))
        plan: Plan = {}
        late: list[TopicPartition] = []
        for where in partitions:
            offset = found[where].offset
            if offset >= 0:
                plan[where] = offset
            else:
                late.append(where)
                print(
                    f"\nWarn: Partition {where.partition} from topic {where.topic} is empty. Falling back to latest "
                    "known offset."
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
        first, end = self._ends(list(wanted), EARLIEST), self._ends(list(wanted), LATEST)
        plan: Plan = {}
        for where, offset in wanted.items():
            plan[where] = min(max(offset, first[where]), end[where])
            if offset > end[where]:
                what = f"higher than latest offset for topic partition {where}. Value will be set to {end[where]}"
                log.warning("New offset (%d) is %s", offset, what)
            elif offset < first[where]:
                what = f"lower than earliest offset for topic partition {where}. Value will be set to {first[where]}"
                log.warning("New offset (%d) is %s", offset, what)
        return plan
