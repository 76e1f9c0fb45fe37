"""Runs schedules of replicated partitions: `python -m tests.simulation.replication --seed N --count M`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter

from tests.simulation.replication.history import InvariantBroken
from tests.simulation.replication.schedule import run_seed


def main() -> int:
    """Runs the schedules that the command line names; returns 1 if one breaks an invariant."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.replication", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="the number of seeds")
    parser.add_argument("--trace", action="store_true", help="print the events and the log of a schedule that fails")
    arguments = parser.parse_args()
    logging.disable(logging.NOTSET if arguments.trace else logging.CRITICAL)
    if arguments.trace:
        logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    began, failures, records = time.perf_counter(), 0, 0
    gated: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            world = run_seed(seed, is_traced=arguments.trace).world
            records += world.history.acknowledgements
            gated += world.gated
        except InvariantBroken as error:
            if arguments.trace:
                traceback.print_exception(error)
            print(error, flush=True)
            failures += 1
    taken = time.perf_counter() - began
    print(
        f"{arguments.count} schedules, {failures} failures, {records} records acknowledged by all; the gate appended "
        f"{gated['batches_appended']} batches, {gated['produces_awaited']} of its produce requests had to wait for "
        f"replicas, and it answered {gated['follower_fetches_answered']} fetches of followers; "
        f"{taken * 1000 / arguments.count:.0f} s per 1,000"
    )
    return min(1, failures)


if __name__ == "__main__":
    sys.exit(main())
