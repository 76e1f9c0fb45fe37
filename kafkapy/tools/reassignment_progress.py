"""The states of reassignments, and of moves between log directories, as `kafka-reassign-partitions --verify` prints
them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkapy.client.admin import Admin, Reassignment, Replica
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.replicas import id_list, replicas_of
from kafkapy.types import TopicPartition


class Directories(NamedTuple):
    """The log directory of a replica, and the log directory to which the replica is being moved.

    `current` is None if the broker reports no such replica, and `future` is None if the replica is not being moved.
    """

    current: str | None
    future: str | None


def current_replicas(admin: Admin, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Returns the broker ids of the replicas of each of the `partitions`; partitions that do not exist are left out."""
    described = admin.describe_topics({partition.topic for partition in partitions}) if partitions else None
    if described is None:
        return {}
    for error in described.errors.values():
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
    found = replicas_of(described.values.values())
    return {partition: found[partition] for partition in partitions if partition in found}


def replica_directories(admin: Admin, replicas: Iterable[Replica]) -> dict[Replica, Directories]:
    """Returns the log directories of the replicas, as their brokers report them."""
    wanted = list(replicas)
    found = dict.fromkeys(wanted, Directories(None, None))
    if not wanted:
        return found
    described = admin.describe_log_dirs({replica.broker for replica in wanted}).check()
    for replica in wanted:
        for path, directory in described[replica.broker].items():
            info = directory.replicas.get(TopicPartition(replica.topic, replica.partition))
            if info is not None:
                known = found[replica]
                found[replica] = known._replace(future=path) if info.is_future else known._replace(current=path)
    return found


def present_directories(admin: Admin, replicas: Mapping[TopicPartition, Sequence[int]]) -> dict[Replica, str]:
    """Returns the path of the current log directory of each replica of the partitions.

    `replicas` has the broker ids of each partition. Replicas on dead brokers are left out, and so are replicas that
    their broker does not report.
    """
    live = {node.node_id for node in admin.describe_cluster().brokers}
    wanted = [Replica(*partition, broker) for partition in replicas for broker in replicas[partition] if broker in live]
    found = replica_directories(admin, wanted)
    return {replica: each.current for replica, each in found.items() if each.current is not None}


def partition_lines(
    targets: Mapping[TopicPartition, Sequence[int]],
    ongoing: Mapping[TopicPartition, Reassignment],
    current: Mapping[TopicPartition, Sequence[int]],
) -> list[str]:
    """Returns a title, and a line with the state of each partition's reassignment, ordered by partition.

    `targets` has the broker ids of the new replicas of the partitions, and `ongoing` the reassignments in progress.
    `current` has the broker ids of the partitions without a reassignment in progress, as they are now; a partition that
    does not exist is missing in it.
    """
    lines = ["Status of partition reassignment:"]
    for partition in sorted(targets):
        target, replicas = tuple(targets[partition]), tuple(current.get(partition, ()))
        if partition in ongoing:
            lines.append(f"Reassignment of partition {partition} is still in progress.")
        elif replicas == target:
            lines.append(f"Reassignment of partition {partition} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {partition}, but replica set is {id_list(replicas)} "
                f"rather than {id_list(target)}."
            )
    return lines


def directory_lines(targets: Mapping[Replica, str], found: Mapping[Replica, Directories]) -> list[str]:
    """Returns a line with the state of each move between log directories, ordered by broker and partition.

    `targets` has the path to which each replica is to be moved, and `found` the current and the future directory of
    each replica, as its broker reports them.
    """
    return [
        _directory_line(replica, targets[replica], found[replica])
        for replica in sorted(targets, key=lambda each: (each.broker, each.topic, each.partition))
    ]


def is_moving(directories: Directories) -> bool:
    """Returns whether the replica is being copied to another log directory."""
    return directories.current is not None and directories.future is not None


def _directory_line(replica: Replica, target: str, found: Directories) -> str:
    partition, broker = f"{replica.topic}-{replica.partition}", replica.broker
    if found.current is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker {broker}. There is likely an offline "
            "log directory on the broker."
        )
    if found.future is not None and found.future != target:
        return f"Partition {partition} on broker {broker} is being moved to log dir {found.future} instead of {target}."
    if found.future is not None:
        return f"Reassignment of replica {replica_name(replica)} is still in progress."
    if found.current != target:
        return f"Partition {partition} on broker {broker} is not being moved from log dir {found.current} to {target}."
    return f"Reassignment of replica {replica_name(replica)} completed successfully."


def ongoing_lines(ongoing: Mapping[TopicPartition, Reassignment]) -> list[str]:
    """Returns the lines that `--list` prints: a title and a line for each reassignment in progress.

    If there is none, returns a single line that says so.
    """
    if not ongoing:
        return ["No partition reassignments found."]
    lines = ["Current partition reassignments:"]
    for partition in sorted(ongoing):
        each = ongoing[partition]
        adding = f" adding: {id_list(each.adding)}." if each.adding else ""
        removing = f" removing: {id_list(each.removing)}." if each.removing else ""
        lines.append(f"{partition}: replicas: {id_list(each.replicas)}.{adding}{removing}")
    return lines


def replica_name(replica: Replica) -> str:
    """Returns the name of a replica in Kafka's form, TOPIC-PARTITION-BROKER."""
    return f"{replica.topic}-{replica.partition}-{replica.broker}"


def error_lines(errors: Mapping[TopicPartition, ApiError]) -> list[str]:
    """Returns a line with the error of each partition, in the order of the partitions."""
    return [f"{partition}: {errors[partition].message}" for partition in sorted(errors)]
