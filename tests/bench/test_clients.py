"""The benchmark of clients: the table's arithmetic, and a small run of our client and the loopback."""

import argparse

from bench.clients import Comparison, medians, table


def figures(per_second: float) -> dict[str, float]:
    return {"per_second": per_second, "mb_per_second": per_second / 1e4, "cpu_s_per_million": 1.0}


def test_columns_stand_against_consuming_in_batches():
    rounds = {
        "consume-batches 100 B": {
            "kafkapy": [figures(3e6)],
            "confluent-kafka": [figures(2e6), figures(1e6), figures(9e6)],
        },
        "consume-arrow 100 B": {"kafkapy": [figures(12e6)], "loopback": [figures(24e6)]},
    }
    result = medians(rounds)
    assert result["consume-batches 100 B"]["confluent-kafka"]["per_second"] == 2e6
    lines = [line.split() for line in table(result).splitlines()]
    ratios = [(line[0], line[-2]) for line in lines if line[-1] == "x"]
    assert ratios == [("confluent-kafka", "1.50"), ("loopback", "0.50"), ("confluent-kafka,", "6.00")]


def test_a_small_run(tmp_path):
    options = argparse.Namespace(
        rounds=1,
        sizes=[100],
        batches=[16_384],
        loads=["produce-batches", "produce-arrow", "consume-arrow"],
        clients=["kafkapy", "loopback"],
        server="kafkapy",
        scale=0.03,  # more records than the first batch of columns can hold
    )
    comparison = Comparison(options, tmp_path)
    comparison.run()
    found = medians(comparison.rounds)
    assert set(found) == {f"produce-{each} 100 B, batches of 16 KB" for each in ("batches", "arrow")} | {
        "consume-arrow 100 B"
    }
    assert set(found["consume-arrow 100 B"]) == {"kafkapy", "loopback"}
    assert all(each["per_second"] > 0 for clients in found.values() for each in clients.values())
