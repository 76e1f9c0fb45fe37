"""Hostile clients use a bounded amount of a broker's memory, and the broker continues to serve other clients."""

import socket
from pathlib import Path

import pytest

from tests.hostile_clients import HOSTILE_CLIENTS, fetch_request, produce_request, read_answer

# A broker that buffers ten times its limit for the twenty connections exceeds this growth.
ALLOWED_GROWTH_MB = 64
WELL_BEHAVED_REQUESTS = 2_000


def resident_mb(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@pytest.mark.parametrize("kind", HOSTILE_CLIENTS)
def test_memory_stays_bounded_and_others_are_served(broker, kind):
    with socket.create_connection(("127.0.0.1", broker.port), 10) as client:

        def ask(request: bytes) -> bytes:
            client.sendall(request)
            return read_answer(client)

        create(broker, "data", "others")
        for _ in range(10):
            ask(produce_request("data", bytes(1000), records=500))
        before = resident_mb(broker.pid)
        most = before
        request, answers = produce_request("others", b"a well-behaved record"), []
        with HOSTILE_CLIENTS[kind](broker.port, "data") as hostile:
            while len(answers) < WELL_BEHAVED_REQUESTS or not hostile.done:
                answers.append(ask(request))
                if len(answers) % 100 == 0:
                    most = max(most, resident_mb(broker.pid))
        # skips correlation id, topic count, name, partition count and partition index
        assert {answer[4 + 4 + 2 + len("others") + 4 + 4 :][:2] for answer in answers} == {b"\0\0"}
        assert most - before < ALLOWED_GROWTH_MB
        assert len(ask(fetch_request("data"))) > 1_000_000


def create(broker, *topics: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(30)
