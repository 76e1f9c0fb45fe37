"""Consumers from before 0.11: Fetch v2, for which each batch becomes a message set of magic 1."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from bench.run import Figures, Run
from bench.workloads.throughput import fill

MAX_BYTES = 1_048_576


def fetch_request(topic: str, offset: int) -> bytes:
    name = topic.encode()
    body = struct.pack(">hhih", 1, 2, 1, -1) + struct.pack(">iiii", -1, 500, 1, 1)
    body += struct.pack(">h", len(name)) + name + struct.pack(">iiqi", 1, 0, offset, MAX_BYTES)
    return struct.pack(">i", len(body)) + body


def last_offset(messages: bytes) -> int:
    """Returns the offset of the last complete message of a message set."""
    position, last = 0, -1
    while position + 12 <= len(messages):
        offset, size = struct.unpack_from(">qi", messages, position)
        position += 12 + size
        if position > len(messages):
            break
        last = offset
    return last


def read_all(port: int, topic: str, messages: int) -> Figures:
    """Fetches on one connection until all `messages` messages have arrived."""
    offset = size = 0
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as client:
        while offset < messages:
            client.sendall(fetch_request(topic, offset))
            length = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
            answer = client.recv(length, socket.MSG_WAITALL)
            # correlation, throttle time, topics, name, partitions; then index, error, high watermark, size
            at = 4 + 4 + 4 + 2 + len(topic) + 4
            _, error, _, length = struct.unpack_from(">ihqi", answer, at)
            if error or not length:
                raise RuntimeError(f"fetch at {offset} answered error {error} and {length} bytes")
            records = answer[at + 18 :]
            offset = last_offset(records) + 1
            size += len(records)
    took = time.monotonic() - begin
    return {"messages": messages, "seconds": took, "per_second": messages / took, "mb_per_second": size / took / 1e6}


def down_conversion(messages: int, size: int) -> Callable[[Run], Figures]:
    def run(run: Run) -> Figures:
        count = run.count(messages)
        topic = run.keep("topic", lambda: fill(run, count, size))
        figures = run.measure(lambda: read_all(run.server.port, topic, count))
        figures["cpu_s_per_gb"] = figures["cpu_seconds"] / (count * size / 1e9)
        return figures

    return run
