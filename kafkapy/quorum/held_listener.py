"""A queue of metadata changes for a broker that starts and cannot apply them yet."""

from __future__ import annotations

from concurrent.futures import Future

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.quorum.controller_loop import MetadataListener


class HeldListener:
    """Queues metadata changes until `release` is called, and passes them, in order, to the listener that the
    constructor has received. Only the quorum thread, which replays the metadata, may use it.
    """

    def __init__(self, listener: MetadataListener) -> None:
        self._listener = listener
        self._held: list[tuple[MetadataDelta, MetadataImage]] | None = []

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> Future[None] | None:
        """Is called for each change, in log order.

        Before `release` was called, queues the change and returns None, as if the change had been applied. Afterwards
        passes the change to the wrapped listener, and returns the result of that listener.
        """
        if self._held is None:
            return self._listener.on_metadata(delta, image)
        self._held.append((delta, image))
        return None

    def release(self) -> list[Future[None]]:
        """Passes the queued changes to the wrapped listener. Later changes are passed to it at once.

        Returns the Futures of the queued changes that the wrapped listener has not applied yet.
        """
        held, self._held = self._held or [], None
        applying = [self._listener.on_metadata(delta, image) for delta, image in held]
        return [future for future in applying if future is not None]
