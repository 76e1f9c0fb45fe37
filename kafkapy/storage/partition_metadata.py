"""`partition.metadata`: the topic id that a partition directory belongs to (KIP-516).

version: 0
topic_id: 71uU50UqS6-gBQoiv4X1cQ        (no final newline)
"""

import os

from kafkapy.storage.filesystem import Filesystem, read_small_file
from kafkapy.types import uuid_from_string, uuid_to_string

FILE_NAME = "partition.metadata"


class MalformedPartitionMetadata(ValueError):
    """A partition.metadata that does not follow the format; the message names the file."""


def read_partition_metadata(directory: str) -> bytes | None:
    """Returns the topic id in a partition directory, or None if the directory has no partition.metadata.

    Raises MalformedPartitionMetadata or OSError.
    """
    path = f"{directory}/{FILE_NAME}"
    try:
        content = read_small_file(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise MalformedPartitionMetadata(f"{path}: {error}") from error
    fields = dict(line.split(":", 1) for line in content.splitlines() if ":" in line)
    try:
        if int(fields["version"]) != 0:
            raise MalformedPartitionMetadata(f"{path}: unknown version {fields['version'].strip()}")
        return uuid_from_string(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise MalformedPartitionMetadata(f"{path}: {error}") from error


def write_partition_metadata(filesystem: Filesystem, directory: str, topic_id: bytes, *, sync: bool = True) -> None:
    """Writes the file. If `sync` is True, its content and name are durable on return. Raises OSError."""
    content = f"version: 0\ntopic_id: {uuid_to_string(topic_id)}"
    filesystem.write_atomically(os.path.join(directory, FILE_NAME), content.encode(), sync=sync)
