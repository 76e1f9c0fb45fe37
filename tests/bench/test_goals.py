"""Goals are ratios within one run; a goal whose figures are missing is not judged."""

import pytest

from bench.goals import GOALS, TAILS, Goal, judge, judge_sweep, judge_tail, outcomes
from bench.table import WORKLOADS
from bench.workload import CLUSTER, MUST


def test_a_ratio_within_its_bound():
    result = {"w": {"kafkapy": {"f": 9.0}, "ceiling": {"f": 10.0}}}
    assert judge(Goal("w", "f", "ceiling", at_least=0.9), result).reached
    assert not judge(Goal("w", "f", "ceiling", at_least=0.91), result).reached
    assert judge(Goal("w", "f", None, at_most=9), result).value == 9


@pytest.mark.parametrize("result", [{}, {"w": {"kafkapy": {"f": 1.0}}}, {"w": {"kafka": {"f": 1.0}}}])
def test_what_was_not_measured_is_not_judged(result):
    assert judge(Goal("w", "f", "kafka", at_least=1), result) is None


def test_the_tail_may_be_half_of_kafkas_or_half_as_long_again_as_the_ceilings():
    def result(own, kafka, ceiling):
        quiet = {"kafkapy": {"p999_us": own}, "kafka": {"p999_us": kafka}, "ceiling": {"p999_us": ceiling}}
        return {"quiet": quiet, "busy": {key: quiet[key] for key in ("kafkapy", "kafka")}}

    assert judge_tail("quiet", "quiet", result(4.0, 8.0, 1.0)).reached
    assert judge_tail("busy", "quiet", result(4.5, 8.0, 3.0)).reached
    assert not judge_tail("quiet", "quiet", result(4.6, 8.0, 3.0)).reached


def test_the_curve_may_not_fall_before_kafkas():
    def curve(*values):
        return {
            f"{kind}_{n}": value for kind in ("produce", "consume") for n, value in zip((1, 1000), values, strict=True)
        }

    assert judge_sweep({"partition-sweep": {"kafkapy": curve(10, 9), "kafka": curve(5, 4)}}).reached
    assert not judge_sweep({"partition-sweep": {"kafkapy": curve(10, 5), "kafka": curve(5, 4)}}).reached


def test_every_goal_is_about_a_workload_of_a_set():
    for name in (*(goal.workload for goal in GOALS), *TAILS, *TAILS.values()):
        assert {MUST, CLUSTER} & {*WORKLOADS[name].sets}
    assert outcomes({}) == []
