"""The draw of mutants, the verdict on each, and the file of results, with a tree that only pretends to run tests."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.mutation import driver
from tests.mutation.__main__ import ROOT
from tests.mutation.covering import CoveringTests
from tests.mutation.draw import Mutant, drawn, equivalents, sources
from tests.mutation.driver import (
    ALIVE,
    INVALID,
    KILLED,
    SURVIVED,
    SURVIVED_NARROW,
    TIMED_OUT,
    Judge,
    Results,
    Run,
    Stages,
    report,
)
from tests.mutation.scratch import PytestRun
from tests.mutation.targets import TARGETS, own_tests, target_of

PASSED = PytestRun(True, False, "", "")
NARROW, WIDE = ("narrow",), ("wide",)


def made(number=1, path="kafkapy/storage/log.py"):
    return Mutant(path, number, 0, "operator", "before", f"after {number}", f"source {number}")


class ScriptedTree:
    """Fails the tests that `failing` names for a source; `unsound` tests fail without a mutant as well."""

    def __init__(self, failing=(), unsound=(), broken=(), slow=(), crashing=()):
        self.failing, self.unsound, self.broken, self.slow = dict(failing), set(unsound), set(broken), set(slow)
        self.crashing = set(crashing)
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
        if self.source in self.crashing or "narrow::crashing" in failing:
            return PytestRun(False, False, "", "a core dump")
        if len(tests) == 1 and tests[0] in failing:
            return PytestRun(False, False, tests[0], "")
        found = [test for test in sorted(failing) if test.startswith(tests[0]) and test not in left_out]
        return PytestRun(False, False, found[0], "") if found else PASSED


def verdict_in(tree, wide=(WIDE,)):
    found = Judge(tree, lambda mutant: Stages((NARROW,), wide), (1, 2)).judge(made())
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


def test_wide_tests_can_be_left_to_a_later_run():
    tree = ScriptedTree()
    assert verdict_in(tree, wide=()) == (SURVIVED_NARROW, "")
    assert tree.runs == [NARROW]


def test_a_test_that_was_seen_to_pass_is_not_run_on_the_unchanged_tree():
    tree = ScriptedTree(failing={"source 1": "narrow::a"})
    judge = Judge(tree, lambda mutant: Stages((NARROW,), ()), (1, 2), lambda test: test == "narrow::a")
    assert judge.judge(made()).verdict == KILLED
    assert tree.runs == [NARROW]


def test_a_crash_kills_unless_the_unchanged_tree_crashes_as_well():
    assert verdict_in(ScriptedTree(crashing={"source 1"})) == (KILLED, "narrow: a core dump")
    assert verdict_in(ScriptedTree(unsound={"narrow::crashing"})) == (SURVIVED, "")


def test_a_crash_that_does_not_repeat_kills_nothing():
    class OnceCrashing(ScriptedTree):
        def test(self, tests, limit_s):
            found = super().test(tests, limit_s)
            if self.source:
                self.crashing.clear()
            return found

    tree = OnceCrashing(crashing={"source 1"})
    assert verdict_in(tree, wide=()) == (SURVIVED_NARROW, "")
    assert tree.runs == [NARROW] * 3


def test_time_out_and_compiler_error_have_verdicts_of_their_own():
    assert verdict_in(ScriptedTree(slow={"source 1"})) == (TIMED_OUT, "narrow: ")
    assert verdict_in(ScriptedTree(broken={"source 1"})) == (INVALID, "")


def verdicts_of(results, mutants, count, tree, tested_again=()):
    run = Run(mutants, count, results, tested_again)
    run.work(Judge(tree, lambda mutant: Stages((NARROW,), (WIDE,)), (1, 2)), lambda verdict: None)
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


def test_survivors_are_tested_again_on_request(tmp_path):
    verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 2, ScriptedTree(failing={"source 1": "wide::a"}))
    tree = ScriptedTree(failing={"source 2": "narrow::new"})
    assert verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 2, tree, ALIVE) == [KILLED] * 2
    assert tree.runs == [NARROW, ("narrow::new",)]
    assert verdicts_of(Results(tmp_path / "results"), map(made, range(1, 9)), 2, ScriptedTree(), ALIVE) == [KILLED] * 2


def test_the_report_counts_by_package_and_names_the_survivors():
    rows = [
        driver.Verdict(f"{path}:{number}", path, "operator", verdict, "")
        for number, (path, verdict) in enumerate(
            [("a/x", KILLED), ("a/x", SURVIVED_NARROW), ("b/x", TIMED_OUT), ("b/x", INVALID), ("b/x", KILLED)]
        )
    ]
    lines = [" ".join(line.split()) for line in report(rows, lambda path: path[0])]
    assert lines == [
        "a 1 of 2 killed 50.0 %",
        "b 2 of 2 killed 100.0 %",
        "total 3 of 4 killed 75.0 %",
        "1 of these by the time limit; 1 did not compile and are not counted",
        "survived the narrow tests a/x:1",
    ]


def test_the_draw_is_repeatable_and_takes_one_mutant_of_a_line():
    paths = sources(ROOT, ["kafkapy/quorum"])
    first = list(islice(drawn(ROOT, paths, 7), 40))
    assert first == list(islice(drawn(ROOT, paths, 7), 40))
    assert first != list(islice(drawn(ROOT, paths, 8), 40))
    assert len({(each.path, each.line) for each in first}) == 40


def test_a_change_of_a_line_changes_no_other_mutant(tmp_path):
    lines = [f"x{number} = y < {number}" for number in range(50)] + ["same = y > 1"] * 3
    file = tmp_path / "source.py"
    file.write_text("\n".join(lines))
    before = {each.key for each in drawn(tmp_path, [file], 7)}
    file.write_text("\n".join(["# a comment", *lines[:20], "added = y == 5", *lines[21:]]))
    after = {each.key for each in drawn(tmp_path, [file], 7)}
    assert list(after - before) == [key for key in after if "added" in key]
    assert list(before - after) == [key for key in before if ": x20 " in key]
    assert len(before) == len(after) == 53


def test_the_tests_that_execute_a_statement(tmp_path):
    folder = tmp_path / "kafkapy" / "storage"
    folder.mkdir(parents=True)
    source = ["def f():", "    return g(", "        1,", "    )", "", "def h():", "    pass"]
    (folder / "log.py").write_text("\n".join(source))
    for name in ("test_log_model.py", "test_log_cleaner.py"):
        (tmp_path / "tests" / "property").mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / "property" / name).touch()
    slow, fast, broken = "tests/a.py::slow", "tests/b.py::fast", "tests/b.py::broken"
    lines = {"1": [""], "2": [slow, fast, broken], "6": [""], "7": []}
    measured = {
        "seconds": {slow: 2.0, fast: 1.0, broken: 0.1},
        "failed": [broken],
        "lines": {"kafkapy/storage/log.py": lines},
    }
    runs = []

    def measure(tests):
        runs.append(tests)
        return measured

    covering = CoveringTests(tmp_path, tmp_path / "kept")
    found = [covering.of("kafkapy/storage/log.py", line, measure) for line in (1, 3, 7)]
    all_files = (("--timeout=60", "tests/b.py", "tests/a.py", f"--deselect={broken}"),)
    assert found == [all_files, (("--timeout=60", fast, slow),), ()]
    assert covering.of("kafkapy/storage/log.pyx", 2, measure) == all_files
    assert covering.passed(fast) and not covering.passed(broken) and not covering.passed("unknown")
    assert covering.passed("tests/a.py") and covering.passed("tests/b.py") and not covering.passed("tests/c.py")
    assert CoveringTests(tmp_path, tmp_path / "kept").of("kafkapy/storage/log.py", 2, measure) == found[1]
    assert len(runs) == 1


def test_the_tests_named_like_a_source_run_first(tmp_path):
    for file in ("tests/unit/storage/test_log.py", "tests/property/test_log_model.py", "kafkapy/storage/log.pyx"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "tests/property/test_log_cleaner.py").touch()
    seconds = {"tests/unit/storage/test_log.py::slow": 2.0, "tests/property/test_log_model.py::fast": 1.0}
    covering = CoveringTests(tmp_path, tmp_path / "kept")
    found = covering.of("kafkapy/storage/log.pyx", 1, lambda tests: {"seconds": seconds, "failed": [], "lines": {}})
    assert found == (("--timeout=60", "tests/unit/storage/test_log.py", "tests/property/test_log_model.py"),)


def test_every_target_has_sources_and_tests():
    for target in TARGETS:
        assert sources(ROOT, [target.path])
        assert not [test for test in (*target.narrow, *target.wide) if not (ROOT / test).exists()]


@pytest.mark.parametrize(
    ("path", "target", "own"),
    [
        ("kafkapy/storage/log.py", "kafkapy/storage", ("tests/unit/storage/test_log.py",)),
        ("kafkapy/_core/bytes/slab.pyx", "kafkapy/_core/bytes", ()),
    ],
)
def test_the_tests_of_a_source(path, target, own):
    assert target_of(path).path == target
    assert own_tests(ROOT, path) == own


def test_equivalent_mutants_are_still_in_the_sources():
    for (path, before, after, repetition), reason in equivalents().items():
        lines = [line.strip() for line in (ROOT / path).read_text().splitlines()]
        is_found = lines.count(before) > repetition or (not repetition and before in " ".join(lines))
        assert is_found, f"{path} no longer has this line: take it off the list: {before}"
        assert before != after and len(reason) > 20
