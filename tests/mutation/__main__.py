"""Draws mutants at random, runs the tests against each, and reports which survive.

    python -m tests.mutation --count 300 --seed 20261122

See docs/decisions/mutation-testing.md. A run that was stopped continues when the command is repeated.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.mutation.covering import CoveringTests
from tests.mutation.draw import Mutant, drawn, equivalents, sources
from tests.mutation.driver import ALIVE, COUNTED, SURVIVED_NARROW, Judge, Results, Run, Stages, Verdict, report
from tests.mutation.scratch import Scratch
from tests.mutation.targets import TARGETS, target_of

ROOT = Path(__file__).parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--count", type=int, default=300, help="how many mutants to test (default: %(default)s)")
    add("--seed", type=int, default=20261122, help="seed of the draw (default: %(default)s)")
    add("--only", nargs="+", metavar="PATH", help="draw from these folders only, such as kafkapy/storage")
    add("--workers", type=int, default=1, help="how many copies of the tree to test in (default: %(default)s)")
    add(
        "--results",
        type=Path,
        default=ROOT / "build" / "mutation.jsonl",
        help="file of verdicts (default: build/mutation.jsonl)",
    )
    add("--scratch", type=Path, default=None, help="folder for the copies (default: a temporary one)")
    add("--limits", type=float, nargs=2, default=(600.0, 1800.0), metavar="S", help="seconds for narrow, wide tests")
    add("--load", type=float, metavar="N", help="workers but the first wait while the load average is N or more")
    add("--narrow", action="store_true", help="leave the wide tests of survivors to a later run")
    add("--again", action="store_true", help="test the survivors of the results file again")
    add("--list", action="store_true", help="show the mutants without testing them")
    add("--report", action="store_true", help="report the verdicts of the results file, and test nothing")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    paths = sources(ROOT, options.only or [target.path for target in TARGETS])
    equivalent: list[Mutant] = []
    mutants = not_equivalent(drawn(ROOT, paths, options.seed), equivalent)
    if options.list:
        for _, mutant in zip(range(options.count), mutants, strict=False):
            print(f"{mutant.key}  ({mutant.operator})")
        return
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = Results(options.results)
    if not options.report:
        again = ALIVE if options.again else () if options.narrow else (SURVIVED_NARROW,)
        verdicts = test_all(Run(mutants, options.count, results, again), options)
    else:
        verdicts = known_verdicts(mutants, options.count, results)
    print(*report(verdicts, lambda path: target_of(path).path), sep="\n")
    print(f"{len(equivalent)} were left out of the draw as equivalent")


def not_equivalent(mutants: Iterator[Mutant], equivalent: list[Mutant]) -> Iterator[Mutant]:
    """Yields the mutants that are not in equivalent.toml, and appends the others to `equivalent`."""
    known = equivalents()
    for each in mutants:
        if (each.path, each.before, each.after, each.earlier) in known:
            equivalent.append(each)
        else:
            yield each


def known_verdicts(mutants: Iterator[Mutant], count: int, results: Results) -> list[Verdict]:
    """Returns the verdicts of the first `count` mutants of the draw, up to the first that was not tested yet."""
    found: list[Verdict] = []
    while sum(each.verdict in COUNTED for each in found) < count:
        verdict = results.verdicts.get(next(mutants).key)
        if verdict is None:
            break
        found.append(verdict)
    return found


def test_all(run: Run, options: argparse.Namespace) -> list[Verdict]:
    """Tests the mutants in as many copies of the tree as there are workers."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as temporary:
        folder = options.scratch or Path(temporary)
        covering = CoveringTests(ROOT, folder / "coverage")

        def work(number: int) -> None:
            scratch = Scratch(ROOT, folder / str(number))

            def stages_of(mutant: Mutant) -> Stages:
                target = target_of(mutant.path)
                covered = covering.of(mutant.path, mutant.line, scratch.measure)
                wide = () if options.narrow else (target.wide,)
                # The complete narrow list runs against survivors, because a cached value is computed in one test only.
                return Stages(covered, (target.narrow, *wide) if wide else ())

            judge = Judge(scratch, stages_of, tuple(options.limits), covering.passed)

            def wait() -> None:
                while number and options.load is not None and os.getloadavg()[0] >= options.load:
                    time.sleep(5)

            run.work(
                judge, lambda verdict: print(f"{verdict.verdict:9} {verdict.key}  [{verdict.test}]", flush=True), wait
            )
            for test in sorted(judge.unsound):
                print(f"fails without a mutant as well: {test}", flush=True)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return run.verdicts


if __name__ == "__main__":
    main()
