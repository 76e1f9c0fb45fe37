"""Tests of the listener of a running broker with kazoo, the client of ZooKeeper for Python."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError
from kazoo.protocol.states import EventType
from kazoo.recipe.lock import Lock

from tests.zookeeper.listening_broker import ListeningBroker


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("zookeeper")) as broker:
        yield broker


@pytest.fixture
def connect(zookeeper):
    """Returns a function that connects clients, which are stopped after the test."""
    clients = []

    def connect(path="", **options):
        client = KazooClient(zookeeper.zookeeper + path, timeout=5.0, **options)
        clients.append(client)
        client.start(timeout=30)
        return client

    yield connect
    for client in clients:
        client.stop()
        client.close()


def test_nodes_are_created_read_changed_and_deleted(connect):
    client = connect()
    client.create("/app/config", b"1", makepath=True)
    with pytest.raises(NodeExistsError):
        client.create("/app/config")
    client.set("/app/config", b"2", version=0)
    with pytest.raises(BadVersionError):
        client.set("/app/config", b"3", version=0)
    data, stat = client.get("/app/config")
    assert (data, stat.version, stat.data_length) == (b"2", 1, 1)
    assert client.get_children("/app") == ["config"]
    client.delete("/app", recursive=True)
    with pytest.raises(NoNodeError):
        client.get("/app")


def test_a_node_of_a_megabyte_is_stored(connect):
    client = connect()
    data = bytes(1_000_000)
    client.create("/large", data)
    assert client.get("/large")[0] == data
    client.delete("/large")


def test_a_transaction_changes_all_or_nothing(connect):
    client = connect()
    transaction = client.transaction()
    transaction.create("/t", b"1")
    transaction.check("/t", 0)
    transaction.set_data("/t", b"2")
    results = transaction.commit()
    assert results[0] == "/t"
    failing = client.transaction()
    failing.delete("/t")
    failing.create("/t/x/y")
    assert isinstance(failing.commit()[1], NoNodeError)
    assert client.get("/t")[0] == b"2"
    client.delete("/t")


def test_watches_notify_another_client(connect):
    watching, changing = connect(), connect()
    changing.create("/w")
    seen, event = [], threading.Event()

    def watch(found):
        seen.append((found.type, found.path))
        event.set()

    watching.get("/w", watch=watch)
    changing.set("/w", b"x")
    assert event.wait(30)
    assert seen == [(EventType.CHANGED, "/w")]
    changing.delete("/w")


def test_a_lock_passes_to_the_next_holder_when_the_session_ends(connect):
    first, second = connect(), connect()
    assert Lock(first, "/lock", "first").acquire(timeout=30)
    lock = Lock(second, "/lock", "second")
    waiting = threading.Thread(target=lock.acquire, kwargs={"timeout": 60})
    waiting.start()
    first.stop()
    waiting.join(60)
    assert lock.is_acquired
    assert lock.contenders() == ["second"]


def test_a_chroot_of_the_client_is_a_part_of_the_tree(connect):
    root = connect()
    root.create("/chroot")
    inner = connect("/chroot")
    inner.create("/a", ephemeral=True)
    assert root.get_children("/chroot") == ["a"]


def test_words_are_answered(connect):
    client = connect()
    assert client.command(b"ruok") == "imok"
    assert "Mode: standalone" in client.command(b"srvr")
    assert "zk_znode_count" in client.command(b"mntr")
    assert f"0x{client.client_id[0]:x}" in client.command(b"dump")
    assert client.server_version() >= (3, 9)


def test_the_metrics_page_shows_the_tree(zookeeper, connect):
    client = connect()
    page = zookeeper.page()
    assert page.value("kafkapy_zookeeper_znodes") == int(mntr(client, "zk_znode_count"))
    assert page.value("kafkapy_zookeeper_sessions") >= 1
    assert page.value("kafkapy_zookeeper_packets_received_total") > 1


def mntr(client, name):
    """Returns a value of the four-letter word mntr."""
    return dict(line.split("\t") for line in client.command(b"mntr").splitlines())[name]


def test_nodes_and_sessions_outlive_kill_9(zookeeper, connect):
    client = connect()
    client.create("/kept", b"data")
    client.create("/mine", ephemeral=True)
    session = client.client_id[0]
    zookeeper.kill()
    zookeeper.start()
    other = connect()
    assert other.get("/kept")[0] == b"data"
    assert other.exists("/mine").ephemeralOwner == session
    assert client.retry(client.get, "/kept")[0] == b"data"
    assert client.client_id[0] == session
    client.stop()
    assert other.exists("/mine") is None


def test_a_broker_without_the_key_does_not_import_the_listener():
    program = (
        "import sys, kafkapy.broker; print([name for name in sys.modules if 'zookeeper' in name or 'kazoo' in name])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"
