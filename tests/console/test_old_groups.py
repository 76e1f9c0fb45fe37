"""Groups of old consumers, whose offsets are kept in ZooKeeper; the broker's own listener serves the nodes."""

from __future__ import annotations

import pytest

from kafkapy.client import Admin, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess
from tests.ports import free_port
from tests.tools.tool_host import run_ours

NODES = {
    "/consumers/old/ids/old_host-1": b'{"subscription":{"t1":1},"pattern":"static","timestamp":"1500000000000"}',
    "/consumers/old/offsets/t1/0": b"2",
    "/consumers/old/offsets/t1/1": b"5",
    "/consumers/old/owners/t1/0": b"old_host-1-0",
    "/consumers/ended/offsets/t1/0": b"1",
    "/consumers/odd <group>/ids/odd_member": b"not JSON",
    "/consumers/odd <group>/offsets/t1/0": b"many",
    "/consumers/odd <group>/offsets/t1/77": b"3",
    "/consumers/odd <group>/offsets/gone/0": b"4",
    "/consumers/odd <group>/offsets/t1/x": b"4",
}


@pytest.fixture(scope="module")
def zookeeper():
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def listening(tmp_path_factory, zookeeper):
    properties = {"zookeeper.listener": zookeeper, "zookeeper.tree.topic.replication.factor": "1"}
    with BrokerProcess(tmp_path_factory.mktemp("listening"), properties) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("t1", 2, 1)]).check()
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                producer.send("t1", value=b"x", partition=number % 2)
        with ZooKeeperClient(zookeeper) as client:
            for path, data in NODES.items():
                client.ensure(path, data)
        yield broker


@pytest.fixture(scope="module")
def visitor(listening, zookeeper, tmp_path_factory):
    arguments = ("--bootstrap-server", listening.bootstrap, "--name", "test", "--zookeeper", zookeeper)
    arguments += ("--cluster", f"other={listening.bootstrap}", "--zookeeper", f"other=127.0.0.1:{free_port()}/away")
    with ConsoleProcess(tmp_path_factory.mktemp("console"), *arguments) as running:
        yield running.visitor()


def test_the_list_of_groups_has_those_in_zookeeper(visitor):
    plain = visitor.get("/c/test/groups").plain
    assert "ended kept in ZooKeeper 0 0 1 4" in plain
    assert "old kept in ZooKeeper 1 1 2 3" in plain
    filtered = visitor.get("/c/test/groups?q=OLD&type=ZooKeeper").plain
    assert "old kept in ZooKeeper" in filtered
    assert "ended" not in filtered
    assert "kept in ZooKeeper" not in visitor.get("/c/test/groups?type=Classic").plain


def test_a_group_in_zookeeper_shows_offsets_owners_members_and_last_commit(visitor, zookeeper):
    with ZooKeeperClient(zookeeper) as client:
        changed_ms = client.get("/consumers/old/offsets/t1/0")[1].mtime_ms
    plain = visitor.get("/c/test/old-group?id=old").plain
    assert "Lag 3" in plain
    assert "t1 0 2 5 3 20" in plain
    assert f".{changed_ms % 1000:03d} old_host-1-0" in plain
    assert "t1 1 5 5 0" in plain
    assert "old_host-1 t1 2017-07-14 02:40:00.000" in plain
    assert f"kept in ZooKeeper at {zookeeper}" in plain
    assert "No member reads; 4 records wait." in visitor.get("/c/test/old-group?id=ended").plain


def test_nodes_without_sense_are_shown_as_unknown(visitor):
    reply = visitor.get("/c/test/old-group?id=odd+%3Cgroup%3E")
    assert reply.status == 200
    assert "odd &lt;group&gt;" in reply.text
    assert "t1 0 – 5 –" in reply.plain
    assert "t1 77 3 – –" in reply.plain
    assert "gone 0 4 – –" in reply.plain
    assert "odd_member – –" in reply.plain


def test_the_groups_of_a_topic_include_those_in_zookeeper(visitor):
    plain = visitor.get("/c/test/topics/t1/groups").plain
    assert "old Stable old kept in ZooKeeper 2 3" in plain
    assert "ended Empty old kept in ZooKeeper 1 4" in plain


def test_a_commit_moves_the_lag(visitor, zookeeper):
    with ZooKeeperClient(zookeeper) as client:
        client.ensure("/consumers/moving/offsets/t1/0", b"1")
        assert "Lag 4" in visitor.get("/c/test/old-group?id=moving").plain
        client.set("/consumers/moving/offsets/t1/0", b"5")
        assert "Lag 0" in visitor.get("/c/test/old-group?id=moving").plain
        client.delete_all("/consumers/moving")


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ("id=nobody", 404, "There is no group 'nobody' in ZooKeeper"),
        ("id=old/ids", 404, "There is no group"),
        ("id=%00", 400, "null character"),
        ("id=..", 400, "relative paths"),
        ("", 400, "names no group"),
    ],
)
def test_a_meaningless_name_says_what_is_wrong(visitor, query, status, expected):
    reply = visitor.get(f"/c/test/old-group?{query}")
    assert (reply.status, expected in reply.plain) == (status, True), reply.plain


def test_without_zookeeper_the_page_says_so_and_the_rest_works(visitor):
    reply = visitor.get("/c/other/groups")
    assert reply.status == 200
    assert "ZooKeeper at 127.0.0.1:" in reply.plain
    assert "cannot be reached" in reply.plain
    assert visitor.get("/c/other/old-group?id=old").status == 504
    topic = visitor.get("/c/other/topics/t1/groups")
    assert (topic.status, "cannot be reached" in topic.plain) == (200, True)
    assert visitor.get("/c/other/").status == 200


def test_the_list_is_bounded_and_says_what_it_omits(visitor, zookeeper):
    with ZooKeeperClient(zookeeper) as client:
        for number in range(203):
            client.ensure(f"/consumers/many-{number:03}", b"")
        plain = visitor.get("/c/test/groups?q=many").plain
        assert "3 further groups not listed; a filter selects them." in plain
        assert "many-199" in plain
        assert "many-200" not in plain
        assert "many-202 kept in ZooKeeper" in visitor.get("/c/test/groups?q=many-202").plain
        assert visitor.get("/c/test/old-group?id=many-202").status == 200
        for number in range(203):
            client.delete_all(f"/consumers/many-{number:03}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--zookeeper", "host:port"), "is not host:port"),
        (("--zookeeper", "away=host:1"), "there is no cluster away"),
        (("--zookeeper", ""), "names no server"),
    ],
)
def test_an_invalid_address_is_refused_at_the_start(words, expected):
    done = run_ours("console", "--bootstrap-server", "localhost:1", "--listener", "localhost:0", *words)
    assert done.code != 0
    assert expected in done.err
