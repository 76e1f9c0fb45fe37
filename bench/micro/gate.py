"""`python -m bench.micro.gate [--against COMMIT]`: finds what has become much slower, by ratios within one run.

It checks two ratios with wide margins, because machines differ and are shared:

- `_core` against tests/reference, in one process: the factor may not fall below a third of the one in baselines.json
  (`--keep` rewrites that file).
- This tree against another commit that is built in the same job: both run bench/micro in turn, and the best time of a
  benchmark may not be more than 1.5 times the other's. Benchmarks that the other commit lacks are not compared.

Exits with status 1 and names the benchmarks that are too slow.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.micro.reference_pairs import PAIRS, speed_up
from bench.other_commit import build_commit, other_environment

ROOT = Path(__file__).parents[2]
BASELINES = Path(__file__).with_name("baselines.json")
LEAST_SHARE_OF_BASELINE = 1 / 3
MOST_OF_OTHER_COMMIT = 1.5
TURNS = 3

Times = dict[str, float]  # benchmark -> best seconds


def check_references() -> list[str]:
    kept = json.loads(BASELINES.read_text())
    complaints = []
    for name, pair in PAIRS.items():
        factor = speed_up(pair)
        print(f"{name:<24} {factor:8.1f} times the reference's speed; kept: {kept[name]:.1f}", flush=True)
        if factor < kept[name] * LEAST_SHARE_OF_BASELINE:
            complaints.append(f"{name}: {factor:.1f} times the reference's speed, {kept[name]:.1f} when it was kept")
    return complaints


def keep_references() -> None:
    factors = {name: round(speed_up(pair), 1) for name, pair in PAIRS.items()}
    BASELINES.write_text(json.dumps(factors, indent=1) + "\n")
    print(BASELINES.read_text())


def run_micro(tree: Path) -> Times:
    with tempfile.NamedTemporaryFile(suffix=".json") as output:
        # Each tree runs its own bench/micro; a benchmark that differs has no counterpart.
        command = [sys.executable, "-m", "pytest", "-q", "bench/micro", f"--benchmark-json={output.name}"]
        command += [
            "--benchmark-max-time=0.2",
            "--benchmark-min-time=0.0002",
            "--benchmark-min-rounds=3",
            "-p",
            "no:randomly",
        ]
        done = subprocess.run(command, cwd=tree, env=other_environment(tree), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"bench/micro failed in {tree}:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        results = json.loads(Path(output.name).read_text())["benchmarks"]
        return {each["fullname"]: each["stats"]["min"] for each in results}


def best_of(turns: list[Times]) -> Times:
    return {name: min(turn[name] for turn in turns) for name in turns[0]}


def slower(ours: Times, theirs: Times, most: float = MOST_OF_OTHER_COMMIT) -> list[str]:
    """Returns the benchmarks of both trees that take more than `most` times as long in ours."""
    return [
        f"{name}: {ours[name] * 1e6:.2f} us, {theirs[name] * 1e6:.2f} us there ({ours[name] / theirs[name]:.2f} times)"
        for name in ours
        if name in theirs and ours[name] > theirs[name] * most
    ]


def check_against(commit: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="kafkapy-gate-") as directory:
        other = Path(directory)
        build_commit(commit, other)
        ours: list[dict[str, float]] = []
        theirs: list[dict[str, float]] = []
        for turn in range(TURNS):
            for tree, times in ((ROOT, ours), (other, theirs)):
                times.append(run_micro(tree))
            if not slower(best_of(ours), best_of(theirs)):
                break  # no benchmark is in doubt
            print(f"turn {turn + 1}: something is slower; repeating, if a turn is left", flush=True)
        best, others = best_of(ours), best_of(theirs)
        for name in best:
            if name in others:
                print(f"{name}: {best[name] / others[name]:.2f}")
        return slower(best, others)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.micro.gate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT", help="a commit to build and to compare with")
    parser.add_argument("--keep", action="store_true", help="write baselines.json instead of comparing with it")
    options = parser.parse_args()
    if options.keep:
        keep_references()
        return 0
    complaints = check_references()
    if options.against:
        complaints += check_against(options.against)
    for complaint in complaints:
        print(f"TOO SLOW  {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
