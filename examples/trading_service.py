"""Receives orders by HTTP, writes them to a topic, and processes them by three listener threads of one group.

`POST /trade_entrust` with an order as JSON writes the order without a key to the topic; the answer says whether it was
written. Each listener is a consumer on a thread of its own, and each order is processed by exactly one of them. The
program sends the orders of a published example to itself, one to each partition in turn, and ends when all are
processed.
"""

from __future__ import annotations

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

from example_support import join, make_topic, run

from kafkapy.client import Consumer, Producer
from kafkapy.errors import KafkapyError

LISTENERS = 3
PRICES = ("10.1", "10.5", "11.0", "11.3")


class InTurn:
    """A partitioner that chooses the partitions in turn."""

    def __init__(self) -> None:
        self._counter = itertools.count()

    def partition(self, topic: str, key: Any, key_bytes: bytes | None, value: Any, partition_count: int) -> int:
        return next(self._counter) % partition_count


class Desk:
    """The orders that the listeners have processed. Thread-safe."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def process(self, order: bytes, partition: int) -> None:
        """Processes an order."""
        fields = json.loads(order)
        with self._changed:
            self.lines.append(f"{fields['sec_name']} {fields['sec_price']} from partition {partition}")
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Returns when `count` orders were processed."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.lines) >= count)


class Listener(threading.Thread):
    """A consumer of the group on a thread of its own, which gives each order to the desk until `stop`."""

    def __init__(self, number: int, bootstrap: str, topic: str, group: str, desk: Desk) -> None:
        super().__init__(name=f"listener-{number}")
        self._consumer = Consumer(
            bootstrap_servers=bootstrap,
            client_id=self.name,
            group_id=group,
            enable_auto_commit=True,
            auto_commit_interval_ms=1000,
            auto_offset_reset="earliest",
        )
        self._consumer.subscribe([topic])
        self._desk = desk
        self._is_stopped = threading.Event()

    def run(self) -> None:
        with self._consumer as consumer:
            while not self._is_stopped.is_set():
                for record in consumer.poll(0.2):
                    self._desk.process(record.value, record.partition)

    def stop(self) -> None:
        """Ends the thread."""
        self._is_stopped.set()


def handler_of(producer: Producer, topic: str) -> type[BaseHTTPRequestHandler]:
    """Returns the class that answers HTTP requests and sends their orders."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            order = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path != "/trade_entrust":
                self._answer(404, "unknown path")
            elif not order.strip():
                self._answer(400, "invalid parameter")
            else:
                self._send(order)

        def _send(self, order: bytes) -> None:
            try:
                metadata = producer.send(topic, order).result(timeout=30)
            except KafkapyError as error:
                self._answer(500, f"the order could not be sent: {error}")
                return
            self._answer(200, f"written to partition {metadata.partition}")

        def _answer(self, status: int, text: str) -> None:
            body = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Prints nothing: the program's output is the processed orders."""

    return Handler


def post_orders(port: int) -> None:
    """Sends an order for each price to the service."""
    for price in PRICES:
        order = {"user_id": "1000000", "sec_code": "601766", "sec_price": price, "sec_name": "中国中车"}
        body = json.dumps(order, ensure_ascii=False).encode()
        with urlopen(Request(f"http://127.0.0.1:{port}/trade_entrust", body, method="POST"), timeout=60) as answer:
            answer.read()


def main(bootstrap: str, topic: str, group: str, port: str) -> None:
    make_topic(bootstrap, topic, LISTENERS, is_exact=True)
    desk = Desk()
    listeners = [Listener(number, bootstrap, topic, group, desk) for number in range(LISTENERS)]
    with (
        Producer(bootstrap_servers=bootstrap, partitioner_class=InTurn()) as producer,
        ThreadingHTTPServer(("127.0.0.1", int(port)), handler_of(producer, topic)) as server,
    ):
        web = threading.Thread(target=server.serve_forever, name="web")
        try:
            for thread in (*listeners, web):
                thread.start()
            post_orders(server.server_port)
            desk.wait_for(len(PRICES))
        finally:
            for listener in listeners:
                listener.stop()
            join(listeners)
            if web.ident is not None:
                server.shutdown()
                web.join()
    print("\n".join(sorted(desk.lines)))


if __name__ == "__main__":
    run(main, __doc__, topic="trade-entrust", group="trade_entrust", port="0")
