"""A watch on the metadata for the only node of a cluster. It reports that a second node has joined the cluster."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage


class GrowthWatch:
    """Calls `on_growth` once, when the cluster has another broker or the quorum another voter. Called as a listener of
    the metadata. Only the quorum thread, which replays the metadata, may use it.
    """

    def __init__(self, node_id: int, is_only_voter: Callable[[], bool], on_growth: Callable[[], None]) -> None:
        self._node_id = node_id
        self._is_only_voter = is_only_voter
        self._on_growth = on_growth
        self._is_alone = True

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.check(image)

    def check(self, image: MetadataImage) -> None:
        """Calls `on_growth` if `image` has another broker or the quorum has another voter. Does nothing if `on_growth`
        has been called before."""
        if self._is_alone and not (self._is_only_voter() and image.brokers.keys() <= {self._node_id}):
            self._is_alone = False
            self._on_growth()
