"""The workloads of the comparison with ZooKeeper: requests at the highest rate, latency, watches, many nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from statistics import median

from bench.run import LARGE_BATCHES, Figures, Run
from bench.workload import Workload
from bench.workloads.life import idle
from bench.workloads.throughput import produce
from bench.zookeeper import client
from bench.zookeeper.client import Request, Session, Stream, drive
from bench.zookeeper.servers import (
    ListenerOff,
    ListenerOn,
    Listening,
    TreeServer,
    UnsyncedZooKeeper,
    ZooKeeper,
)

# Their product stays below ZooKeeper's limit of 1,000 outstanding requests, above which it reads no more requests.
SESSIONS = 16
REQUESTS_AT_ONCE = 16  # of a session in a batch, of which two are in flight
SECONDS = 5.0
DATA = b"x" * 100
ROOT = "/bench"
CHILDREN = 100
WATCHERS = 1_000
CHANGES = 20
NODES = 100_000
PING_INTERVAL_S = 5.0

# Returns the requests that one session sends again and again, by the session's own node.
Requests = Callable[[str], list[Request]]


def _tree(run: Run) -> TreeServer:
    assert isinstance(run.server, TreeServer)
    return run.server


def _paths(own: str) -> list[str]:
    return [f"{own}/{number:04}" for number in range(REQUESTS_AT_ONCE)]


def _for_each(make: Callable[[str], Request]) -> Requests:
    return lambda own: [make(path) for path in _paths(own)]


def _creates_and_deletes(own: str) -> list[Request]:
    path = f"{own}/passing"
    return [client.create(path, DATA), client.delete(path)] * (REQUESTS_AT_ONCE // 2)


def _multis(own: str) -> list[Request]:
    """Returns requests that each check a node, change its data, and create and delete another one."""
    path = f"{own}/passing"
    return [
        client.multi([client.check(each), client.set_data(each, DATA), client.create(path, DATA), client.delete(path)])
        for each in _paths(own)
    ]


def _fill(run: Run) -> None:
    """Creates the nodes that the sessions read and change, and one node with many children."""
    with closing(Session(_tree(run).tree_port)) as session:
        session.ask(client.create(ROOT, b""))
        session.ask(client.create(f"{ROOT}/parent", b""))
        session.ask_all([client.create(f"{ROOT}/parent/child-{number:04}", b"") for number in range(CHILDREN)])
        for number in range(SESSIONS):
            own = _own(number)
            session.ask_all([client.create(path, DATA) for path in (own, *_paths(own))])


def _own(number: int) -> str:
    return f"{ROOT}/{number:04}"


def requests(make: Requests) -> Callable[[Run], Figures]:
    """Returns a workload in which sessions send what `make` returns, with two batches of each in flight."""

    def run(run: Run) -> Figures:
        run.keep("filled", lambda: _fill(run))
        with ExitStack() as stack:
            streams = []
            for number in range(SESSIONS):
                session = stack.enter_context(closing(Session(_tree(run).tree_port)))
                streams.append(Stream(session, [make(_own(number))], repeat=True))
            return _measure(run, streams, run.seconds(SECONDS))

    return run


def _measure(run: Run, streams: Sequence[Stream], seconds: float = float("inf")) -> Figures:
    """Drives the streams; returns the rate, and the processor time of a request in microseconds.

    `load_cores` is the share of a core that the load itself has used.
    """

    def load() -> Figures:
        rate = drive(streams, seconds)
        return {
            "requests": rate.requests,
            "per_second": rate.requests / rate.seconds,
            "load_cores": rate.load_cpu_seconds / rate.seconds,
        }

    figures = run.measure(load)
    figures["cpu_us_per_request"] = figures["cpu_seconds"] / figures["requests"] * 1e6
    return figures


def latency(make: Callable[[str], Request]) -> Callable[[Run], Figures]:
    """Returns a workload with one client that sends its next request after the reply."""

    def run(run: Run) -> Figures:
        run.keep("filled", lambda: _fill(run))
        batch = make(_paths(_own(0))[0])

        def load() -> Figures:
            times_s = []
            end_s = time.monotonic() + run.seconds(SECONDS)
            while (began_s := time.monotonic()) < end_s:
                session.ask(batch)
                times_s.append(time.monotonic() - began_s)
            times_s.sort()
            return {
                "requests": len(times_s),
                "p50_us": times_s[len(times_s) // 2] * 1e6,
                "p99_us": times_s[len(times_s) * 99 // 100] * 1e6,
            }

        with closing(Session(_tree(run).tree_port)) as session:
            return run.measure(load)

    return run


def watches(run: Run) -> Figures:
    """Measures sessions that all watch one node: until all are notified of a change, and while they only ping.

    `change_ms` is the time from the request that changes the node until the last session has its event, and
    `cpu_ms_per_change` the server's processor time for a change, the events, and the reads that set the watches again.
    `kb_per_session` was measured at the first round, when the sessions were opened.
    """
    writer = run.keep("writer", lambda: _writer(run))
    sessions, grown_mb = run.keep("sessions", lambda: _open_many(run))

    def changes() -> Figures:
        times_ms = []
        for _ in range(run.count(CHANGES)):
            for session in sessions:
                session.socket.sendall(watch)
            for session in sessions:
                session.reply()
            began_s = time.monotonic()
            writer.socket.sendall(change)
            client.await_events(sessions)
            times_ms.append((time.monotonic() - began_s) * 1000)
            writer.reply()
        return {"change_ms": median(times_ms), "slowest_ms": max(times_ms)}

    watch = client.encode_batch([client.get_data(ROOT, watches=True)])
    change = client.encode_batch([client.set_data(ROOT, DATA)])
    figures = run.measure(changes)
    figures["cpu_ms_per_change"] = figures["cpu_seconds"] / run.count(CHANGES) * 1000
    figures["kb_per_session"] = grown_mb * 1024 / len(sessions)
    figures["idle_cpu_percent"] = _idle_cpu_percent(run, sessions)
    return figures


def _writer(run: Run) -> Session:
    session = Session(_tree(run).tree_port)
    session.ask(client.create(ROOT, DATA))
    return session


def _open_many(run: Run) -> tuple[list[Session], float]:
    """Opens sessions, each of which watches the node ROOT.

    Returns the sessions, and by how many MB the server's memory has grown.
    """
    before = run.server.memory_mb()
    sessions = [Session(_tree(run).tree_port) for _ in range(run.count(WATCHERS))]
    for session in sessions:
        session.ask(client.get_data(ROOT, watches=True))
    return sessions, run.server.memory_mb() - before


def _idle_cpu_percent(run: Run, sessions: Sequence[Session]) -> float:
    """Returns the server's use of a core while each session pings every five seconds."""
    seconds = run.seconds(PING_INTERVAL_S)
    ping = client.encode_batch([client.PING])
    count = max(1, int(len(sessions) * seconds / PING_INTERVAL_S))
    used_s, began_s = run.server.cpu_seconds(), time.monotonic()
    for number, session in enumerate(sessions[:count]):
        time.sleep(max(0.0, began_s + number * seconds / count - time.monotonic()))
        session.socket.sendall(ping)
        session.reply()
    return (run.server.cpu_seconds() - used_s) / (time.monotonic() - began_s) * 100


