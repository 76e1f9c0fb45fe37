"""Warns before the process runs out of file descriptors.

Without a free descriptor new connections wait, and log directories go offline.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

logger = logging.getLogger("kafka.server.KafkaServer")

CHECK_INTERVAL_MS = 10_000
# A check above the first share of the limit warns. It warns again only after a check below the second share.
HIGH_SHARE, LOW_SHARE = 0.8, 0.7


def lowest_free_descriptor() -> int:
    """Returns the lowest number that no open file descriptor of this process has.

    At least this number of files is open, because descriptors are numbered from 0 on. Raises OSError with EMFILE if no
    descriptor is left.
    """
    descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(descriptor)
    return descriptor


class DescriptorWatch:
    """Compares the number of open files with `limit`, and warns. Used by one thread at a time."""

    def __init__(self, limit: int, lowest_free: Callable[[], int] = lowest_free_descriptor) -> None:
        self._limit = limit
        self._lowest_free = lowest_free
        self._warned = False

    def warn_at_start(self, partitions: int) -> None:
        """Warns, when the broker starts, if the number of partitions is close to or above the limit of open files.

        Each partition in use needs at least one file.
        """
        if partitions > HIGH_SHARE * self._limit:
            logger.warning(
                "At most %d files may be open in this process, and there are %d partitions: raise the limit of open "
                "files (LimitNOFILE of the service, ulimit -Hn)", self._limit, partitions,
            )  # fmt: skip

    def check(self) -> None:
        try:
            used = self._lowest_free()
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            used = self._limit
        if used < LOW_SHARE * self._limit:
            self._warned = False
        elif used > HIGH_SHARE * self._limit and not self._warned:
            self._warned = True
            logger.warning(
                "%d of at most %d files are open: when none is left connections are not accepted, and a log directory "
                "whose segment cannot be opened goes offline; raise the limit of open files (LimitNOFILE of the "
                "service, ulimit -Hn)", used, self._limit,
            )  # fmt: skip
