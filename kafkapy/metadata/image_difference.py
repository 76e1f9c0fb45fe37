"""Computes the delta (the changes) between two images, which are the cluster's metadata at two offsets.

A node that loads a snapshot has no records of the changes. It notifies its metadata listeners with the computed delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage

Key = TypeVar("Key")


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """Returns a delta that changes the image `before` to `after`, as if the records between the two had been
    replayed."""
    delta = MetadataDelta(before)
    delta.topics.replace_with(after.topics)
    delta.features = after.features
    delta.brokers = after.brokers
    delta.controllers = after.controllers
    delta.configs = after.configs
    delta.client_quotas = after.client_quotas
    delta.next_producer_id = after.next_producer_id
    delta.acls = after.acls
    delta.scram = after.scram
    delta.delegation_tokens = after.delegation_tokens
    delta.changed_features = _changed(before.features, after.features)
    delta.changed_brokers = _changed(before.brokers, after.brokers)
    delta.changed_configs = _changed(before.configs, after.configs)
    delta.changed_quotas = _changed(before.client_quotas, after.client_quotas)
    return delta


def _changed(before: Mapping[Key, object], after: Mapping[Key, object]) -> set[Key]:
    """Returns the keys that are only in one of the two mappings, or have different values in them."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
