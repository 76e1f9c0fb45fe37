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
from kafkapy.server.controller_link import remote_link
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
        link = remote_link(
            BrokerConfig(CONFIG),
            controller,
            SimpleNamespace(thread=thread),  # type: ignore[arg-type]
            "cluster",
            lambda work: work(),
            lambda delay_ms, work: None,  # type: ignore[arg-type, return-value]
            lambda error: None,
        )
        threading.Thread(target=link.lifecycle.register, args=([bytes(16)], -1), daemon=True).start()
        assert asked.wait(WAIT_S)
        link.allocate_producer_ids(blocks.put)
        assert blocks.get(timeout=WAIT_S) == ProducerIdsBlock(3000, 1000)
        thread.stop()
