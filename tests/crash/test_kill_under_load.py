"""A sample of the kill -9 series; tests/full runs the complete series."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.crash.kill_under_load import kill_under_load
from tests.seeds import drawn_seed


@pytest.mark.timeout(300)
def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    seed = drawn_seed()
    with BrokerProcess(tmp_path) as broker:
        figures = kill_under_load(broker, kills=10, seed=seed)
    print(figures)
