"""A broker in the test's own process, on a filesystem of the test: like the program, but without signals."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafkapy.broker import Broker
from kafkapy.config import BrokerConfig
from tests.lossy_filesystem import LossyFilesystem, PowerFailure

TIMEOUT_S = 60
NEVER_MS = "3600000"
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:0",
    "offsets.topic.replication.factor": "1",
    "num.io.threads": "2",
    "log.segment.bytes": "1048576",
    "log.index.interval.bytes": "4096",
    "log.flush.interval.messages": "1",
    "log.segment.delete.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": NEVER_MS,
    "log.flush.start.offset.checkpoint.interval.ms": NEVER_MS,
    "replica.high.watermark.checkpoint.interval.ms": NEVER_MS,
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}


@contextmanager
def threads_may_lose_power() -> Iterator[None]:
    """Ends threads silently at a power failure, and logs nothing.

    A hook or a captured log record that stored the failure would keep the whole broker alive, with its descriptors.
    """
    others = threading.excepthook

    def end_of_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_type is not PowerFailure:
            others(arguments)

    threading.excepthook = end_of_thread
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        threading.excepthook = others


class BrokerThread:
    """Owns a broker that starts, serves and stops on a thread of its own. The thread ends when the power fails."""

    def __init__(self, log_dirs: Sequence[Path], filesystem: LossyFilesystem) -> None:
        config = BrokerConfig({**SETTINGS, "log.dirs": ",".join(map(str, log_dirs))})
        self.failure: BaseException | None = None
        self.status: int | None = None
        self.broker = Broker(config, filesystem=filesystem, on_fatal=self.request_stop)
        self._ready = threading.Event()
        self._stop_requested = threading.Event()
        self._thread = threading.Thread(target=self._run, name="broker-main", daemon=True)

    def start(self) -> bool:
        """Starts the broker. Returns True when it serves, or False with `failure` set if it could not start."""
        self._thread.start()
        assert self._ready.wait(TIMEOUT_S), "the broker does not start"
        return self.failure is None

    @property
    def port(self) -> int:
        return self.broker.socket_server.endpoints[0].port

    def request_stop(self) -> None:
        self._stop_requested.set()

    def stop(self) -> int | None:
        """Stops the broker and waits. Returns its exit status, or None if a power failure ended it."""
        self._stop_requested.set()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), "the broker does not stop"
        gc.unfreeze()  # a broker freezes the objects of its start: descriptors of earlier brokers would stay open
        return self.status

    def _run(self) -> None:
        try:
            self.broker.start()
        except (Exception, PowerFailure) as error:
            self.failure = error
            self._ready.set()
            self.broker.abort()
            return
        self._ready.set()
        self._stop_requested.wait()
        try:
            self.status = self.broker.stop()
        except PowerFailure as error:
            self.failure = error
            self.broker.abort()
