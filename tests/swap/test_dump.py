"""DumpLogSegments reads the files that kafkapy has written, and reports no fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.records import CODECS, make_records
from tests.swap.dump import dump, dump_everything

RECORDS = 3000


@pytest.mark.timeout(300)
def test_files_of_every_kind(kafka_43: Path, tmp_path: Path) -> None:
    client = ConfluentClient()
    with BrokerProcess(tmp_path) as ours:
        admin = AdminClient({"bootstrap.servers": ours.bootstrap})
        small = {"segment.bytes": "1048576", "index.interval.bytes": "512"}
        for codec in CODECS:
            admin.create_topics([NewTopic(codec, 2, 1, config=small)])[codec].result(30)
            for part in range(10):
                records = make_records(RECORDS // 10, 2, seed=part)
                client.produce(ours.bootstrap, codec, codec, records)
        client.consume_in_group(ours.bootstrap, "none", "group", RECORDS)
    dump_everything(kafka_43, [ours.data])
    for codec in CODECS:
        folder = ours.data / f"{codec}-0"
        output = dump(kafka_43, sorted(folder.glob("*.log")), "--deep-iteration", "--print-data-log")
        assert f"compresscodec: {codec}" in output
        assert output.count("| offset: ") == RECORDS // 2
        assert any(path.stat().st_size for path in folder.glob("*.index"))
        assert any(path.stat().st_size for path in folder.glob("*.timeindex"))
    groups = [path for path in ours.data.glob("__consumer_offsets-*/*.log") if path.stat().st_size]
    decoded = dump(kafka_43, groups, "--offsets-decoder")
    assert '"group":"group","topic":"none","partition":0' in decoded
    assert '"assignedPartitions":[{"topic":"none","partitions":[0,1]}]' in decoded
