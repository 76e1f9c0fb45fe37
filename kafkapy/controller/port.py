"""The interface through which other packages use the controller of this process."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from kafkapy.controller.result import Operation, Response
from kafkapy.metadata.image import MetadataImage


class Controller(Protocol):
    """The controller of this process. Any thread may call its methods."""

    @property
    def is_active(self) -> bool:
        """True if this node is the active controller of its cluster."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The newest committed image. The listeners of images in this process may not have applied it yet."""
        ...

    def submit(self, operation: Operation[Response]) -> Future[Response]:
        """Calls `operation(image)` on the thread of the controller (the quorum thread), and commits the records that it
        returns. `image` is the newest state of the metadata. The Future gets the response once the records are
        committed and all listeners of this process have been notified.

        The Future fails with the ApiError that the operation raises, or with NOT_CONTROLLER if this node is not the
        active controller.
        """
        ...
