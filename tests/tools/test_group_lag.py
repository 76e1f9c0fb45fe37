"""The lag of a group, up to the end of the log or, for readers of committed records, up to the last stable offset."""

from __future__ import annotations

import json
from pathlib import Path

from kafkapy.client import Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import run_ours


def test_lag_under_read_committed(tmp_path: Path) -> None:
    where = TopicPartition("paid", 0)
    with BrokerProcess(tmp_path) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(where.topic, 1)]).check()
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(4):
                producer.send(where.topic, str(number))
        admin.alter_group_offsets("readers", {where: 1}).check()
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="open") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(where.topic, "not committed").result(30)
            config = tmp_path / "client.properties"
            config.write_text("isolation.level=read_committed\n")
            found = {}
            for name, extra in {
                "plain": (),
                "flag": ("--isolation-level", "read_committed"),
                "file": ("--command-config", str(config)),
            }.items():
                words = ("--bootstrap-server", broker.bootstrap, "--describe", "--group", "readers", "--json", *extra)
                (group,) = json.loads(run_ours("consumer-groups", *words).out)
                (row,) = group["offsets"]
                found[name] = row["current_offset"], row["log_end_offset"], row["lag"]
            producer.abort_transaction()
    assert found == {"plain": (1, 5, 4), "flag": (1, 4, 3), "file": (1, 4, 3)}
