"""`python -m bench.clients`: compares kafkapy's client with confluent-kafka, kafka-python and aiokafka.

    python -m bench.clients [--rounds 5] [--sizes 100,1000] [--batches 16384,1048576] [--loads produce,consume,...]
                            [--clients kafkapy,confluent-kafka,...] [--server kafkapy|kafka] [--scale 1.0]
                            [--output FILE.json]

Each load is one process of one client against the same broker. The clients take turns within a round; one additional
round is run first and discarded. The results are medians over the rounds: records per second, and the client's own CPU
seconds per million records. Much slower clients receive fewer records. `consume-arrow` is compared with
confluent-kafka's consuming in batches, with a plain socket that reads the broker's responses into one buffer, and with
the bare loopback: the same number of bytes from `sendfile` into one buffer. A drop-in client is also compared with the
client that it replaces.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.client_loads import LOADS
from bench.measure import machine
from bench.programs import RESULTS
from bench.servers import SERVERS, Server, raise_descriptor_limit

CLIENTS = (
    "kafkapy",
    "confluent-kafka",
    "kafkapy.compat.confluent_kafka",
    "kafka-python",
    "kafkapy.compat.kafka",
    "aiokafka",
    "plain-socket",
    "loopback",
)
# A drop-in client -> the client that it replaces.
REPLACED = {"kafkapy.compat.kafka": "kafka-python", "kafkapy.compat.confluent_kafka": "confluent-kafka"}
# Numbers of records of 100 bytes that take about a second to produce, and to consume.
PRODUCED = {
    "kafkapy": 1_000_000,
    "confluent-kafka": 1_000_000,
    "kafkapy.compat.confluent_kafka": 1_000_000,
    "kafka-python": 40_000,
    "kafkapy.compat.kafka": 300_000,
    "aiokafka": 100_000,
}
CONSUMED = {
    "kafkapy": 2_000_000,
    "confluent-kafka": 2_000_000,
    "kafkapy.compat.confluent_kafka": 2_000_000,
    "kafka-python": 60_000,
    "kafkapy.compat.kafka": 600_000,
    "aiokafka": 400_000,
}
FILLED = 6_000_000  # records of 100 bytes that the fastest client reads in half a second
CHUNK_BYTES = 1 << 20
TIMEOUT_S = 300

Figures = dict[str, float]
Rounds = dict[str, dict[str, list[Figures]]]  # load -> client -> rounds


class Loopback:
    """A server that sends zeros from a file to each connection with `sendfile`, as a broker sends its segments."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "zeros"
        self._path.write_bytes(bytes(CHUNK_BYTES * 64))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self, size: int) -> threading.Thread:
        """Starts and returns a thread that sends `size` bytes to the next connection."""
        thread = threading.Thread(target=self._run, args=(size,), daemon=True)
        thread.start()
        return thread

    def _run(self, size: int) -> None:
        connection, _ = self._socket.accept()
        with connection, self._path.open("rb") as source:
            send_all(connection.fileno(), source.fileno(), size)

    def close(self) -> None:
        self._socket.close()


def send_all(target: int, source: int, size: int) -> None:
    length = os.fstat(source).st_size
    sent = 0
    while sent < size:
        at = sent % length
        sent += os.sendfile(target, source, at, min(CHUNK_BYTES, length - at, size - sent))


