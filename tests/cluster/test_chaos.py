"""A sample of the rounds of chaos (`chaos.py`), and the check of a chain's copy."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cluster.chaos import ROUNDS_PER_SERIES, differences, run_series
from tests.cluster.faults import draw_faults
from tests.cluster.history import Read, jumps, vanished
from tests.cluster.java_traffic import java_command
from tests.seeds import drawn_seed


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_a_round_of_chaos(kafka_43: Path, tmp_path: Path) -> None:
    """The round runs through proxies. The client of the chain is drawn: one in three rounds has librdkafka's, ours and
    Java's."""
    seed = drawn_seed()
    number = ROUNDS_PER_SERIES + seed % 3
    passed: list[int] = []
    java = java_command(kafka_43, tmp_path / "classes")
    run_series(tmp_path / "nodes", range(number, number + 1), seed, java, passed.append, faults_per_round=1)
    assert passed == [number]


def test_a_seed_and_a_round_decide_the_faults() -> None:
    drawn = [draw_faults(random.Random("17/3"), [1, 2, 3], with_proxies=True) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != draw_faults(random.Random("17/4"), [1, 2, 3], with_proxies=True)


def test_only_the_faults_of_proxies_need_proxies() -> None:
    drawn = [draw_faults(random.Random(seed), [1, 2, 3], with_proxies=False) for seed in range(100)]
    kinds = {fault.kind for faults in drawn for fault in faults}
    assert kinds == {"kill", "stop", "roll", "pause", "full disk", "kill two", "kill all"}


def read(offset: int, value: bytes, *, partition: int = 0, session: int = 1) -> Read:
    return Read("reader", session, partition, offset, value)


def test_a_correct_copy_has_no_differences() -> None:
    source = [read(0, b"a"), read(1, b"b"), read(0, b"c", partition=1)]
    target = [read(4, b"b"), read(0, b"c", partition=1), read(3, b"a")]
    assert list(differences(source, target)) == []


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ([read(0, b"a")], "not copied"),
        ([read(0, b"a"), read(1, b"b"), read(2, b"a")], "too often"),
        ([read(0, b"b"), read(1, b"a")], "another order"),
        ([read(0, b"a"), read(1, b"b", partition=1)], "not copied"),
    ],
)
def test_an_incorrect_copy_is_complained_about(target: list[Read], word: str) -> None:
    source = [read(0, b"a"), read(1, b"b")]
    assert any(word in each for each in differences(source, target))


def test_a_record_that_was_read_and_is_no_longer_there_is_complained_about() -> None:
    log = [read(0, b"a"), read(1, b"c")]
    assert list(vanished([read(0, b"a")], log)) == []
    assert len(list(vanished([read(1, b"b"), read(2, b"d")], log))) == 2


def test_polls_of_one_session_advance() -> None:
    assert list(jumps([read(0, b"a"), read(1, b"b"), read(0, b"a", session=2)])) == []
    assert len(list(jumps([read(1, b"b"), read(1, b"b"), read(0, b"a")]))) == 2
