"""The gate on micro benchmarks: it compares the best turns, ignores what only one side has, and has a wide margin."""

import json

from bench.micro.gate import BASELINES, best_of, slower
from bench.micro.reference_pairs import PAIRS, Pair, speed_up


def test_the_best_of_the_turns_counts():
    assert best_of([{"a": 3.0, "b": 1.0}, {"a": 2.0, "b": 4.0}]) == {"a": 2.0, "b": 1.0}


def test_only_what_both_have_and_much_slower_is_told():
    ours = {"same": 1.0, "slower": 2.0, "a little slower": 1.4, "new": 9.0}
    theirs = {"same": 1.0, "slower": 1.0, "a little slower": 1.0, "gone": 1.0}
    (complaint,) = slower(ours, theirs)
    assert complaint.startswith("slower:") and "2.00 times" in complaint


def test_the_factor_is_the_references_time_over_the_cores():
    assert speed_up(Pair(lambda: sum(range(100)), lambda: sum(range(10_000)))) > 5


def test_every_pair_has_a_baseline_and_works():
    assert json.loads(BASELINES.read_text()).keys() == PAIRS.keys()
    for pair in PAIRS.values():
        pair.core()
        pair.reference()
