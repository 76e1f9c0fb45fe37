"""`python -m bench.reliable`: measures the retry chain and the delay queue on a broker of their own.

    python -m bench.reliable [--parts retry,delay] [--records 50000] [--delayed 5000] [--pending 1000000]

- retry: records per second through `kafkapy retry --in-process`, of which every tenth fails once;
- retry precision: how late a record that failed once is handled again, at 500 records/s;
- precision: how late `--delayed` records arrive whose times are spread over five seconds, before and after the other
  records are pending, under the loads of LOADS;
- pending: with `--pending` pending records, the rate at which the service accepts them, its memory, and the time of a
  start until a record that is due at once arrives.

The output is one JSON object per measurement.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.process_figures import cpu_seconds, memory_mb, reset_peak_memory
from bench.quantiles import quantile
from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable import Delivery, Output, delayed
from tests.broker_process import BrokerProcess
from tests.reliable.tool_process import ToolProcess

DELAY = "__kafkapy_delay"
PATIENCE_S = 600.0
FAR_MS = 30 * 24 * 3600 * 1000
_SPAWN = multiprocessing.get_context("spawn")
RETRY_DELAY_MS = 500
RETRY_RATE = 500
# The loads under which the precision is measured: records/s that the service accepts in addition, and records of 1,000
# bytes per second that another producer writes to the broker.
LOADS = {"quiet": (0, 0), "accepting": (5000, 0), "busy broker": (0, 20_000), "both": (5000, 20_000)}


def copy_or_fail(delivery: Delivery) -> Output:
    """Copies a record; every tenth one fails at its first attempt."""
    if (delivery.value or b"").endswith(b"7") and delivery.attempt == 1:
        raise RuntimeError("fails once")
    return Output("copied", delivery.value, delivery.key)


_failed_ms: dict[bytes, int] = {}


def fail_once(delivery: Delivery) -> Output:
    """Fails at the first attempt; sends the time at which the second one was due."""
    value = delivery.value or b""
    if delivery.attempt == 1:
        _failed_ms[value] = time.time_ns() // 1_000_000
        raise RuntimeError("fails once")
    return Output("copied", b"%d" % (_failed_ms.pop(value) + RETRY_DELAY_MS))


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


@contextmanager
def retrying(directory: Path, bootstrap: str, topic: str, handler: str, delay_ms: int) -> Iterator[ToolProcess]:
    """Runs the retry service on a topic with one retry; yields its process."""
    words = ["retry", "-t", topic, "-g", handler, "--handler", f"bench.reliable:{handler}", "--in-process"]
    with ToolProcess(directory, [*words, "--delays", f"{delay_ms}ms", "-b", bootstrap]) as service:
        yield service


def measure_retry(bootstrap: str, directory: Path, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send("source", b"%d" % number, b"%d" % (number % 997))
    with reader(bootstrap, "copied") as consumer:
        began_s = time.monotonic()
        with retrying(directory, bootstrap, "source", "copy_or_fail", 100) as service:
            found = 0

            def is_done() -> bool:
                nonlocal found
                found += len(consumer.poll(0.1))
                return found >= count

            wait_until(is_done)
            show("retry", records_per_s=count / (time.monotonic() - began_s), cpu_s=cpu_seconds(service.pid))


def paced(rate: int, count: int | None = None) -> Iterator[int]:
    """Yields numbers from 0 up at a rate per second: `count` of them, or without end."""
    began_s = time.monotonic()
    number = 0
    while count is None or number < count:
        due = int((time.monotonic() - began_s) * rate) + 1
        for _ in range(min(due, count or due) - number):
            yield number
            number += 1
        time.sleep(0.005)


def lateness(consumer: Consumer, count: int) -> dict[str, float]:
    """Returns how late `count` records arrive whose values are the times, in ms since 1970, at which they are due."""
    late_ms: list[float] = []

    def is_done() -> bool:
        for each in consumer.poll(0.01):
            late_ms.append(time.time_ns() / 1e6 - int(each.value))
        return len(late_ms) >= count

    wait_until(is_done)
    return {"p50_ms": quantile(late_ms, 0.5), "p99_ms": quantile(late_ms, 0.99), "most_ms": max(late_ms)}


def accept_far_records(bootstrap: str, rate: int) -> None:
    """Sends records that are due in a month or so to the delay service, until the process is terminated."""
    due_ms = time.time_ns() // 1_000_000 + FAR_MS
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in paced(rate):
            send_delayed(producer, "due", b"x" * 100, due_ms + number)


def send_timed(bootstrap: str, rate: int, count: int) -> None:
    """Sends records to the topic `timed`."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in paced(rate, count):
            producer.send("timed", b"%d" % number)


