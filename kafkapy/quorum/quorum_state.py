"""`quorum-state`: the last epoch of this voter, as JSON; one form for static and one for dynamic quorums.

The log has the epoch too: if the file is missing, unreadable or older than the log, the log's epoch counts.
"""

from __future__ import annotations

import json
import logging
import os

from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import ZERO_UUID, uuid_to_string

FILE_NAME = "quorum-state"
logger = logging.getLogger("kafka.raft.FileQuorumStateStore")


def read_quorum_epoch(directory: str) -> int:
    """Returns the leader epoch in quorum-state of either form; -1, with a warning, if the file cannot be read."""
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        epoch = fields["leaderEpoch"]
    except FileNotFoundError:
        return -1
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read (%s); the epoch of the log is used", path, error)
        return -1
    return epoch if isinstance(epoch, int) else -1


def write_quorum_state(filesystem: Filesystem, directory: str, node_id: int, epoch: int, *, dynamic: bool) -> None:
    """Writes that this node leads `epoch`; durable on return. Raises OSError."""
    fields: dict[str, object]
    if dynamic:
        fields = {
            "leaderId": node_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "votedDirectoryId": uuid_to_string(ZERO_UUID),
            "data_version": 1,
        }
    else:
        fields = {
            "clusterId": "",
            "leaderId": node_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id}],
            "data_version": 0,
        }
    content = json.dumps(fields, separators=(",", ":")).encode()
    filesystem.write_atomically(os.path.join(directory, FILE_NAME), content)
