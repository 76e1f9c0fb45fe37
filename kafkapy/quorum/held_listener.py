"""A queue of metadata changes for a broker that starts and cannot apply them yet."""

from __future__ import annotations

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.quorum.controller_loop import MetadataListener


class HeldListener:
    """Passes changes on to another listener, in order, but only after `release`. Quorum thread only."""

    def __init__(self, listener: MetadataListener) -> None:
        self._listener = listener
        self._held: list[tuple[MetadataDelta, MetadataImage]] | None = []

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Is called for each change, in log order."""
        if self._held is None:
            self._listener.on_metadata(delta, image)
        else:
            self._held.append((delta, image))

    def release(self) -> None:
        """Passes on the changes that were held back, and every later change at once."""
        held, self._held = self._held or [], None
        for delta, image in held:
            self._listener.on_metadata(delta, image)