def many_nodes(run: Run) -> Figures:
    """Creates many nodes in an empty tree, then stops and starts the server.

    `grown_mb` is the growth of the server's memory by the nodes, and `start_seconds` the time from the start of its
    process until a client has read one of them.
    """
    server = _tree(run)
    server.clear()
    before = server.memory_mb()
    each = max(1, run.count(NODES) // SESSIONS // REQUESTS_AT_ONCE)
    with ExitStack() as stack:
        streams = []
        for number in range(SESSIONS):
            session = stack.enter_context(closing(Session(server.tree_port)))
            session.ask(client.create(f"/bench-{number:02}", b""))
            paths = [f"/bench-{number:02}/node-{index:06}" for index in range(each * REQUESTS_AT_ONCE)]
            created = [client.create(path, DATA) for path in paths]
            batches = [created[first : first + REQUESTS_AT_ONCE] for first in range(0, len(paths), REQUESTS_AT_ONCE)]
            streams.append(Stream(session, batches, repeat=False))
        figures = _measure(run, streams)
    figures["memory_mb"] = server.memory_mb()
    figures["grown_mb"] = figures["memory_mb"] - before
    server.stop()
    began_s = time.monotonic()
    server.start()
    with closing(Session(server.tree_port)) as session:
        session.ask(client.get_data(paths[-1]))
        figures["start_seconds"] = time.monotonic() - began_s
    figures["start_cpu_seconds"] = server.cpu_seconds()
    figures["start_memory_mb"] = server.memory_mb()
    return figures


def idle_broker(run: Run) -> Figures:
    """Measures a broker after a start: the time until it accepts connections, and what it uses while it idles."""
    run.server.stop()
    began_s = time.monotonic()
    run.server.start()
    started_s = time.monotonic() - began_s
    run.kept.pop("settled", None)
    return {**idle(run), "start_seconds": started_s, "descriptors": run.server.descriptors()}


SYNCED = (Listening.name, ZooKeeper.name)
ALL = (*SYNCED, UnsyncedZooKeeper.name)
SET_DATA = partial(client.set_data, data=DATA)
BROKERS = (ListenerOff.name, ListenerOn.name)
PRODUCED = produce(800_000, 1000, ("acks=1", *LARGE_BATCHES))

ROWS = (
    Workload("getData", "per_second", True, requests(_for_each(client.get_data)), SYNCED),
    Workload("exists", "per_second", True, requests(_for_each(client.exists)), SYNCED),
    Workload(
        "getChildren", "per_second", True, requests(_for_each(lambda _: client.get_children(f"{ROOT}/parent"))), SYNCED
    ),
    Workload("setData", "per_second", True, requests(_for_each(SET_DATA)), ALL),
    Workload("create-delete", "per_second", True, requests(_creates_and_deletes), ALL),
    Workload("multi", "per_second", True, requests(_multis), ALL),
    Workload("latency-getData", "p50_us", False, latency(client.get_data), SYNCED),
    Workload("latency-setData", "p50_us", False, latency(SET_DATA), ALL),
    Workload("1000-watches", "change_ms", False, watches, SYNCED),
    Workload("100000-nodes", "start_seconds", False, many_nodes, ALL),
    Workload("idle-broker", "memory_mb", False, idle_broker, BROKERS),
    Workload("produce-1KB", "per_second", True, PRODUCED, BROKERS),
)
WORKLOADS = {workload.name: workload for workload in ROWS}
