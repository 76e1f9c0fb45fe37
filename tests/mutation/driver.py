"""The verdict on each drawn mutant, and the file of results by which a run is resumed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.mutation.draw import Mutant
from tests.mutation.scratch import PytestRun

KILLED, TIMED_OUT, SURVIVED, INVALID = "killed", "timed out", "survived", "does not compile"
SURVIVED_NARROW = "survived the narrow tests"
ALIVE = (SURVIVED, SURVIVED_NARROW)
COUNTED = (KILLED, TIMED_OUT, *ALIVE)


class Stages(NamedTuple):
    """Lists of tests to run one after the other until a test fails; `wide` is empty if it is left to a later run."""

    narrow: tuple[tuple[str, ...], ...]
    wide: tuple[tuple[str, ...], ...]


StagesOf = Callable[[Mutant], Stages]


class Verdict(NamedTuple):
    """The outcome of one mutant; `test` is the test that killed it."""

    key: str
    path: str
    operator: str
    verdict: str
    test: str


class Tree(Protocol):
    """The tree in which mutants are tested; see `Scratch`."""

    def apply(self, path: str, source: str) -> bool: ...
    def restore(self, path: str) -> None: ...
    def test(self, tests: tuple[str, ...], limit_s: float) -> PytestRun: ...


class Judge:
    """Tests mutants in one tree.

    A mutant is killed only by a test that fails twice on it, which the tree sees to, and passes on the unchanged tree.
    A test that fails there as well says nothing, and is left out of the following runs. A run that ends without the
    name of a test is repeated too.
    """

    def __init__(
        self,
        tree: Tree,
        stages_of: StagesOf,
        limits_s: tuple[float, float],
        is_known_to_pass: Callable[[str], bool] = lambda test: False,
    ) -> None:
        self._tree = tree
        self._stages_of = stages_of
        self._narrow_limit_s, self._wide_limit_s = limits_s
        self._is_known_to_pass = is_known_to_pass
        self._sound: set[str] = set()
        self.unsound: set[str] = set()

    def judge(self, mutant: Mutant) -> Verdict:
        stages = self._stages_of(mutant)
        verdict, test = SURVIVED, ""
        for number, tests in enumerate((*stages.narrow, *stages.wide)):
            limit_s = self._wide_limit_s if number >= len(stages.narrow) else self._narrow_limit_s
            verdict, test = self._run_stage(mutant, tests, limit_s)
            if verdict != SURVIVED:
                break
        if verdict == SURVIVED and not stages.wide:
            verdict = SURVIVED_NARROW
        return Verdict(mutant.key, mutant.path, mutant.operator, verdict, test)

    def _run_stage(self, mutant: Mutant, tests: tuple[str, ...], limit_s: float) -> tuple[str, str]:
        while True:
            run = self._run_mutant(mutant, (*tests, *(f"--deselect={test}" for test in sorted(self.unsound))), limit_s)
            if run is None:
                return INVALID, ""
            if run.passed:
                return SURVIVED, ""
            if run.failed and self._is_sound((run.failed,), limit_s):
                return KILLED, run.failed
            if run.failed:
                self.unsound.add(run.failed)
                continue
            # Without the name of a test, the time ran out or the interpreter crashed.
            again = self._run_mutant(mutant, tests, limit_s) if self._is_sound(tests, limit_s) else None
            if again is None or again.passed:
                return SURVIVED, ""
            return TIMED_OUT if run.timed_out else KILLED, f"{' '.join(tests[:3])}: {run.output[-200:]}"

    def _run_mutant(self, mutant: Mutant, tests: tuple[str, ...], limit_s: float) -> PytestRun | None:
        try:
            return self._tree.test(tests, limit_s) if self._tree.apply(mutant.path, mutant.source) else None
        finally:
            self._tree.restore(mutant.path)

    def _is_sound(self, tests: tuple[str, ...], limit_s: float) -> bool:
        """Returns whether the tests pass on the unchanged tree."""
        if all(test.startswith("--") or self._is_known_to_pass(test) for test in tests):
            return True
        name = " ".join(tests)
        if name not in self._sound and name not in self.unsound:
            (self._sound if self._tree.test(tests, limit_s).passed else self.unsound).add(name)
        return name in self._sound


class Results:
    """Verdicts by key, in a file of one JSON object per line; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path.exists() else []
        self.verdicts = {row["key"]: Verdict(**row) for row in map(json.loads, lines)}

    def add(self, verdict: Verdict) -> None:
        with self._lock:
            self.verdicts[verdict.key] = verdict
            with self._path.open("a") as file:
                file.write(json.dumps(verdict._asdict()) + "\n")


class Run:
    """Takes mutants from the draw until `count` of them have a verdict that counts.

    Mutants whose verdict is one of `tested_again` are tested although the file of results contains them.
    """

    def __init__(
        self, mutants: Iterable[Mutant], count: int, results: Results, tested_again: tuple[str, ...] = ()
    ) -> None:
        self._mutants: Iterator[Mutant] = iter(mutants)
        self._lock = threading.Lock()
        self._missing = count
        self._results = results
        self._tested_again = tested_again
        self.verdicts: list[Verdict] = []

    def work(self, judge: Judge, show: Callable[[Verdict], Any], wait: Callable[[], Any] = lambda: None) -> None:
        """Tests mutants one after the other; each thread calls this with a judge of its own.

        `wait` is called before each mutant and returns when it may be tested.
        """
        while True:
            wait()
            mutant = self._next()
            if mutant is None:
                return
            verdict = judge.judge(mutant)
            self._results.add(verdict)
            show(verdict)
            with self._lock:
                self._count(verdict)

    def _next(self) -> Mutant | None:
        with self._lock:
            while self._missing > 0:
                mutant = next(self._mutants, None)
                if mutant is None:
                    return None
                self._missing -= 1
                known = self._results.verdicts.get(mutant.key)
                if known is None or known.verdict in self._tested_again:
                    return mutant
                self._count(known)
            return None

    def _count(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        if verdict.verdict not in COUNTED:
            self._missing += 1


def report(verdicts: Iterable[Verdict], package: Callable[[str], str]) -> Iterator[str]:
    """Yields the lines of the report: the score of each package, the total, and the survivors."""
    counted = [each for each in verdicts if each.verdict in COUNTED]
    for name in (*sorted({package(each.path) for each in counted}), ""):
        part = [each for each in counted if not name or package(each.path) == name]
        dead = sum(each.verdict not in ALIVE for each in part)
        yield f"{name or 'total':28} {dead:4} of {len(part):4} killed  {100 * dead / max(1, len(part)):5.1f} %"
    late = sum(each.verdict == TIMED_OUT for each in counted)
    yield f"{late} of these by the time limit; {len(list(verdicts)) - len(counted)} did not compile and are not counted"
    for each in sorted(each for each in counted if each.verdict in ALIVE):
        yield f"{each.verdict}  {each.key}"
