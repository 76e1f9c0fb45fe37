"""The thread for requests to other nodes, which a node that is alone never starts, nor imports."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kafkapy.config import BrokerConfig

if TYPE_CHECKING:
    from kafkapy.nodes.node_thread import NodeThread
    from kafkapy.quorum.raft_transport import RaftTransport


class OtherNodes:
    """Owns the thread, which the first request needs. Any thread."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._thread: NodeThread | None = None

    @property
    def thread(self) -> NodeThread:
        """The thread; it runs from the first request on."""
        from kafkapy.nodes.node_thread import NodeThread

        with self._lock:
            if self._thread is None:
                self._thread = NodeThread()
            return self._thread

    @property
    def client_id(self) -> str:
        """The client id of this node's requests."""
        return f"kafkapy-node-{self._config.node_id}"

    def make_raft_transport(self) -> RaftTransport:
        """Returns the transport of the quorum's requests."""
        from kafkapy.quorum.raft_transport import RaftTransport

        names = self._config.controller_listener_names
        return RaftTransport(
            self.thread,
            client_id=self.client_id,
            listener_name=names[0] if names else "CONTROLLER",
            request_timeout_ms=self._config.controller_quorum_request_timeout_ms,
        )

    def stop(self) -> None:
        """Ends the thread, if it was made; requests that wait fail."""
        if self._thread is not None:
            self._thread.stop()
