"""OffsetCommit and OffsetFetch in version 0, which write and read offsets in ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.old_client import ask
from tests.server_process import ServerProcess


def commit(
    server: ServerProcess, group: str, topic: str, offsets: Mapping[int, int], metadata: str = ""
) -> dict[int, Error]:
    """Commits the offsets by partition, and returns the error of each partition."""
    kind = OffsetCommitRequest
    partitions = [
        kind.OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=metadata)
        for number, offset in offsets.items()
    ]
    topics = [kind.OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    answer = ask(server, ApiKey.OFFSET_COMMIT, 0, kind(group_id=group, topics=topics))
    (entry,) = answer.topics
    assert entry.name == topic
    return {each.partition_index: Error.of(each.error_code) for each in entry.partitions}


def fetch(server: ServerProcess, group: str, topic: str, partitions: Sequence[int]) -> dict[int, tuple[int, Error]]:
    """Returns the offset and the error of each partition."""
    kind = OffsetFetchRequest
    topics = [kind.OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))]
    answer = ask(server, ApiKey.OFFSET_FETCH, 0, kind(group_id=group, topics=topics))
    (entry,) = answer.topics
    assert entry.name == topic
    return {each.partition_index: (each.committed_offset, Error.of(each.error_code)) for each in entry.partitions}
