"""The registration of the only broker of a cluster: its controlled shutdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.metadata.topics_image import NO_LEADER
from tests.harness.metadata import QuorumHarness, rules


@pytest.mark.parametrize("is_enabled", [True, False])
def test_leaderships_are_given_up_before_the_end_only_in_a_controlled_shutdown(
    tmp_path: Path, is_enabled: bool
) -> None:
    harness = QuorumHarness(tmp_path / "data", controlled_shutdown_enable=str(is_enabled).lower())
    loop = harness.start()
    node_id = harness.config.node_id
    loop.submit(lambda image: create_topics(image, [NewTopic("t", 1)], rules())).result()

    harness.lifecycle.give_up_leaderships()
    assert loop.image.brokers[node_id].in_controlled_shutdown is is_enabled
    assert loop.image.topics.by_name["t"].partitions[0].leader == (NO_LEADER if is_enabled else node_id)

    harness.lifecycle.end_session()
    assert loop.image.brokers[node_id].fenced
    assert loop.image.topics.by_name["t"].partitions[0].leader == NO_LEADER
    loop.stop()
