"""`python -m bench.ephemeral`: measures how long a test suite waits for its broker.

    python -m bench.ephemeral [--count 20] [--output FILE.json]

Each turn starts a new `kafkapy.testing.Broker`, as the pytest plug-in does, and measures from the call of `start` until
the first record of a new topic is acknowledged, and until a member of a new group has read it. The result is the
median, with the quickest and the slowest turn. The client's modules are imported before, as in a test suite whose test
files import them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.measure import machine
from bench.programs import RESULTS
from kafkapy.client import Consumer, Producer
from kafkapy.testing import Broker

# The goal for the median time until the first record is acknowledged.
GOAL_S = 0.3
FIGURES = ("ready_s", "acknowledged_s", "read_s", "stop_s")


def turn() -> dict[str, float]:
    """Runs one broker; returns the seconds from its start to each event, and those of its stop."""
    begin = time.monotonic()
    broker = Broker().start()
    figures = {"ready_s": time.monotonic() - begin}
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(broker.create_topic("first"), b"record").result(30)
        figures["acknowledged_s"] = time.monotonic() - begin
    with Consumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="readers", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["first"])
        while not consumer.poll(10):
            pass
        figures["read_s"] = time.monotonic() - begin
    begin = time.monotonic()
    broker.stop()
    return {**figures, "stop_s": time.monotonic() - begin}


def main(words: Sequence[str] | None = None) -> None:
    """Runs the turns, prints their figures and writes them to a file; `words` are the arguments of the command."""
    parser = argparse.ArgumentParser(prog="python -m bench.ephemeral", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--output", type=Path, default=RESULTS / "ephemeral.json")
    chosen = parser.parse_args(words)
    turn()  # reads the program into the page cache
    turns = [turn() for _ in range(chosen.count)]
    print(f"{'':16}{'median':>8}{'lowest':>8}{'highest':>8}")
    for name in FIGURES:
        values = [each[name] for each in turns]
        print(f"{name:16}{median(values):8.3f}{min(values):8.3f}{max(values):8.3f}")
    found = median(each["acknowledged_s"] for each in turns)
    print(f"goal: acknowledged_s below {GOAL_S}: {'reached' if found < GOAL_S else 'missed'}")
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({"machine": machine(), "turns": turns}, indent=2))


if __name__ == "__main__":
    main()
