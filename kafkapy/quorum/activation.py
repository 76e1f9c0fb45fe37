"""The first records of an active controller: what its predecessor left open, the features of a new cluster, and its
own registration."""

from __future__ import annotations

import os
from typing import Any

from kafkapy.controller.result import ControllerResult
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import ControllerRegistration
from kafkapy.metadata.image import BROKER_RESOURCE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion, register_controller_record
from kafkapy.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kafkapy.quorum import snapshot as snapshots
from kafkapy.quorum.quorum_settings import QuorumSettings
from kafkapy.types import OffsetAndEpoch

BOOTSTRAP_FILE = "bootstrap.checkpoint"


def activate(
    image: MetadataImage, settings: QuorumSettings, registration: ControllerRegistration, *, in_transaction: bool
) -> ControllerResult[None]:
    """Returns the first records of an epoch in which this node is the controller. Raises OSError, StorageError.

    `in_transaction` says that the log ends inside a metadata transaction. `registration` is this controller's.
    """
    records: list[MessageAndVersion] = []
    if in_transaction:
        records.append((AbortTransactionRecord(reason="Controller failover"), 0))
    version = image.metadata_version
    if not image.features:
        bootstrap, version = _bootstrap_records(settings)
        records += bootstrap
    if levels.supports_controller_registration(version) and not _is_registered(image, registration):
        records.append((register_controller_record(registration), 0))
    return ControllerResult(records, None)


def _is_registered(image: MetadataImage, registration: ControllerRegistration) -> bool:
    found = image.controllers.get(registration.controller_id)
    return found is not None and found.incarnation_id == registration.incarnation_id


def _bootstrap_records(settings: QuorumSettings) -> tuple[list[MessageAndVersion], int]:
    """Returns the features with which the directory was formatted, as one metadata transaction, and the level of
    metadata.version; the newest features if the directory has no bootstrap.checkpoint."""
    path = os.path.join(settings.log_directory, BOOTSTRAP_FILE)
    formatted: list[Any] = [
        FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.BOOTSTRAP_FEATURES
    ]
    if os.path.exists(path):
        formatted = snapshots.read_snapshot(path, OffsetAndEpoch(0, 0)).records
    found = {each.name: each.feature_level for each in formatted if isinstance(each, FeatureLevelRecord)}
    version = found.get(levels.METADATA_VERSION, levels.OLDEST_METADATA_VERSION)
    records: list[MessageAndVersion] = [(message, 0) for message in formatted]
    if levels.supports_elr(version) and found.get(levels.ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        minimum = ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="",
            name="min.insync.replicas",
            value=str(settings.min_insync_replicas),
        )
        records.append((minimum, 0))
    if levels.supports_transactions(version):
        begin = (BeginTransactionRecord(name="Bootstrap records"), 0)
        return [begin, *records, (EndTransactionRecord(), 0)], version
    return records, version
