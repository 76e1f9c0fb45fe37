"""Disks that answer EIO under load to some or all calls, on a leader and on a follower.

The same states are expected of kafkapy, of Apache Kafka, and of both in one cluster.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.failing_directories import fail_both_disks
from tests.cluster.nodes import Flavour
from tests.crash.failing_disk import EVERY_CHANGE, EVERYTHING, SYNC, WRITE

pytestmark = [pytest.mark.full, pytest.mark.peer, pytest.mark.timeout(1200)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43
# The programs of the controller, of the broker whose disks fail, and of the other broker.
CLUSTERS = {
    "ours": (OURS, OURS, OURS),
    "theirs": (THEIRS, THEIRS, THEIRS),
    "ours under their controller": (THEIRS, OURS, THEIRS),
    "theirs under our controller": (OURS, THEIRS, OURS),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_partitions_fail_over_and_no_record_is_lost(tmp_path: Path, name: str) -> None:
    fail_both_disks(tmp_path, CLUSTERS[name], WRITE, SYNC, EVERY_CHANGE, EVERYTHING)
