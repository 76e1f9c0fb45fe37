"""A consumer group whose records are in the log, but are not committed in time."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from tests.scenarios.consumer_group_harness import ConsumerGroupHarness


@pytest.mark.parametrize(
    ("failure", "answer"),
    [(Error.REQUEST_TIMED_OUT, "COORDINATOR_NOT_AVAILABLE"), (Error.NOT_LEADER_OR_FOLLOWER, "NOT_COORDINATOR")],
)
def test_a_member_that_has_left_gets_an_answer_if_its_removal_is_not_committed(failure: Error, answer: str) -> None:
    harness = ConsumerGroupHarness()
    for command in ("elect", "topic a 2", "beat g m1 0 topics=a", "beat g m2 0 topics=a", "hold"):
        harness.run(command)
    harness.run("beat g m1 -1")
    harness.heard = []
    harness.log.give_up(failure)
    assert harness.heard == [f"m1: {answer}"]
    harness.run("release")
    assert harness.run("beat g m2 3")[-1].startswith("m2: epoch=4")
