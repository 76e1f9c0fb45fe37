"""Replays the committed records of the metadata log on a node that is not the active controller, and computes images
(states of the metadata) from them."""

from __future__ import annotations

from kafkapy._core.bytes.record_batch import iterate_batches
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_difference import delta_between
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.quorum.metadata_batch import decode_metadata_batch


class CommittedRecords:
    """The newest image of committed records, and the changes since the last call of `take`. Not thread-safe.

    Invariant: every batch before `next_offset` was replayed. While the replayed records end inside a metadata
    transaction, `take` returns None, so that no image contains an incomplete transaction.
    """

    def __init__(self, image: MetadataImage, loader: MetadataLoader | None = None) -> None:
        """Creates the state with `image` as its newest image.

        `loader` replays the records after `image`. It must be given if a metadata transaction is open at `image`: the
        loader has already replayed the first records of the transaction.
        """
        self.image = image
        self.next_offset = image.offset
        self._epoch = image.epoch
        self._loader = loader or MetadataLoader(image)

    @property
    def in_transaction(self) -> bool:
        """True if the replayed records end inside a metadata transaction."""
        return self._loader.in_transaction

    def replay(self, content: bytes, end_offset: int) -> None:
        """Replays the batches in `content`, whose first batch begins at `next_offset`, up to `end_offset` (exclusive).

        Raises ValueError for records that this release does not know.
        """
        for batch in iterate_batches(content):
            if batch.base_offset >= end_offset:
                break
            assert batch.base_offset <= self.next_offset < batch.next_offset <= end_offset, "a batch is missing"
            if not batch.is_control:
                for record in decode_metadata_batch(batch):
                    self._loader.replay(record)
            self.next_offset = batch.next_offset
            self._epoch = batch.partition_leader_epoch

    def take(self) -> tuple[MetadataDelta, MetadataImage] | None:
        """Returns the changes since the last call, and the image after them. Returns None if nothing has changed, or
        while the replayed records end inside a metadata transaction."""
        if self.next_offset == self.image.offset or self.in_transaction:
            return None
        delta = self._loader.delta
        self.image = delta.to_image(self.next_offset, self._epoch)
        self._loader = MetadataLoader(self.image)
        return delta, self.image

    def load_snapshot(self, image: MetadataImage) -> tuple[MetadataDelta, MetadataImage]:
        """Replaces the newest image with `image`, the image of a snapshot.

        Returns the changes from the previous newest image to `image`, and `image` itself.
        """
        assert image.offset >= self.image.offset, "a snapshot before the newest image"
        delta = delta_between(self.image, image)
        self.continue_on(image)
        return delta, image

    def continue_on(self, image: MetadataImage) -> None:
        """Replaces the newest image with the committed `image`, and discards the changes that `take` has not returned
        yet.

        The next batch to replay begins at the offset of `image`.
        """
        self.image = image
        self.next_offset = image.offset
        self._epoch = image.epoch
        self._loader = MetadataLoader(image)
