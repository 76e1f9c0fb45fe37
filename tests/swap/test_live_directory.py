"""Apache Kafka started on a directory that kafkapy is serving appends to the metadata log before it fails. This must
not damage the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.swap.harness import SwappedHarness
from tests.swap.swap import HEAP


@pytest.mark.timeout(600)
def test_apache_kafka_on_a_live_directory(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path / "shared", dynamic=True, heap=HEAP)
    ours = BrokerProcess(tmp_path / "shared", config=kafka.config, port=kafka.port)
    harness = SwappedHarness()
    with ours:
        harness.write(ours.bootstrap)
        metadata_log = kafka.log_dirs[0] / "__cluster_metadata-0" / "00000000000000000000.log"
        before = metadata_log.stat().st_size
        intruder = ApacheKafka(
            kafka_43,
            tmp_path / "intruder",
            dynamic=True,
            heap=HEAP,
            properties={"log.dirs": str(kafka.log_dirs[0])},
        )
        intruder.log_dirs = kafka.log_dirs
        with pytest.raises(AssertionError, match="exit"):
            intruder.start()
        assert metadata_log.stat().st_size > before, "it is expected to append: else this test tests nothing"
        assert ours.is_running
        harness.check(ours.bootstrap)
        harness.write(ours.bootstrap)
        assert "another program appended to it; its bytes are cut off" in ours.log()
        harness.check(ours.bootstrap)
        ours.restart()
        harness.check(ours.bootstrap)
    with kafka:
        harness.check(kafka.bootstrap)
    harness.check_directories(kafka.log_dirs)
