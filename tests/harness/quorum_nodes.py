"""Several nodes of a metadata quorum in one process: real logs and threads, and messages in wire form in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.protocol.api import ApiKey, request_class, response_class
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.quorum import raft_server as server
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.quorum.format_directory import format_node
from kafkapy.quorum.metadata_quorum import MetadataQuorum
from kafkapy.quorum.quorum_settings import controller_listeners_of, raft_config, settings_from_config
from kafkapy.quorum.raft.messages import Destination, Request, Response
from kafkapy.quorum.raft_client import failure_of, outgoing
from kafkapy.storage.filesystem import Filesystem
from kafkapy.types import Clock, SystemClock
from tests.harness.metadata import broker_config

LISTENER = "CONTROLLER"
FIRST_PORT = 9000
WAIT_S = 20.0


class QuorumNode:
    """One voter: its directory survives `kill` and `stop`; `start` opens it again."""

    def __init__(self, nodes: QuorumNodes, node_id: int, directory: Path, **properties: str) -> None:
        self._nodes = nodes
        self.node_id = node_id
        self.directory = directory
        self.faults: list[BaseException] = []
        self.is_up = False
        port = FIRST_PORT + node_id
        self.config = broker_config(
            node_id=str(node_id),
            log_dirs=str(directory),
            listeners=f"PLAINTEXT://localhost:{port + 1000},{LISTENER}://localhost:{port}",
            listener_security_protocol_map=f"PLAINTEXT:PLAINTEXT,{LISTENER}:PLAINTEXT",
            controller_listener_names=LISTENER,
            controller_quorum_election_timeout_ms="150",
            controller_quorum_fetch_timeout_ms="400",
            controller_quorum_election_backoff_max_ms="50",
            **properties,
        )

    def start(self) -> None:
        image = self.open()
        self.is_up = True
        self.loop.start(image)

    def open(self) -> MetadataImage:
        """Opens the quorum, which does not take part in an election yet; returns its image."""
        formatted = format_node(
            self.config.log_dirs,
            self.config.metadata_log_dir,
            self.node_id,
            Filesystem(),
            SystemClock(),
            cluster_id=self._nodes.cluster_id,
            voters=None,
        )[self.config.metadata_log_dir]
        assert formatted.cluster_id is not None and formatted.directory_id is not None
        self.quorum = MetadataQuorum(
            settings_from_config(self.config),
            raft_config(
                self.config, formatted.cluster_id, formatted.directory_id, controller_listeners_of(self.config)
            ),
            Filesystem(),
            self._nodes.clock,
            lambda: self,
        )
        self.loop = ControllerLoop(self.quorum, MetadataCache(), self._nodes.clock, self.faults.append)
        return self.quorum.open()

    def stop(self) -> None:
        """Leaves the quorum and closes the log."""
        self.loop.stop()
        self.is_up = False

    def kill(self) -> None:
        """Ends like a killed process: the other nodes are not notified, and nothing is closed."""
        self.is_up = False
        self.quorum.shutdown = lambda timeout_ms: self.loop.stopped()  # type: ignore[method-assign]
        self.quorum.close = lambda: None  # type: ignore[method-assign]
        self.loop.stop()

    @property
    def image(self) -> MetadataImage:
        return self.loop.image

    # -- the transport of this node

    def send(self, destination: Destination, request: Request, on_response: Callable[[Response | None], None]) -> None:
        translated = outgoing(request)
        target = self._nodes.at_port(destination.port)
        if target is None or not self.is_up or self._nodes.is_cut(self.node_id, target.node_id):
            threading.Timer(0.02, on_response, [None]).start()
            return
        try:
            message = translated.build(self._nodes.version(translated.api_key))
        except ApiError as error:
            on_response(failure_of(request, error))
            return
        target.receive(translated.api_key, message, self._reader(translated.read, target, on_response))

    def is_refused(self, destination: Destination) -> bool:
        return self._nodes.at_port(destination.port) is None

    def _reader(
        self, read: Callable[[Any, str], Response], target: QuorumNode, on_response: Callable[[Response | None], None]
    ) -> Callable[[Any], None]:
        def done(response: Any) -> None:
            is_lost = not self.is_up or not target.is_up or self._nodes.is_cut(self.node_id, target.node_id)
            on_response(None if is_lost else read(response, LISTENER))

        return done

    def receive(self, api_key: ApiKey, message: Any, respond: Callable[[Any], None]) -> None:
        """Handles a wire request; `respond` gets the wire response."""
        version = self._nodes.version(api_key)
        wire = request_class(api_key)
        decoded = wire.decode(b"".join(map(bytes, message.encode_chunks(version))), version)

        def send_back(response: Any) -> None:
            content = b"".join(map(bytes, response.encode_chunks(version)))
            respond(response_class(api_key).decode(content, version))

        if api_key is ApiKey.API_VERSIONS:
            feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            send_back(ApiVersionsResponse(supported_features=[feature]))
            return
        request, translate = self._translations(api_key, decoded, version)
        self.loop.post(lambda: self.quorum.receive(request, lambda response: send_back(translate(response))))

    def _translations(self, api_key: ApiKey, message: Any, version: int) -> tuple[Request, Callable[[Any], Any]]:
        log, read_snapshot = self.quorum.log, self.quorum.read_snapshot
        requests: dict[ApiKey, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
            ApiKey.VOTE: (server.vote_request, lambda found: server.vote_response(found, version, LISTENER)),
            ApiKey.BEGIN_QUORUM_EPOCH: (
                server.begin_request,
                lambda found: server.begin_response(found, version, LISTENER),
            ),
            ApiKey.END_QUORUM_EPOCH: (server.end_request, lambda found: server.end_response(found, version, LISTENER)),
            ApiKey.FETCH: (
                lambda found: server.fetch_request(found, version),
                lambda found: server.fetch_response(found, version, LISTENER, log.read),
            ),
            ApiKey.FETCH_SNAPSHOT: (
                server.fetch_snapshot_request,
                lambda found: server.fetch_snapshot_response(found, version, LISTENER, read_snapshot),
            ),
            ApiKey.ADD_RAFT_VOTER: (server.add_voter_request, server.add_voter_response),
            ApiKey.REMOVE_RAFT_VOTER: (server.remove_voter_request, server.remove_voter_response),
            ApiKey.UPDATE_RAFT_VOTER: (
                server.update_voter_request,
                lambda found: server.update_voter_response(found, LISTENER),
            ),
        }
        read, write = requests[api_key]
        return read(message), write


class QuorumNodes:
    """The nodes of one static quorum; a context manager that kills the nodes that still run at its end."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        voters: Mapping[int, str] | None = None,
        clock: Clock | None = None,
        **properties: str,
    ) -> None:
        """Creates `count` nodes with the ids from 1 on; starts none.

        `voters` has the value of controller.quorum.voters by node id, for nodes that do not agree about the voters.
        """
        self.cluster_id = "AAAAAAAAAAAAAAAAAAAAAg"
        self.clock = clock or SystemClock()
        self._cut: set[int] = set()
        agreed = ",".join(f"{each}@localhost:{FIRST_PORT + each}" for each in range(1, count + 1))
        self.nodes = {
            each: QuorumNode(
                self,
                each,
                directory / str(each),
                controller_quorum_voters=agreed if voters is None else voters[each],
                **properties,
            )
            for each in range(1, count + 1)
        }

    def __enter__(self) -> QuorumNodes:
        for node in self.nodes.values():
            node.start()
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            if node.is_up:
                node.kill()

    def at_port(self, port: int) -> QuorumNode | None:
        node = self.nodes.get(port - FIRST_PORT)
        return node if node is not None and node.is_up else None

    def version(self, api_key: ApiKey) -> int:
        """Returns the newest version of an API, which all nodes use."""
        highest: int = request_class(api_key).HIGHEST_VERSION
        return highest

    def cut_off(self, *node_ids: int) -> None:
        """Makes these nodes unreachable for all others, until the next call."""
        self._cut = set(node_ids)

    def is_cut(self, one: int, other: int) -> bool:
        return (one in self._cut) != (other in self._cut)

    def leader(self, *, other_than: int = -1) -> QuorumNode:
        """Waits for the active controller and returns it."""

        def active() -> QuorumNode | None:
            found = [node for node in self.nodes.values() if node.is_up and node.loop.is_active]
            reachable = [node for node in found if node.node_id not in self._cut | {other_than}]
            return reachable[0] if reachable else None

        wait_until(lambda: active() is not None, "no active controller")
        found = active()
        return found if found is not None else self.leader(other_than=other_than)

    def submit(self, operation: Callable[[MetadataImage], Any]) -> Any:
        """Runs an operation on the active controller; repeats it if the controller has changed."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return self.leader().loop.submit(operation).result(WAIT_S)
            except ApiError as error:
                if error.error is not Error.NOT_CONTROLLER or time.monotonic() > deadline:
                    raise

    def wait_for_equal_images(self) -> MetadataImage:
        """Waits until all running nodes have published the same end of the log."""

        def offsets() -> set[int]:
            return {node.image.offset for node in self.nodes.values() if node.is_up}

        wait_until(lambda: len(offsets()) == 1, "the nodes have different images")
        return next(node.image for node in self.nodes.values() if node.is_up)


def wait_until(is_done: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        assert time.monotonic() < deadline, failure
        time.sleep(0.01)
