"""kill -9 at 200 random moments under load; afterwards our checks and Apache Kafka's tool accept the files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.crash.index_check import check_log_directory
from tests.crash.kill_under_load import kill_under_load
from tests.peers import run_tool
from tests.swap.dump import TIMEOUT_S, TOOL, dump_everything

KILLS = 200
# Segments are small, so that kills also hit rolls and recoveries of several segments.
SMALL_SEGMENTS = {"log.segment.bytes": "1048576"}


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("properties", [{}, SMALL_SEGMENTS], ids=["default segments", "small segments"])
def test_200_kills(properties: dict[str, str], kafka_43: Path, tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    broker = BrokerProcess(tmp_path, properties)
    with broker:
        figures = kill_under_load(broker, KILLS, seed)
    print(figures)
    print(check_log_directory(broker.data))
    dump_everything(kafka_43, [broker.data])
    indexes = [str(path) for path in broker.data.glob("load-*/*.index")]
    output = run_tool(
        kafka_43, TOOL, "--index-sanity-check", "--files", ",".join(indexes), timeout_s=TIMEOUT_S
    ).stdout.decode()
    assert output.count("passed sanity check") == len(indexes), output[-2000:]
