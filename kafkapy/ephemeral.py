"""The environment of `kafkapy broker start --ephemeral`: a temporary directory and a random port.

Such a broker serves the tests of one program, and stops when its standard input ends. It prints only its port to
standard output, and its directory is removed when it stops.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Internal topics have one partition, because each partition takes a directory and time when the first group or
# transaction begins.
_SETTINGS = {
    "listeners": "PLAINTEXT://localhost:0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@contextmanager
def ephemeral_settings() -> Iterator[dict[str, str]]:
    """Yields the configuration of a broker with a new log directory below `$TMPDIR`; the directory is removed when the
    context ends."""
    # Other brokers do without these modules and the compression libraries that they load, a megabyte in all.
    import shutil
    import tempfile

    directory = tempfile.mkdtemp(prefix="kafkapy-")
    try:
        yield {**_SETTINGS, "log.dirs": directory}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def call_at_end_of_input(callback: Callable[[], None], descriptor: int = 0) -> None:
    """Calls `callback` on another thread when the file `descriptor`, by default standard input, has reached its end.

    The end of a pipe is reached when the process that writes to it has ended, even by SIGKILL.
    """

    def wait() -> None:
        try:
            while os.read(descriptor, 4096):
                pass
        except OSError:
            pass  # the input was closed
        callback()

    threading.Thread(target=wait, name="end-of-input", daemon=True).start()
