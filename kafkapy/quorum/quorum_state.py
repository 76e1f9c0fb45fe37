"""The file `quorum-state`: epoch, leader and vote of this node as JSON, in one of two forms.

Static quorums write the form with data_version 0, dynamic quorums the form with data_version 1. Both quorums read both
forms. If the file is missing or unreadable, or if its epoch is below the epoch of the last record of the log, the epoch
of the last record is used.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

from kafkapy.quorum.raft.effects import ElectionState
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import uuid_from_string, uuid_to_string

FILE_NAME = "quorum-state"
logger = logging.getLogger("kafka.raft.FileQuorumStateStore")


def read_election(directory: str) -> ElectionState | None:
    """Returns the content of the file quorum-state, in either of its versions: data_version 0 or 1.

    Returns None if the file is missing. If it cannot be read, logs a warning and returns None. A file of data_version 0
    contains no directory id of the vote.
    """
    path = os.path.join(directory, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            return _parse(json.load(file))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("%s cannot be read (%s); the epoch of the log is used", path, error)
        return None


def _parse(fields: dict[str, Any]) -> ElectionState:
    epoch, leader_id, voted_id = (_integer(fields, name) for name in ("leaderEpoch", "leaderId", "votedId"))
    if epoch < 0:
        raise ValueError(f"leaderEpoch is {epoch}")
    version = _integer(fields, "data_version")
    if version not in (0, 1):
        raise ValueError(f"data_version is {version}; known are 0 and 1")
    if version == 0:
        voters = tuple(_integer(voter, "voterId") for voter in fields.get("currentVoters") or ())
        return ElectionState(epoch, leader_id, None if voted_id < 0 else ReplicaKey(voted_id), voters)
    directory_id = uuid_from_string(fields["votedDirectoryId"])
    return ElectionState(epoch, leader_id, None if voted_id < 0 else ReplicaKey(voted_id, directory_id))


def _integer(fields: dict[str, Any], name: str) -> int:
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, not a number")
    return value


def write_election(filesystem: Filesystem, directory: str, state: ElectionState, *, is_dynamic: bool) -> None:
    """Replaces the file quorum-state with `state`; durable on return. The file has data_version 1 if `is_dynamic` is
    True, otherwise data_version 0. Raises OSError."""
    voted = ReplicaKey(-1) if state.voted is None else state.voted
    fields: dict[str, object]
    if is_dynamic:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.node_id,
            "votedDirectoryId": uuid_to_string(voted.directory_id),
            "data_version": 1,
        }
    else:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.node_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id} for node_id in state.voters],
            "data_version": 0,
        }
    content = json.dumps(fields, separators=(",", ":")).encode()
    filesystem.write_atomically(os.path.join(directory, FILE_NAME), content)
