"""Control records of the metadata log that change the voters or kraft.version."""

from __future__ import annotations

from typing import Any

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, VotersRecord
from kafkapy.quorum.metadata_batch import decode_control_batch
from kafkapy.quorum.raft.messages import VoterChange
from kafkapy.quorum.voters import voters_from_record


def voter_changes(batch: RecordBatch) -> list[VoterChange]:
    """Returns the KRaftVersion and KRaftVoters records of a control batch."""
    changes = []
    for offset, message in enumerate(decode_control_batch(batch), batch.base_offset):
        change = control_change(offset, message)
        if change is not None:
            changes.append(change)
    return changes


def control_change(offset: int, message: Any) -> VoterChange | None:
    """Returns the change of voters or kraft.version that a control record makes, None for other records."""
    if isinstance(message, VotersRecord):
        return VoterChange(offset, voters=voters_from_record(message))
    if isinstance(message, KRaftVersionRecord):
        return VoterChange(offset, kraft_version=message.kraft_version)
    return None
