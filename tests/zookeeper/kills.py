"""Clients that write to the tree while the broker is killed, and the checks of what must be left."""

from __future__ import annotations

import random
import threading
import time

from tests.harness.zookeeper import SocketClient, ZooKeeperReplyError
from tests.zookeeper.listening_broker import ListeningBroker

SESSION_TIMEOUT_MS = 40_000
WRITERS = 3
EPHEMERAL, SEQUENTIAL = 1, 2


def connected(address: str, session_id: int = 0, password: bytes = bytes(16)) -> SocketClient:
    """Returns a client with a new session, or with the given one; retries until the broker serves the tree."""
    deadline = time.monotonic() + 60
    while True:
        try:
            client = SocketClient(address)
            client.connect(session_id, password, timeout_ms=SESSION_TIMEOUT_MS)
            return client
        except OSError:
            assert time.monotonic() < deadline, "the broker does not serve the tree"
            time.sleep(0.02)


class Writer(threading.Thread):
    """A client that creates sequential nodes and ephemeral nodes until `stop`, on one session."""

    def __init__(self, address: str, number: int) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.folder = f"/kills/{number}"
        self.acknowledged: list[str] = []
        self.highest_zxid = 0
        self.reconnections = 0
        self.failure: BaseException | None = None
        self._is_stopping = threading.Event()
        client = connected(address)
        client.create(self.folder)
        client.create(f"{self.folder}/alive", flags=EPHEMERAL)
        self.client = client

    @property
    def session_id(self) -> int:
        return self.client.session_id

    def run(self) -> None:
        try:
            while not self._is_stopping.is_set():
                try:
                    self._write()
                except OSError:
                    self._continue()
        except BaseException as error:
            self.failure = error
            raise

    def _write(self) -> None:
        path = self.client.create(f"{self.folder}/n-", b"x", flags=SEQUENTIAL)
        self.acknowledged.append(path)
        stat = self.client.exists(path)
        assert stat.czxid > self.highest_zxid, f"zxid 0x{stat.czxid:x} after 0x{self.highest_zxid:x}"
        self.highest_zxid = stat.czxid

    def _continue(self) -> None:
        """Continues the session on a new connection."""
        self.reconnections += 1
        before = self.client
        before.disconnect()
        self.client = connected(self._address, before.session_id, before.password)
        if self.client.session_id != before.session_id:
            raise RuntimeError("the session was lost")

    def stop(self) -> None:
        self._is_stopping.set()
        self.join(90)
        if self.failure is not None:
            raise self.failure


def is_missing(reader: SocketClient, path: str) -> bool:
    try:
        reader.exists(path)
    except ZooKeeperReplyError:
        return True
    return False


def survive_kills(broker: ListeningBroker, kills: int, seed: int) -> None:
    """Kills the running broker while clients write. Afterwards every acknowledged node exists, with unique numbers, and
    ephemeral nodes exist exactly as long as their sessions."""
    choose = random.Random(seed)
    root = connected(broker.zookeeper)
    root.create("/kills")
    root.close_session()
    writers = [Writer(broker.zookeeper, number) for number in range(WRITERS)]
    ended = []
    for writer in writers:
        writer.start()
    for number in range(kills):
        doomed = connected(broker.zookeeper)
        doomed.create(f"/kills/doomed-{number}", flags=EPHEMERAL)
        progress = sum(len(writer.acknowledged) for writer in writers)
        while sum(len(writer.acknowledged) for writer in writers) < progress + choose.randrange(1, 40):
            assert not any(writer.failure for writer in writers)
            time.sleep(0.001)
        doomed.close_session()
        ended.append(f"/kills/doomed-{number}")
        broker.kill()
        broker.start()
    for writer in writers:
        writer.stop()
    reader = connected(broker.zookeeper)
    for writer in writers:
        present = {f"{writer.folder}/{name}" for name in reader.children(writer.folder)}
        missing = set(writer.acknowledged) - present
        assert not missing, f"{len(missing)} acknowledged nodes are missing, such as {min(missing)}"
        assert len(writer.acknowledged) == len(set(writer.acknowledged))
        assert reader.exists(f"{writer.folder}/alive").owner == writer.session_id
        assert writer.reconnections > 0
    for path in ended:
        assert is_missing(reader, path), f"{path} outlived its session"
    _end(reader, writers)


def _end(reader: SocketClient, writers: list[Writer]) -> None:
    """Closes the writers' sessions; their ephemeral nodes must vanish."""
    for writer in writers:
        writer.client.close_session()
        assert is_missing(reader, f"{writer.folder}/alive"), f"{writer.folder}/alive outlived its session"
