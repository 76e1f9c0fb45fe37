"""The action `--delete-offsets` of the tools for consumer groups and streams groups, which deletes committed
offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkapy.client.admin import Admin
from kafkapy.errors import ApiError, Error
from kafkapy.tools.group_description import MISSING, print_table
from kafkapy.tools.java_names import java_text
from kafkapy.tools.offset_reset import parse_partitions
from kafkapy.types import TopicPartition

# Errors of single partitions, which the table shows.
PARTITION_ERRORS = (
    Error.GROUP_SUBSCRIBED_TO_TOPIC,
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
)
Outcomes = dict[TopicPartition, ApiError | None]


def existing_partitions(admin: Admin, words: Sequence[str], outcomes: Outcomes) -> list[TopicPartition]:
    """Returns the partitions that words such as `topic` and `topic:0,1` name.

    Topics that do not exist are left out, and their errors are added to `outcomes`, with the partition number -1.
    """
    whole = [word for word in words if ":" not in word]
    missing = admin.describe_topics(whole).errors if whole else {}
    outcomes.update({TopicPartition(topic, -1): error for topic, error in missing.items()})
    return parse_partitions(admin, [word for word in words if word not in missing])


def delete_committed(
    admin: Admin, group: str, partitions: list[TopicPartition], outcomes: Outcomes, timeout: float
) -> ApiError | None:
    """Deletes the group's committed offsets of the partitions; returns the first error, or None if all were deleted.

    Adds an entry for each partition to `outcomes`: None if its offset was deleted, otherwise the error. `timeout` is in
    seconds.
    """
    try:
        results = admin.delete_group_offsets(group, partitions, timeout=timeout)
    except ApiError as error:
        outcomes.update(dict.fromkeys(partitions, error))
        return error
    outcomes.update(results.values)
    outcomes.update(results.errors)
    return next(iter(results.errors.values()), None)


def print_outcomes(rows: Iterable[tuple[TopicPartition, ApiError | None]]) -> None:
    """Prints a table of partitions and the outcome of the deletion for each."""
    print_table(
        [
            ("TOPIC", 15, lambda row: row[0].topic),
            ("PARTITION", -10, lambda row: row[0].partition if row[0].partition >= 0 else MISSING),
            ("STATUS", -15, lambda row: "Successful" if row[1] is None else f"Error: {java_text(row[1])}"),
        ],
        list(rows),
    )