@contextmanager
def load(bootstrap: str, name: str) -> Iterator[None]:
    """Runs one of LOADS in processes of their own."""
    accepted, written = LOADS[name]
    with ExitStack() as stack:
        if accepted:
            process = _SPAWN.Process(target=accept_far_records, args=(bootstrap, accepted), daemon=True)
            process.start()
            stack.callback(process.terminate)
        if written:
            words = ["producer-perf-test", "--bootstrap-server", bootstrap, "--topic", "busy", "--record-size", "1000"]
            words += ["--num-records", "1000000000", "--throughput", str(written)]
            other = subprocess.Popen([sys.executable, "-m", "kafkapy", *words], stdout=subprocess.DEVNULL)
            stack.callback(other.wait)
            stack.callback(other.kill)
        if accepted or written:
            time.sleep(2)  # the load has begun
        yield


def measure_retry_precision(bootstrap: str, directory: Path, name: str) -> None:
    count = 5 * RETRY_RATE
    with (
        load(bootstrap, name),
        retrying(directory, bootstrap, "timed", "fail_once", RETRY_DELAY_MS),
        reader(bootstrap, "copied") as consumer,
    ):
        sender = _SPAWN.Process(target=send_timed, args=(bootstrap, RETRY_RATE, count), daemon=True)
        sender.start()
        show(f"retry precision, {name}", **lateness(consumer, count))


def measure_precision(bootstrap: str, name: str, count: int) -> None:
    with (
        load(bootstrap, name),
        reader(bootstrap, "due") as consumer,
        Producer(bootstrap_servers=bootstrap) as producer,
    ):
        first_ms = time.time_ns() // 1_000_000 + 2000
        for number in range(count):
            at_ms = first_ms + number * 5000 // count
            send_delayed(producer, "due", b"%d" % at_ms, at_ms)
        show(f"precision, {name}", **lateness(consumer, count))


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


def measure_start(bootstrap: str, service: ToolProcess) -> None:
    """Kills the service, and measures how long it takes to send a record that is due at once."""
    service.kill()
    began_s = time.monotonic()
    service.start()
    reset_peak_memory(service.pid)
    with Producer(bootstrap_servers=bootstrap) as producer, reader(bootstrap, "due") as consumer:
        send_delayed(producer, "due", b"now", time.time_ns() // 1_000_000)
        wait_until(lambda: any(each.value == b"now" for each in consumer.poll(0.1)))
    seconds = time.monotonic() - began_s
    show("start", seconds=seconds, memory_mb=memory_mb(service.pid), peak_mb=memory_mb(service.pid, peak=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default="retry,delay", type=lambda text: text.split(","))
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--delayed", type=int, default=5000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-reliable-") as name:
        directory = Path(name)
        with BrokerProcess(directory / "broker") as broker:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                topics = [NewTopic("source", 3, 1), NewTopic("timed", 3, 1), NewTopic("copied", 1, 1)]
                topics.append(NewTopic("due", 1, 1))
                admin.create_topics([*topics, NewTopic("busy", 3, 1, configs={"retention.bytes": "500000000"})]).check()
            if "retry" in options.parts:
                measure_retry(broker.bootstrap, directory / "retry", options.records)
                for load_name in ("quiet", "busy broker"):
                    measure_retry_precision(broker.bootstrap, directory / load_name, load_name)
            if "delay" in options.parts:
                words = ["delay", "--instance", "1", "-b", broker.bootstrap]
                with ToolProcess(directory / "delay", words) as service:
                    measure_precision(broker.bootstrap, "quiet", options.delayed)
                    measure_pending(broker.bootstrap, service, options.pending)
                    measure_start(broker.bootstrap, service)
                    for load_name in LOADS:
                        measure_precision(broker.bootstrap, load_name, options.delayed)


if __name__ == "__main__":
    main()
