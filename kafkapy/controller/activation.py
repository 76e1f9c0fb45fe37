"""The records that a new active controller writes first.

They abort a metadata transaction that is still open. In an empty log they also contain the bootstrap records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkapy.controller.settings import MIN_ISR
from kafkapy.metadata import features as levels
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def activation_records(
    image: MetadataImage, bootstrap: Sequence[Any], min_insync_replicas: int, *, in_transaction: bool
) -> list[MessageAndVersion]:
    """Returns the records that a controller writes when it becomes active on `image`.

    The result is empty if the log has features and no open transaction. `bootstrap` contains the messages of
    bootstrap.checkpoint, which are written if the log has no features yet. `in_transaction` is True if the log ends in
    an open metadata transaction (KIP-866), which is aborted.
    """
    records: list[MessageAndVersion] = []
    if in_transaction:
        records.append((AbortTransactionRecord(reason="Controller failover"), 0))
    if not image.features:
        records += _bootstrap_records(bootstrap, min_insync_replicas)
    return records


def _bootstrap_records(bootstrap: Sequence[Any], min_insync_replicas: int) -> list[MessageAndVersion]:
    """Returns the records for an empty log, as one metadata transaction if the metadata.version supports transactions.

    These are the messages in `bootstrap` and, if they enable eligible leader replicas (KIP-966), a record that sets the
    cluster's min.insync.replicas to `min_insync_replicas`.
    """
    found = {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}
    version = found.get(levels.METADATA_VERSION, levels.OLDEST_METADATA_VERSION)
    records: list[MessageAndVersion] = [(message, 0) for message in bootstrap]
    if levels.supports_elr(version) and found.get(levels.ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        minimum = ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name="", name=MIN_ISR, value=str(min_insync_replicas)
        )
        records.append((minimum, 0))
    if levels.supports_transactions(version):
        begin = (BeginTransactionRecord(name="Bootstrap records"), 0)
        return [begin, *records, (EndTransactionRecord(), 0)]
    return records
