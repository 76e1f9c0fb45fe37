"""`python -m bench.reliable`: measures the retry chain and the delay queue on a broker of their own.

    python -m bench.reliable [--records 50000] [--delayed 5000] [--pending 1000000]

- retry: records per second through `kafkapy retry --in-process`, of which every tenth fails once;
- precision: how late `--delayed` records arrive whose times are spread over five seconds;
- pending: with so many pending records, the rate at which the service accepts them, its memory, and the time of a
  start until a record that is due at once arrives.

The output is one JSON object per measurement.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.process_figures import cpu_seconds, memory_mb
from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable import Delivery, Output, delayed
from tests.broker_process import BrokerProcess
from tests.reliable.tool_process import ToolProcess

DELAY = "__kafkapy_delay"
PATIENCE_S = 600.0
FAR_MS = 30 * 24 * 3600 * 1000


def copy_or_fail(delivery: Delivery) -> Output:
    """Copies a record; every tenth one fails at its first attempt."""
    if (delivery.value or b"").endswith(b"7") and delivery.attempt == 1:
        raise RuntimeError("fails once")
    return Output("copied", delivery.value, delivery.key)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the condition was not met within {PATIENCE_S} s")


def reader(bootstrap: str, topic: str) -> Consumer:
    """Returns a consumer of the only partition of a topic, from its present end on."""
    consumer = Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed", fetch_max_wait_ms=50)
    consumer.assign([(topic, 0)])
    consumer.seek_to_end()
    consumer.position((topic, 0))  # type: ignore[arg-type]
    return consumer


def committed(bootstrap: str, group: str) -> int:
    """Returns the sum of a group's offsets."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_group_offsets([group]).values.get(group, {})
    return sum(each.offset for each in offsets.values())


def show(name: str, **figures: float) -> None:
    print(json.dumps({"measurement": name, **{key: round(value, 3) for key, value in figures.items()}}), flush=True)


def send_delayed(producer: Producer, target: str, value: bytes, at_ms: int) -> None:
    output = delayed(target, value, b"%d" % (at_ms % 997), at_ms=at_ms)
    producer.send(output.topic, output.value, output.key, headers=output.headers)


def measure_retry(bootstrap: str, directory: Path, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send("source", b"%d" % number, b"%d" % (number % 997))
    words = ["retry", "-t", "source", "-g", "copies", "--handler", "bench.reliable:copy_or_fail", "--in-process"]
    with reader(bootstrap, "copied") as consumer:
        began_s = time.monotonic()
        with ToolProcess(directory, [*words, "--delays", "100ms", "-b", bootstrap]) as service:
            found = 0

            def is_done() -> bool:
                nonlocal found
                found += len(consumer.poll(0.1))
                return found >= count

            wait_until(is_done)
            show("retry", records_per_s=count / (time.monotonic() - began_s), cpu_s=cpu_seconds(service.pid))


def measure_precision(bootstrap: str, service: ToolProcess, count: int) -> None:
    late_ms: list[float] = []
    with reader(bootstrap, "due") as consumer, Producer(bootstrap_servers=bootstrap) as producer:
        first_ms = time.time_ns() // 1_000_000 + 2000
        for number in range(count):
            at_ms = first_ms + number * 5000 // count
            send_delayed(producer, "due", b"%d" % at_ms, at_ms)

        def is_done() -> bool:
            for each in consumer.poll(0.01):
                late_ms.append(time.time_ns() / 1e6 - int(each.value))
            return len(late_ms) >= count

        wait_until(is_done)
    late_ms.sort()
    show("precision", p50_ms=late_ms[count // 2], p99_ms=late_ms[count * 99 // 100], most_ms=late_ms[-1])


def measure_pending(bootstrap: str, service: ToolProcess, count: int) -> None:
    before_mb = memory_mb(service.pid)
    began_s = time.monotonic()
    base = committed(bootstrap, "kafkapy-delay")
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            send_delayed(producer, "due", b"x" * 100, now_ms + 3_600_000 + number * 7919 % FAR_MS)
        producer.flush()

        def is_accepted() -> bool:
            time.sleep(0.2)
            return committed(bootstrap, "kafkapy-delay") - base >= count

        wait_until(is_accepted)
        show(
            "pending",
            accepted_per_s=count / (time.monotonic() - began_s),
            bytes_each=(memory_mb(service.pid) - before_mb) * (1 << 20) / count,
            memory_mb=memory_mb(service.pid),
        )
        service.kill()
        began_s = time.monotonic()
        service.start()
        with reader(bootstrap, "due") as consumer:
            send_delayed(producer, "due", b"now", time.time_ns() // 1_000_000)
            wait_until(lambda: any(each.value == b"now" for each in consumer.poll(0.1)))
        show("start", seconds=time.monotonic() - began_s, memory_mb=memory_mb(service.pid))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--delayed", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-reliable-") as name:
        directory = Path(name)
        with BrokerProcess(directory / "broker") as broker:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                topics = [NewTopic("source", 3, 1), NewTopic("copied", 1, 1), NewTopic("due", 1, 1)]
                admin.create_topics(topics).check()
            measure_retry(broker.bootstrap, directory / "retry", options.records)
            words = ["delay", "--instance", "1", "-b", broker.bootstrap]
            with ToolProcess(directory / "delay", words) as service:
                measure_precision(broker.bootstrap, service, options.delayed)
                measure_pending(broker.bootstrap, service, options.pending)


if __name__ == "__main__":
    main()
