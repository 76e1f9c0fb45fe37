"""The longer cases of tests/spark: an archive over several runs, counts in bounded memory, formats of a registry."""

from __future__ import annotations

import random

import pytest

from tests.spark.conftest import active_session, spark, spark_bootstrap, topics
from tests.spark.test_archive import fill, run
from tests.spark.test_registry_formats import assert_text_and_reasons, registry, serialized
from tests.spark.test_trending_search import MINUTE_MS, STREAM, by_window
from tests.spark.topic_records import at, record, run_stream, values
from trending_search import bounded_trends, with_searches

__all__ = ["active_session", "registry", "run", "spark", "spark_bootstrap", "topics"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def test_records_are_kept_once_as_they_are(spark, topics, run, tmp_path):
    topic = topics.create(2)
    fill(topics, topic, 0, 4)
    run(topic)
    fill(topics, topic, 4, 2)
    run(topic)
    run(topic)
    rows = spark.read.parquet(f"{tmp_path}/archive").orderBy("timestamp").collect()
    assert [bytes(row["value"]) for row in rows] == [f"v{number}".encode() for number in range(6)]
    assert values(rows, "partition", "offset") == [(number % 2, number // 2) for number in range(6)]
    assert [bytes(row["headers"][0]["value"]) for row in rows] == [str(number).encode() for number in range(6)]
    assert values(rows, "hour") == ["2017-05-01-23"] * 2 + ["2017-05-02-00"] * 4
    assert {path.name for path in (tmp_path / "archive").iterdir()} == {
        "_checkpoint", "_spark_metadata", "hour=2017-05-01-23", "hour=2017-05-02-00",
    }  # fmt: skip


def test_bounded_counts_are_right_up_to_their_error(spark, tmp_path):
    """One tenant has few terms, and exact counts; the other has more terms than fit into its summary."""
    chance = random.Random(3)
    terms = ["hot"] * 300 + ["warm"] * 150 + [f"rare-{number}" for number in range(600)]
    chance.shuffle(terms)
    keyed = [[record(bytes(row[1]), (row[5] - at(0)).total_seconds(), "small") for row in rows] for rows in STREAM[:2]]
    batches = [
        [*rows, *(record(term, 5, "big") for term in part)]
        for rows, part in zip(keyed, (terms[:500], terms[500:]), strict=True)
    ]
    found = run_stream(
        spark, tmp_path, [*batches, [record("", 400)], [record("", 900)]],
        lambda rows: bounded_trends(with_searches(rows, tenant="key"), MINUTE_MS, "2 minutes", 2, 20),
    )  # fmt: skip
    rows = [row for rows in found for row in rows]
    windows = by_window(rows, "term", "count", "previous", "error")
    assert windows[1, "small"] == [("b", 12, 0, 0), ("a", 6, 0, 0)]
    assert windows[2, "small"] == [("c", 6, 0, 0), ("b", 6, 12, 0)]
    assert set(windows) == {(1, "small"), (2, "small"), (1, "big")}
    assert [term for term, *_ in windows[1, "big"]] == ["hot", "warm"]
    for (_, count, _, error), true in zip(windows[1, "big"], (300, 150), strict=True):
        assert count <= true <= count + error and 0 < error <= len(terms) / 21


@pytest.mark.parametrize("form", ["json-schema", "protobuf"])
def test_values_of_each_format_become_text_with_a_reason_for_bad_ones(spark, registry, form):
    assert_text_and_reasons(spark, registry, form, serialized(registry)[form])
