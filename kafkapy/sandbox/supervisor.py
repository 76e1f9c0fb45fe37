"""The process that starts the nodes of a sandbox, carries out commands on them, and stops them."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kafkapy.quorum.format_directory import format_node
from kafkapy.quorum.voters import KRAFT_VERSION_DYNAMIC, ControllerListener, Voter, VoterSet
from kafkapy.sandbox.layout import CONTROLLER_LISTENER, HOST, Layout, NodePlan, write_layout
from kafkapy.sandbox.node_process import NodeProcess
from kafkapy.storage.filesystem import Filesystem
from kafkapy.tools.option import ToolError
from kafkapy.types import SystemClock, uuid_from_string

LOCK_NAME = "sandbox.lock"
READY_WITHIN_S = 60.0
GRACE_S = 10.0
_POLL_S = 0.01
_REQUEST_S = 5.0
_LARGEST_REQUEST = 4096
SIGNALS = {
    "kill": (signal.SIGKILL, "killed"),
    "pause": (signal.SIGSTOP, "paused"),
    "resume": (signal.SIGCONT, "resumed"),
}


class Supervisor:
    """Owns the processes of all nodes, and the socket on which commands arrive.

    Single-threaded. `request_stop` may be called by a signal's handler.
    """

    def __init__(self, directory: Path, layout: Layout, command: Sequence[str], environment: dict[str, str]) -> None:
        """`command` is the command line that runs the program `kafkapy`, and `environment` its environment."""
        self.directory = directory
        self.layout = layout
        self._is_stopping = False
        self._nodes = {
            plan.node_id: NodeProcess(plan, directory / f"node-{plan.node_id}", command, environment)
            for plan in layout.nodes
        }

    def prepare(self) -> None:
        """Writes the nodes' configuration files, and formats the directories that are not formatted yet."""
        voters = VoterSet(_voter(plan) for plan in self.layout.controllers)
        for node in self._nodes.values():
            plan, data = node.plan, node.directory / "data"
            data.mkdir(parents=True, exist_ok=True)
            settings = self.layout.settings(plan, data)
            lines = "".join(f"{key}={value}\n" for key, value in settings.items())
            (node.directory / "server.properties").write_text(lines)
            format_node(
                [str(data)],
                str(data),
                plan.node_id,
                Filesystem(),
                SystemClock(),
                voters=voters if plan.is_controller else None,
                cluster_id=self.layout.cluster_id,
            )

    def start(self) -> None:
        """Starts all nodes and returns when all are ready, or when a stop is requested.

        Raises ToolError if a node is not ready in time, or if a node ends; the message then has the last line of the
        node's output.
        """
        for node in self._nodes.values():
            node.start()
        self._await_ready(self._nodes.values())

    def serve(self, on_open: Callable[[], None], report: Callable[[str], None]) -> None:
        """Carries out commands until a stop is requested.

        `on_open` is called when commands can be sent. `report` receives a line about each node that ends without having
        been stopped or killed by a command.
        """
        folder = tempfile.mkdtemp(prefix="kafkapy-sandbox-")  # the path of a socket must be short
        path = os.path.join(folder, "commands")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, _wake_ups() as wake_up:
                listener.bind(path)
                listener.listen()
                write_layout(self.directory, self.layout, {"pid": os.getpid(), "socket": path})
                on_open()
                selector = selectors.DefaultSelector()
                selector.register(listener, selectors.EVENT_READ)
                selector.register(wake_up, selectors.EVENT_READ)
                reported: set[NodeProcess] = set()
                while not self._is_stopping:
                    reported = self._report_ended(reported, report)
                    for key, _ in selector.select():
                        if key.fileobj is listener:
                            self._serve_one(listener)
                        else:
                            wake_up.recv(4096)
        finally:
            write_layout(self.directory, self.layout)
            shutil.rmtree(folder, ignore_errors=True)

    def request_stop(self) -> None:
        """Makes `start` and `serve` return."""
        self._is_stopping = True

    def stop(self) -> None:
        """Stops the nodes that are only brokers, and then the controllers.

        The nodes of each kind stop at the same time. A node that has not ended after `GRACE_S` is killed: it may be
        waiting for a quorum that has lost its majority.
        """
        for is_controller in (False, True):
            nodes = [node for node in self._nodes.values() if node.plan.is_controller == is_controller]
            for node in nodes:
                node.send(signal.SIGTERM)
            self._await_end(nodes)

    def carry_out(self, command: str, node_ids: Iterable[int]) -> list[str]:
        """Carries out a command on the nodes `node_ids`, or on all nodes if it is empty; returns the lines to print.

        `command` is "status", "stop", "restart", "kill", "pause" or "resume". "stop" without `node_ids` ends the whole
        sandbox: it makes `serve` return. Raises ToolError for an unknown node, for a node that does not run (except for
        "status" and "restart"), and if a restarted node does not become ready.
        """
        unknown = [node_id for node_id in node_ids if node_id not in self._nodes]
        if unknown:
            raise ToolError(f"there is no node {unknown[0]}; the nodes are {', '.join(map(str, self._nodes))}")
        nodes = [self._nodes[node_id] for node_id in node_ids] or list(self._nodes.values())
        if command == "status":
            return self._status(nodes)
        if command == "stop" and not list(node_ids):
            self._is_stopping = True
            return ["the sandbox stops"]
        if command == "restart":
            return self._restart(nodes)
        return [self._signal(node, command) for node in nodes]

    def _signal(self, node: NodeProcess, command: str) -> str:
        name = f"node {node.plan.node_id}"
        if not node.is_running:
            raise ToolError(f"{name} does not run: {node.state}")
        if command == "stop":
            node.send(signal.SIGTERM)
            self._await_end([node])
            return f"{name} stopped"
        number, text = SIGNALS[command]
        node.send(number)
        if command == "kill":
            self._await_end([node])
        return f"{name} {text}"

    def _restart(self, nodes: list[NodeProcess]) -> list[str]:
        for node in nodes:
            node.send(signal.SIGTERM)
            self._await_end([node])
            node.start()
        self._await_ready(nodes)
        return [f"node {node.plan.node_id} restarted" for node in nodes]

    def _status(self, nodes: list[NodeProcess]) -> list[str]:
        rows = [("NODE", "ROLES", "STATE", "PID", "LISTENERS", "LOG")]
        for node in nodes:
            plan = node.plan
            listeners = ",".join(plan.listeners)
            pid = "-" if node.pid is None else str(node.pid)
            rows.append((str(plan.node_id), ",".join(plan.roles), node.state, pid, listeners, str(node.output)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

    def _await_ready(self, nodes: Iterable[NodeProcess]) -> None:
        waiting = list(nodes)
        deadline = time.monotonic() + READY_WITHIN_S
        while waiting and not self._is_stopping:
            for node in waiting:
                if not node.is_running:
                    raise ToolError(
                        f"node {node.plan.node_id} {node.state}: {node.last_line()} (its output is in {node.output})"
                    )
            waiting = [node for node in waiting if not node.is_ready()]
            if waiting and time.monotonic() > deadline:
                node = waiting[0]
                raise ToolError(
                    f"node {node.plan.node_id} is not ready after {READY_WITHIN_S:.0f} s: see {node.output}"
                )
            if waiting:
                time.sleep(_POLL_S)

    def _await_end(self, nodes: Iterable[NodeProcess]) -> None:
        """Waits until the nodes have ended, and kills those that still run after `GRACE_S`."""
        running = list(nodes)
        deadline = time.monotonic() + GRACE_S
        while running := [node for node in running if node.is_running]:
            if time.monotonic() > deadline:
                for node in running:
                    node.send(signal.SIGKILL)
            time.sleep(_POLL_S)

    def _report_ended(self, reported: set[NodeProcess], report: Callable[[str], None]) -> set[NodeProcess]:
        """Reports each node that has ended without a command and is not in `reported`; returns all nodes that have
        ended without a command."""
        ended = {node for node in self._nodes.values() if not node.is_running and not node.is_expected_to_end}
        for node in ended - reported:
            report(f"node {node.plan.node_id} {node.state}: {node.last_line()}")
        return ended

    def _serve_one(self, listener: socket.socket) -> None:
        """Reads one command, a JSON object, carries it out, and responds with a JSON object.

        A client that ends before it has sent its command gets no response. A request that is not a command, for example
        of another release, is answered with an error.
        """
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.settimeout(_REQUEST_S)
            data = connection.recv(_LARGEST_REQUEST)
            if not data:
                return
            answer: dict[str, Any]
            try:
                answer = {"lines": self.carry_out(*_parsed(data))}
            except ToolError as error:
                answer = {"error": str(error)}
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _parsed(data: bytes) -> tuple[str, list[int]]:
    """Returns the command and the node ids of a request. Raises ToolError for a request that is not a known command."""
    try:
        request = json.loads(data)
        command, node_ids = request["command"], list(request["nodes"])
        if not all(type(each) is int for each in node_ids):
            raise TypeError("the nodes are not numbers")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolError(f"the request is not a command: {error}") from None
    if command not in ("status", "stop", "restart", *SIGNALS):
        raise ToolError(f"the running sandbox does not know the command {command!r}: it is of another release")
    return command, node_ids


def ask(socket_path: str, command: str, node_ids: Sequence[int]) -> list[str]:
    """Sends a command to a running sandbox and returns the lines to print. Raises ToolError if the command fails, and
    OSError if no sandbox listens at `socket_path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(socket_path)
        connection.sendall(json.dumps({"command": command, "nodes": list(node_ids)}).encode())
        with connection.makefile("rb") as reader:
            answer = json.loads(reader.readline() or b'{"error": "the sandbox has ended"}')
    if "error" in answer:
        raise ToolError(answer["error"])
    lines: list[str] = answer["lines"]
    return lines


@contextmanager
def locked(directory: Path) -> Iterator[IO[str]]:
    """Holds the lock of a sandbox's directory. Raises ToolError if another sandbox runs there."""
    with (directory / LOCK_NAME).open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ToolError(f"a sandbox runs in {directory}; `kafkapy sandbox stop` ends it") from None
        yield lock


@contextmanager
def _wake_ups() -> Iterator[socket.socket]:
    """Yields a socket that becomes readable when a signal arrives or a node ends."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGCHLD, handler)
        signal.set_wakeup_fd(before)
        reader.close()
        writer.close()


def _voter(plan: NodePlan) -> Voter:
    listener = ControllerListener(CONTROLLER_LISTENER, HOST, plan.controller_port)
    return Voter(plan.node_id, uuid_from_string(plan.directory_id), (listener,), 0, KRAFT_VERSION_DYNAMIC)
