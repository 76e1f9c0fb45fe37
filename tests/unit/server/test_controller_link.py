"""The ports of a broker to the active controller of its cluster."""

from __future__ import annotations

import threading
from queue import Queue
from types import SimpleNamespace
from typing import Any

from kafkapy.config import BrokerConfig
from kafkapy.controller.producer_ids import ProducerIdsBlock
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kafkapy.server.controller_link import ControllerLink, ControllerPorts, remote_ports
from tests.api_client import CONFIG
from tests.harness.stub_node import StubNode

WAIT_S = 20


def test_producer_ids_do_not_wait_for_a_heartbeat_without_an_answer() -> None:
    asked = threading.Event()

    def never(request: Any, version: int) -> None:
        asked.set()

    def allocate(request: Any, version: int) -> AllocateProducerIdsResponse:
        return AllocateProducerIdsResponse(producer_id_start=3000, producer_id_len=1000)

    thread = NodeThread()
    blocks: Queue[Any] = Queue()
    with StubNode({ApiKey.BROKER_REGISTRATION: never, ApiKey.ALLOCATE_PRODUCER_IDS: allocate}) as node:
        controller: Any = SimpleNamespace(
            quorum=SimpleNamespace(leader=(2, "127.0.0.1", node.port)), image=SimpleNamespace(offset=0)
        )
        link = remote_ports(
            BrokerConfig(CONFIG),
            controller,
            SimpleNamespace(thread=thread),  # type: ignore[arg-type]
            "cluster",
            lambda work: work(),
            lambda delay_ms, work: None,  # type: ignore[arg-type, return-value]
            lambda error: None,
            -1,
            tuple,
        )
        threading.Thread(target=link.lifecycle.register, args=([bytes(16)], -1), daemon=True).start()
        assert asked.wait(WAIT_S)
        link.allocate_producer_ids(blocks.put)
        assert blocks.get(timeout=WAIT_S) == ProducerIdsBlock(3000, 1000)
        thread.stop()


def test_direct_calls_are_replaced_once_and_the_registration_continues() -> None:
    used: list[str] = []

    def ports(name: str, forwarding: Any) -> ControllerPorts:
        return ControllerPorts(
            lifecycle=SimpleNamespace(broker_epoch=7),  # type: ignore[arg-type]
            alter_partition=SimpleNamespace(submit=lambda change, on_result: used.append(name)),
            assign_directories=lambda found: used.append(name),  # type: ignore[arg-type, return-value]
            allocate_producer_ids=lambda on_block: used.append(name),
            forwarding=forwarding,
        )

    made: list[int] = []

    def make_remote(broker_epoch: int) -> ControllerPorts:
        made.append(broker_epoch)
        return ports("remote", object())

    link = ControllerLink(ports("direct", None), make_remote)
    for expected in (["direct"] * 3, ["remote"] * 3, ["remote"] * 3):
        link.submit(None, None)  # type: ignore[arg-type]
        link.assign_directories({})
        link.allocate_producer_ids(lambda block: None)
        assert used == expected
        used.clear()
        link.leave_direct_calls()
    assert made == [7]
    assert link.forwarding is not None
