"""A reactor that answers every request with the same bytes, to measure the cost outside of handlers.

    python -m bench.micro.reactor_server PORT [fixed|codec] &
    bench/results/build/requests 127.0.0.1 PORT topic 1 64 5 100 1 0 produce

`fixed` answers a prepared Produce v7 or Metadata v4 response; `codec` goes through the dispatcher's header, context and
decoder and encodes a response, with a handler that does nothing else.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from typing import Any

from kafkapy._core.reactor.reactor import Request
from kafkapy.config import BrokerConfig
from kafkapy.network.socket_server import SocketServer, create_reactor
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse

TOPIC = "topic"


def produced() -> ProduceResponse:
    partition = ProduceResponse.PartitionProduceResponse(
        index=0, error_code=0, base_offset=5, log_append_time_ms=-1, log_start_offset=0
    )
    topic = ProduceResponse.TopicProduceResponse(name=TOPIC, partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def described(port: int) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponsePartition(
        partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
    )
    return MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)],
        controller_id=1,
        cluster_id="cluster",
        topics=[MetadataResponse.MetadataResponseTopic(name=TOPIC, partitions=[partition])],
    )


def produce(context: Any, request: ProduceRequest) -> ProduceResponse:
    return produced()


def fixed(port: int) -> Any:
    bodies = {b"\0\0\0\7": produced().encode(7), b"\0\3\0\4": described(port).encode(4)}

    def dispatch(requests: list[Request]) -> None:
        for request in requests:
            payload = request.payload
            request.connection.respond([bytes(payload[4:8]) + bodies[bytes(payload[:4])]])

    return dispatch


def through_the_dispatcher(config: BrokerConfig, reactor: Any, port: int) -> Any:
    from kafkapy.metadata.image import MetadataCache
    from kafkapy.server.api_registry import ServedApi
    from kafkapy.server.dispatcher import Dispatcher
    from kafkapy.server.services import Services
    from kafkapy.types import SystemClock

    answer = described(port)
    unused: Any = None
    services = Services(
        config=config, clock=SystemClock(), reactor=reactor, metadata=MetadataCache(), node_id=1, cluster_id="cluster",
        handler_pool=unused, log_manager=unused, replica_manager=unused, controller=unused, group_coordinator=unused,
        fetch_sessions=unused, producer_ids=unused, transaction_coordinator=unused, transaction_verification=unused,
        local_marker_writer=unused, client_telemetry=unused, alter_log_dirs=unused,
    )  # fmt: skip
    dispatcher = Dispatcher(services)
    dispatcher._broker_apis[ApiKey.PRODUCE] = ServedApi(ApiKey.PRODUCE, 0, 13, produce, None, False)
    dispatcher._broker_apis[ApiKey.METADATA] = ServedApi(ApiKey.METADATA, 0, 13, lambda *_: answer, None, False)
    return dispatcher.dispatch


def main() -> None:
    port, kind = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "fixed"
    config = BrokerConfig(
        {
            "node.id": "1", "process.roles": "broker,controller", "controller.quorum.voters": "1@localhost:9093",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}",
            "controller.listener.names": "CONTROLLER",
        }
    )  # fmt: skip
    reactor = create_reactor(config)
    reactor.dispatch = fixed(port) if kind == "fixed" else through_the_dispatcher(config, reactor, port)
    server = SocketServer(config.listeners[:1], config, reactor)
    server.start([config.listeners[0].name])
    threading.Thread(target=reactor.run, daemon=True).start()
    last_requests, last_cpu = 0, 0.0
    while True:
        time.sleep(1)
        counters, usage = reactor.counters(), resource.getrusage(resource.RUSAGE_SELF)
        requests, cpu = counters["requests_received"], usage.ru_utime + usage.ru_stime
        if requests > last_requests + 1000:
            rate = requests - last_requests
            print(f"{rate} requests/s, {(cpu - last_cpu) * 1e6 / rate:.1f} us CPU per request", flush=True)
        last_requests, last_cpu = requests, cpu


if __name__ == "__main__":
    main()
