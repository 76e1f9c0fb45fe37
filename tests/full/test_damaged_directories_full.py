"""Both brokers start on every kind of damaged log directory; the usual run takes a sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.swap.damaged_directory import Damage, DamagedDirectory
from tests.swap.test_damaged_directories import COMPARED, compare


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", COMPARED, ids=lambda damage: damage.__name__)
def test_all(kafka_43: Path, tmp_path: Path, damage: Damage, killed: bool) -> None:
    compare(DamagedDirectory(kafka_43, tmp_path, killed=killed), damage, lambda found: None)
