"""The records that a new active controller appends first; in a new cluster they contain those of
bootstrap.checkpoint."""

from __future__ import annotations

import os
from typing import Any

from kafkapy.controller.activation import activation_records
from kafkapy.controller.result import ControllerResult
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import ControllerRegistration
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import register_controller_record
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord
from kafkapy.quorum import snapshot as snapshots
from kafkapy.quorum.quorum_settings import QuorumSettings
from kafkapy.types import OffsetAndEpoch

BOOTSTRAP_FILE = "bootstrap.checkpoint"


def activate(
    image: MetadataImage, settings: QuorumSettings, registration: ControllerRegistration, *, in_transaction: bool
) -> ControllerResult[None]:
    """Returns the records that this node appends first when it has become the active controller. In a new cluster they
    include the records of bootstrap.checkpoint.

    `in_transaction` is True if the log ends inside a metadata transaction. `registration` is the registration of this
    controller. Raises OSError if bootstrap.checkpoint cannot be read, and StorageError if the file is damaged.
    """
    bootstrap = [] if image.features else _bootstrap_features(settings)
    records = activation_records(image, bootstrap, settings.min_insync_replicas, in_transaction=in_transaction)
    found = {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}
    version = found.get(levels.METADATA_VERSION, image.metadata_version)
    if levels.supports_controller_registration(version) and not _is_registered(image, registration):
        records.append((register_controller_record(registration), 0))
    return ControllerResult(records, None)


def _is_registered(image: MetadataImage, registration: ControllerRegistration) -> bool:
    found = image.controllers.get(registration.controller_id)
    return found is not None and found.incarnation_id == registration.incarnation_id


def _bootstrap_features(settings: QuorumSettings) -> list[Any]:
    """Returns the records in bootstrap.checkpoint or, if the metadata log directory has no such file, the records of
    the default feature levels."""
    path = os.path.join(settings.log_directory, BOOTSTRAP_FILE)
    if os.path.exists(path):
        return snapshots.read_snapshot(path, OffsetAndEpoch(0, 0)).records
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.BOOTSTRAP_FEATURES]
