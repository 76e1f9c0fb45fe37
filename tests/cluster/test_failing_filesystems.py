"""Disks that answer EIO under load: a small sample of tests/full/test_failing_disks_full.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.failing_directories import fail_both_disks
from tests.cluster.nodes import Flavour
from tests.crash.failing_disk import EVERYTHING


@pytest.mark.timeout(300)
def test_dead_disks_of_a_follower_and_a_leader_cost_neither_records_nor_availability(tmp_path: Path) -> None:
    fail_both_disks(tmp_path, (Flavour.KAFKAPY,) * 3, EVERYTHING)
