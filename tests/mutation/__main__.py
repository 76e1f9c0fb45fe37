"""Draws mutants at random, runs the tests against each, and reports which survive.

    python -m tests.mutation --count 300 --seed 20261122

See docs/decisions/mutation-testing.md. A run that was stopped continues when the command is repeated.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from pathlib import Path

from tests.mutation.draw import drawn, equivalents, sources
from tests.mutation.driver import Judge, Results, Run, Verdict, report
from tests.mutation.scratch import Scratch
from tests.mutation.targets import TARGETS, stages, target_of

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
    add("--list", action="store_true", help="show the mutants without testing them")
    add("--report", action="store_true", help="report the verdicts of the results file, and test nothing")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    known = equivalents()
    paths = sources(ROOT, options.only or [target.path for target in TARGETS])
    mutants = (each for each in drawn(ROOT, paths, options.seed) if (each.path, each.before, each.after) not in known)
    if options.list:
        for _, mutant in zip(range(options.count), mutants, strict=False):
            print(f"{mutant.key}  ({mutant.operator})")
        return
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = Results(options.results)
    if not options.report:
        verdicts = test_all(Run(mutants, options.count, results), options)
    else:
        verdicts = list(results.verdicts.values())
    print(*report(verdicts, lambda path: target_of(path).path), sep="\n")


def test_all(run: Run, options: argparse.Namespace) -> list[Verdict]:
    """Tests the mutants in as many copies of the tree as there are workers."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as temporary:
        folder = options.scratch or Path(temporary)

        def work(number: int) -> None:
            judge = Judge(Scratch(ROOT, folder / str(number)), lambda path: stages(ROOT, path), tuple(options.limits))
            run.work(judge, lambda verdict: print(f"{verdict.verdict:9} {verdict.key}  [{verdict.test}]", flush=True))
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
