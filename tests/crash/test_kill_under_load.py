"""A sample of the kill -9 series; the whole of it is in tests/full."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.crash.kill_under_load import kill_under_load


@pytest.mark.timeout(300)
def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    with BrokerProcess(tmp_path) as broker:
        figures = kill_under_load(broker, kills=10, seed=seed)
    print(figures)
