"""Fuzzes everything that a broker reads before authentication, and prints how many inputs were tried.

    python -m tests.fuzz --cpu-seconds 3600 --seed 1

The inputs are frames, TLS records, SASL tokens, SCRAM messages, JSON Web Tokens, key sets, JAAS texts, DER, PEM and
JKS. The program runs until it has used the given CPU time. It fails at the first input that is handled in another way
than documented, and if the broker's memory grows.
"""

from __future__ import annotations

import argparse
import random
import sys

from tests.fuzz.targets import Targets

# Inputs of one target before the next one has its turn: about a second of CPU time each.
ROUNDS = {"text": 10_000, "store": 2_000, "wire": 320}
# The broker may use this much more memory after the first turn.
GROWTH_KILOBYTES = 32 << 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cpu-seconds", type=float, default=3600, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="default: a random one")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    counts: dict[str, int] = {}
    with Targets() as targets:
        try:
            fuzz(targets, counts, given.cpu_seconds, given.seed)
        finally:
            print(f"{targets.cpu_seconds():.0f} s of CPU time")
            for name, count in counts.items():
                print(f"{count:12,} {name}")
    return 0


def fuzz(targets: Targets, counts: dict[str, int], cpu_seconds: float, seed: int) -> None:
    """Gives each target its turn until the CPU time is used up, and counts the inputs of each in `counts`."""
    turn, kilobytes, descriptors = 0, 0, 0
    while targets.cpu_seconds() < cpu_seconds:
        for name, run in targets.by_name.items():
            rounds = ROUNDS[name.partition(":")[0]]
            try:
                run(random.Random(f"{seed} {turn} {name}"), rounds)
            except BaseException:
                print(f"ended in turn {turn} of {name}", file=sys.stderr)
                raise
            counts[name] = counts.get(name, 0) + rounds
        turn += 1
        now = targets.broker_kilobytes(), targets.open_descriptors()
        if turn == 2:
            kilobytes, descriptors = now
        if turn > 2:
            assert now[0] < kilobytes + GROWTH_KILOBYTES, f"the broker grows: {now[0]} after {kilobytes} KB"
            assert now[1] <= descriptors + 2, "the broker does not close its connections"
        if turn % 20 == 0:
            total = sum(counts.values())
            print(f"{targets.cpu_seconds():.0f} s of CPU time, {total:,} inputs, broker {now[0]} KB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