def run_load(client: str, load: str, bootstrap: str, topic: str, count: int, size: int, batch: int) -> Figures:
    words = [client, load, bootstrap, topic, str(count), str(size), str(batch)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.client_loads", *words], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode:
        raise RuntimeError(f"{client} {load}: {done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return {
        "per_second": told["records"] / told["seconds"],
        "mb_per_second": told["records"] * size / told["seconds"] / 1e6,
        "cpu_s_per_million": told["cpu_seconds"] / told["records"] * 1e6,
    }


class Comparison:
    """The comparison of the clients: one broker, its filled topics, and the figures of all rounds."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self._options = options
        self._directory = directory
        self._server: Server = SERVERS[options.server](directory, {})
        self._loopback = Loopback(directory)
        self._topics = 0
        self.rounds: Rounds = {}

    def run(self) -> None:
        self._server.start()
        try:
            for size in self._options.sizes:
                self._produce_rounds(size)
                self._consume_rounds(size)
        finally:
            self._loopback.close()
            self._server.stop()
            self._server.remove()

    def _count(self, counts: dict[str, int], client: str, size: int) -> int:
        shrink = 1 if size <= 100 else 2
        return max(int(counts[client] * self._options.scale) // shrink, 2000)

    def _chosen(self, load: str) -> list[str]:
        return [client for client in self._options.clients if (client, load) in LOADS]

    def _produce_rounds(self, size: int) -> None:
        for load in ("produce", "produce-batches", "produce-arrow"):
            if load not in self._options.loads:
                continue
            for batch in self._options.batches:
                for number in range(self._options.rounds + 1):
                    for client in self._chosen(load):
                        topic = self._topic()
                        count = self._count(PRODUCED, client, size)
                        name = f"{load} {size} B, batches of {batch >> 10} KB"
                        self._turn(name, client, load, topic, count, size, batch, number)
                        self._server.delete_topic(topic)

    def _consume_rounds(self, size: int) -> None:
        loads = [load for load in ("consume", "consume-batches", "consume-arrow") if load in self._options.loads]
        if not loads:
            return
        topic = self._topic()
        filled = max(int(FILLED * self._options.scale) // (1 if size <= 100 else 5), 2000)
        run_load("kafkapy", "produce-batches", self._server.bootstrap, topic, filled, size, 1 << 18)
        for load in loads:
            for number in range(self._options.rounds + 1):
                for client in self._chosen(load):
                    wanted = filled if load == "consume-arrow" else min(filled, self._count(CONSUMED, client, size))
                    self._turn(f"{load} {size} B", client, load, topic, wanted, size, 0, number)
        self._server.delete_topic(topic)

    def _topic(self) -> str:
        self._topics += 1
        topic = f"clients-{self._topics}"
        self._server.create_topic(topic, 1, {})
        return topic

    def _turn(self, name: str, client: str, load: str, topic: str, count: int, size: int, batch: int, at: int) -> None:
        bootstrap, sender = self._server.bootstrap, None
        if client == "loopback":
            bootstrap, sender = self._loopback.address, self._loopback.serve(count * size)
        figures = run_load(client, load, bootstrap, topic, count, size, batch)
        if sender is not None:
            sender.join()
        what = f"round {at}" if at else "warm-up"
        print(f"{name:<44} {client:<16} {what:<8} {figures['per_second']:>14,.0f}/s", file=sys.stderr, flush=True)
        if at:
            self.rounds.setdefault(name, {}).setdefault(client, []).append(figures)


def medians(rounds: Rounds) -> dict[str, dict[str, Figures]]:
    return {
        name: {client: {key: median(each[key] for each in of) for key in of[0]} for client, of in clients.items()}
        for name, clients in rounds.items()
    }


def table(result: dict[str, dict[str, Figures]]) -> str:
    """Returns a line for each load: records per second, CPU seconds per million records, and kafkapy's ratios."""
    lines = []
    for name, clients in result.items():
        lines.append(name)
        own = clients.get("kafkapy")
        rivals = dict(clients)
        batches = result.get(name.replace("consume-arrow", "consume-batches"), {})
        if name.startswith("consume-arrow") and "confluent-kafka" in batches:
            rivals["confluent-kafka, in batches"] = batches["confluent-kafka"]
        for client, figures in rivals.items():
            ratio = f"{own['per_second'] / figures['per_second']:8.2f} x" if own and client != "kafkapy" else ""
            replaced = clients.get(REPLACED.get(client, ""))
            if replaced is not None:
                ratio += f", {figures['per_second'] / replaced['per_second']:.1f} x the rate of {REPLACED[client]}"
            lines.append(
                f"  {client:<28} {figures['per_second']:>14,.0f}/s {figures['mb_per_second']:>9,.1f} MB/s "
                f"{figures['cpu_s_per_million']:>9.3f} CPU s/million {ratio}"
            )
    return "\n".join(lines)


def options() -> argparse.Namespace:
    def words(text: str) -> list[str]:
        return [word for word in text.split(",") if word]

    def numbers(text: str) -> list[int]:
        return [int(word) for word in words(text)]

    loads = list(dict.fromkeys(load for _, load in LOADS))
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds, behind one that warms up")
    parser.add_argument("--sizes", type=numbers, default=[100, 1000], help="bytes of a value, comma separated")
    parser.add_argument("--batches", type=numbers, default=[16_384, 1 << 20], help="batch.size of the producers")
    parser.add_argument("--loads", type=words, default=loads, help=f"of {', '.join(loads)}")
    parser.add_argument("--clients", type=words, default=list(CLIENTS), help="comma separated")
    parser.add_argument("--server", default="kafkapy", choices=("kafkapy", "kafka"))
    parser.add_argument("--scale", type=float, default=1.0, help="shortens every load, to try it out")
    parser.add_argument("--directory", type=Path, help="where the broker keeps its data; default: a temporary one")
    parser.add_argument("--output", type=Path, default=RESULTS / "clients.json")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="kafkapy-clients-", dir=chosen.directory) as directory:
        comparison = Comparison(chosen, Path(directory))
        begin = os.getloadavg()[0]
        comparison.run()
    result = medians(comparison.rounds)
    versions = {client: version(client) for client in ("confluent-kafka", "kafka-python", "aiokafka", "pyarrow")}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine(), "load_before": begin, "versions": versions, "medians": result}
    chosen.output.write_text(json.dumps({**told, "rounds": comparison.rounds}, indent=1))
    print(table(result))


if __name__ == "__main__":
    main()
