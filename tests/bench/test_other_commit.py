"""Two commits in one run: rates and costs are compared in the direction in which each of them is better."""

from bench.other_commit import Comparison, compare, comparison_table, server_of
from bench.servers import Kafkapy
from tests.documents.blocks import ROOT


def test_a_lower_rate_and_a_higher_cost_are_worse():
    result = {
        "produce-1KB": {
            "kafkapy": {"per_second": 80.0, "cpu_s_per_gb": 1.05},
            "before": {"per_second": 100.0, "cpu_s_per_gb": 1.0},
            "kafka": {"per_second": 50.0},
        },
        "latency-1000-per-second": {"kafkapy": {"p99_us": 60.0}, "before": {"p99_us": 100.0}},
        "consume-1KB": {"kafkapy": {"per_second": 10.0}},
    }
    rate, cost, latency = compare(result)
    assert rate.is_worse and round(rate.change, 3) == 0.2
    assert not cost.is_worse and round(cost.change, 3) == 0.05
    assert not latency.is_worse and round(latency.change, 3) == -0.4
    assert comparison_table([rate, cost, latency]).count("WORSE") == 1


def test_the_tolerance_is_ten_percent():
    assert not Comparison("w", "f", 1, 1, 0.1).is_worse
    assert Comparison("w", "f", 1, 1, 0.11).is_worse


def test_the_other_tree_is_the_one_that_is_imported(tmp_path):
    before = server_of(ROOT)(tmp_path, {})
    assert isinstance(before, Kafkapy) and before.name == "before"
    assert before.environment()["PYTHONPATH"] == str(ROOT)
    assert "-P" in before.command()
