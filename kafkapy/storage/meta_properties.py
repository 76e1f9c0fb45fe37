"""`meta.properties`: the ids of the cluster, the node and the directory of a log directory.

Version 1 has `cluster.id`, `node.id` and (since 3.7) `directory.id`. Version 0, with `broker.id`, was used with
ZooKeeper. The file is a Java properties file.
"""

import os

from kafkapy.errors import ConfigError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import uuid_from_string, uuid_to_string

FILE_NAME = "meta.properties"


class MalformedMetaProperties(ConfigError):
    """A meta.properties that cannot be used; the message names the file and the reason."""


class MetaProperties:
    """The content of one meta.properties file. `directory_id` is None if the file has none."""

    __slots__ = ("cluster_id", "directory_id", "node_id", "version")

    def __init__(self, cluster_id: str | None, node_id: int, directory_id: bytes | None, version: int = 1) -> None:
        self.version = version
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.directory_id = directory_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetaProperties) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        directory = None if self.directory_id is None else uuid_to_string(self.directory_id)
        return f"MetaProperties({self.cluster_id!r}, {self.node_id}, {directory!r}, version={self.version})"


def read_meta_properties(directory: str) -> MetaProperties | None:
    """Returns the meta.properties of a log directory, or None if the file does not exist.

    Raises MalformedMetaProperties or OSError.
    """
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            fields = parse_properties(file.read())
    except FileNotFoundError:
        return None
    try:
        version = int(fields.get("version", ""))
        if version not in (0, 1):
            raise MalformedMetaProperties(f"{path}: unknown version {version}")
        node_id = int(fields["node.id" if version else "broker.id"])
        if version == 1 and not fields.get("cluster.id"):
            raise MalformedMetaProperties(f"{path}: no cluster.id")
        directory_id = uuid_from_string(fields["directory.id"]) if "directory.id" in fields else None
    except KeyError as error:
        raise MalformedMetaProperties(f"{path}: no {error.args[0]}") from error
    except ValueError as error:
        raise MalformedMetaProperties(f"{path}: {error}") from error
    return MetaProperties(fields.get("cluster.id"), node_id, directory_id, version)


def write_meta_properties(filesystem: Filesystem, directory: str, properties: MetaProperties) -> None:
    """Writes the file in version 1; durable on return. Raises OSError."""
    lines = [f"node.id={properties.node_id}", "version=1", f"cluster.id={properties.cluster_id}"]
    if properties.directory_id is not None:
        lines.insert(0, f"directory.id={uuid_to_string(properties.directory_id)}")
    content = "\n".join(["#", *lines, ""])
    filesystem.write_atomically(os.path.join(directory, FILE_NAME), content.encode())


def parse_properties(text: str) -> dict[str, str]:
    """Parses `key=value` lines; ignores empty lines and lines that begin with # or !."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!" and "=" in stripped:
            key, value = stripped.split("=", 1)
            fields[key.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    return fields
