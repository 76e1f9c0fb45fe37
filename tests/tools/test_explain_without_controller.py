"""`kafkapy explain` on a single broker, which has no listener of a controller and cannot send its metadata log."""

from __future__ import annotations

import shlex

from kafkapy.client.admin import Admin, NewTopic
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import run_ours


def test_the_error_names_the_command_that_reads_the_directory(broker: BrokerProcess) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("explained", 1)]).check()
    done = run_ours("explain", "explained-0", "--bootstrap-server", broker.bootstrap)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1
    reason, _, command = done.err.rstrip("\n").partition("; read the log on the machine of node 1: ")
    assert reason.startswith("Connection to the controller could not be established (localhost:9093: ")
    assert command == f"kafkapy explain explained-0 --directory {broker.data}"
    done = run_ours(*shlex.split(command)[1:])
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Now: leader 1 (epoch 0), ISR 1, replicas 1"
