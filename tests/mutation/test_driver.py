"""The draw of mutants, the verdict on each, and the file of results, with a tree that only pretends to run tests."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.mutation import driver
from tests.mutation.__main__ import ROOT
from tests.mutation.draw import Mutant, drawn, equivalents, sources
from tests.mutation.driver import INVALID, KILLED, SURVIVED, TIMED_OUT, Judge, Results, Run, report
from tests.mutation.scratch import PytestRun
from tests.mutation.targets import TARGETS, stages, target_of

PASSED = PytestRun(True, False, "", "")
NARROW, WIDE = ("narrow",), ("wide",)


def made(number=1, path="kafkapy/storage/log.py"):
    return Mutant(path, number, "operator", "before", f"after {number}", f"source {number}")


class ScriptedTree:
    """Fails the tests that `failing` names for a source; `unsound` tests fail without a mutant as well."""

    def __init__(self, failing=(), unsound=(), broken=(), slow=()):
        self.failing, self.unsound, self.broken, self.slow = dict(failing), set(unsound), set(broken), set(slow)
        self.source = None
        self.runs = []

    def apply(self, path, source):
        assert self.source is None
        self.source = source
        return source not in self.broken

    def restore(self, path):
        self.source = None

    def test(self, tests, limit_s):
        self.runs.append(tests)
        if self.source in self.slow:
            return PytestRun(False, True, "", "")
        left_out = {test.removeprefix("--deselect=") for test in tests}
        failing = set(self.unsound)
        if self.source in self.failing:
            failing.add(self.failing[self.source])
        if len(tests) == 1 and tests[0] in failing:
            return PytestRun(False, False, tests[0], "")
        found = [test for test in sorted(failing) if test.startswith(tests[0]) and test not in left_out]
        return PytestRun(False, False, found[0], "") if found else PASSED


def verdict_in(tree):
    found = Judge(tree, lambda path: (NARROW, WIDE), (1, 2)).judge(made())
    return found.verdict, found.test


def test_a_mutant_that_narrow_tests_kill_does_not_meet_the_wide_ones():
    tree = ScriptedTree(failing={"source 1": "narrow::a"})
    assert verdict_in(tree) == (KILLED, "narrow::a")
    assert WIDE not in tree.runs


def test_a_survivor_has_passed_both():
    tree = ScriptedTree()
    assert verdict_in(tree) == (SURVIVED, "")
    assert tree.runs == [NARROW, WIDE]


def test_a_test_that_fails_on_the_unchanged_tree_kills_nothing():
    assert verdict_in(ScriptedTree(unsound={"narrow::flaky"})) == (SURVIVED, "")
    both = ScriptedTree(failing={"source 1": "narrow::z"}, unsound={"narrow::flaky"})
    assert verdict_in(both) == (KILLED, "narrow::z")


def test_time_out_and_compiler_error_have_verdicts_of_their_own():
    assert verdict_in(ScriptedTree(slow={"source 1"})) == (TIMED_OUT, "narrow")
    assert verdict_in(ScriptedTree(broken={"source 1"})) == (INVALID, "")


def verdicts_of(results, mutants, count, tree):
    run = Run(mutants, count, results)
    run.work(Judge(tree, lambda path: (NARROW, WIDE), (1, 2)), lambda verdict: None)
    return [each.verdict for each in run.verdicts]


def test_what_does_not_compile_is_replaced_by_the_next_of_the_draw(tmp_path):
    tree = ScriptedTree(failing={"source 3": "narrow::a"}, broken={"source 1"})
    found = verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 2, tree)
    assert found == [INVALID, SURVIVED, KILLED]


def test_a_repeated_run_goes_on_where_the_first_stopped(tmp_path):
    verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 2, ScriptedTree())
    tree = ScriptedTree()
    assert verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 3, tree) == [SURVIVED] * 3
    assert tree.runs == [NARROW, WIDE]


def test_the_report_counts_by_package_and_names_the_survivors():
    rows = [
        driver.Verdict(f"{path}:{number}", path, "operator", verdict, "")
        for number, (path, verdict) in enumerate(
            [("a/x", KILLED), ("a/x", SURVIVED), ("b/x", TIMED_OUT), ("b/x", INVALID), ("b/x", KILLED)]
        )
    ]
    lines = [" ".join(line.split()) for line in report(rows, lambda path: path[0])]
    assert lines == [
        "a 1 of 2 killed 50.0 %",
        "b 2 of 2 killed 100.0 %",
        "total 3 of 4 killed 75.0 %",
        "1 of these by the time limit; 1 did not compile and are not counted",
        "survived a/x:1",
    ]


def test_the_draw_is_repeatable_and_takes_one_mutant_of_a_line():
    paths = sources(ROOT, ["kafkapy/quorum"])
    first = list(islice(drawn(ROOT, paths, 7), 40))
    assert first == list(islice(drawn(ROOT, paths, 7), 40))
    assert first != list(islice(drawn(ROOT, paths, 8), 40))
    assert len({(each.path, each.line) for each in first}) == 40


def test_every_target_has_sources_and_tests():
    for target in TARGETS:
        assert sources(ROOT, [target.path])
        assert not [test for test in (*target.narrow, *target.wide) if not (ROOT / test).exists()]


@pytest.mark.parametrize(
    ("path", "target", "first"),
    [
        ("kafkapy/storage/log.py", "kafkapy/storage", "tests/unit/storage/test_log.py"),
        ("kafkapy/_core/bytes/slab.pyx", "kafkapy/_core/bytes", "tests/unit/_core/bytes"),
    ],
)
def test_the_tests_of_the_file_run_first(path, target, first):
    assert target_of(path).path == target
    assert stages(ROOT, path)[0][0] == first


def test_equivalent_mutants_are_still_in_the_sources():
    for (path, before, after), reason in equivalents().items():
        lines = " ".join(line.strip() for line in (ROOT / path).read_text().splitlines())
        assert before in lines, f"{path} no longer has this line: take it off the list: {before}"
        assert before != after and len(reason) > 20
