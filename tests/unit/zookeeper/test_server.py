"""The server of the tree: sessions, operations, watches and their order, on a log in memory."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from kafkapy.zookeeper.acl import AclEntry, Identity
from kafkapy.zookeeper.errors import ZooKeeperError
from kafkapy.zookeeper.jute import encode_bool, encode_buffer, encode_int, encode_long, encode_string
from kafkapy.zookeeper.node import CONTAINER
from kafkapy.zookeeper.requests import Op, encode_acl
from tests.harness.zookeeper import (
    TestClient,
    ZooKeeperHarness,
    ZooKeeperReplyError,
    create_body,
    read_reply,
    read_stat,
)

CREATED, DELETED, CHANGED, CHILD = 1, 2, 3, 4


@pytest.fixture
def harness():
    return ZooKeeperHarness()


@pytest.fixture
def client(harness):
    return harness.client()


def refused(code):
    return pytest.raises(ZooKeeperReplyError, match=f"^{code.value}$")


def multi_body(*operations):
    body = b"".join(encode_int(op) + encode_bool(False) + encode_int(-1) + request for op, request in operations)
    return body + encode_int(-1) + encode_bool(True) + encode_int(-1)


def multi_errors(client, *operations):
    """Returns the error of each operation of a multi that fails."""
    reader = client.call(Op.MULTI, multi_body(*operations))
    errors = []
    while True:
        kind, is_end, error = reader.read_int(), reader.read_bool(), reader.read_int()
        if is_end:
            return errors
        assert kind == Op.ERROR
        assert reader.read_int() == error
        errors.append(error)


# -- nodes


def test_a_created_node_has_its_data_and_stat(harness, client):
    assert client.create("/a", b"data") == "/a"
    data, stat = client.get("/a")
    assert data == b"data"
    now = harness.scheduler.clock.wall_ms()
    assert stat == (stat.czxid, stat.czxid, now, now, 0, 0, 0, 0, 4, 0, stat.czxid)


def test_null_data_differs_from_empty_data(client):
    client.call(Op.CREATE, create_body("/null", None))
    client.create("/empty")
    assert client.get("/null")[0] is None
    assert client.get("/empty")[0] == b""


def test_creation_and_deletion_of_children_change_the_parents_stat(client):
    client.create("/a")
    client.create("/a/b")
    client.create("/a/c")
    client.delete("/a/b")
    stat = client.exists("/a")
    assert (stat.cversion, stat.children, stat.version) == (3, 1, 0)
    assert stat.pzxid > stat.mzxid


def test_sequential_nodes_count_the_creations_in_their_parent(client):
    client.create("/a")
    client.create("/a/x")
    assert client.create("/a/n-", flags=2) == "/a/n-0000000001"
    client.delete("/a/n-0000000001")
    assert client.create("/a/n-", flags=2) == "/a/n-0000000002"
    assert client.create("/a/", flags=2) == "/a/0000000003"


@pytest.mark.parametrize(
    "path", ["", "a", "/a/", "/a/.", "/a/..", "/b\0", "/b\x01", "/b\x7f", "/b\ue000", "/b\U0001f600"]
)
def test_an_invalid_path_is_refused(client, path):
    client.create("/a")
    with refused(ZooKeeperError.BAD_ARGUMENTS):
        client.create(path)


def test_a_node_needs_its_parent_and_must_be_new(client):
    with refused(ZooKeeperError.NO_NODE):
        client.create("/a/b")
    client.create("/a")
    with refused(ZooKeeperError.NODE_EXISTS):
        client.create("/a")


def test_only_empty_nodes_of_the_expected_version_are_deleted(client):
    client.create("/a")
    client.create("/a/b")
    with refused(ZooKeeperError.BAD_VERSION):
        client.delete("/a", version=3)
    with refused(ZooKeeperError.NOT_EMPTY):
        client.delete("/a")
    with refused(ZooKeeperError.BAD_ARGUMENTS):
        client.delete("/zookeeper/quota")
    with refused(ZooKeeperError.NO_NODE):
        client.delete("/c")


def test_a_version_makes_a_compare_and_set(client):
    client.create("/a", b"0")
    assert client.set("/a", b"1", version=0).version == 1
    with refused(ZooKeeperError.BAD_VERSION):
        client.set("/a", b"2", version=0)
    assert client.get("/a")[0] == b"1"


def test_children_are_listed(client):
    client.create("/a")
    for name in "cab":
        client.create(f"/a/{name}")
    assert client.children("/a") == ["a", "b", "c"]
    reader = client.call(Op.GET_CHILDREN2, encode_string("/a") + encode_bool(False))
    assert reader.read_texts() == ["a", "b", "c"]
    assert read_stat(reader).children == 3
    assert client.call(Op.GET_ALL_CHILDREN_NUMBER, encode_string("/")).read_int() == 4 + 3


def test_a_container_is_deleted_with_its_last_child(harness, client):
    reader = client.call(Op.CREATE_CONTAINER, create_body("/box", flags=4))
    assert (reader.read_text(), read_stat(reader).owner) == ("/box", 0)  # as with ZooKeeper
    assert harness.server.tree.nodes["/box"].owner == CONTAINER
    client.create("/unused")
    client.create("/box/a")
    harness.scheduler.advance(3_000)
    client.delete("/box/a")
    harness.scheduler.advance(9_000)
    harness.server._delete_empty_containers()
    assert "/box" not in harness.server.tree.nodes


def test_a_ttl_node_is_deleted_after_its_time(harness, client):
    client.call(Op.CREATE_TTL, create_body("/short", flags=5) + encode_long(1000))
    client.call(Op.CREATE_TTL, create_body("/long", flags=5) + encode_long(100_000))
    with refused(ZooKeeperError.BAD_ARGUMENTS):
        client.call(Op.CREATE_TTL, create_body("/never", flags=5) + encode_long(0))
    harness.scheduler.advance(3000)
    harness.server._delete_empty_containers()
    assert "/short" not in harness.server.tree.nodes
    assert "/long" in harness.server.tree.nodes


# -- multi


def test_a_multi_is_one_change_with_one_zxid(client):
    body = multi_body(
        (Op.CREATE, create_body("/a")),
        (Op.CREATE2, create_body("/a/b", b"x", flags=1)),
        (Op.SET_DATA, encode_string("/a") + encode_buffer(b"y") + encode_int(0)),
        (Op.CHECK, encode_string("/a") + encode_int(1)),
        (Op.DELETE, encode_string("/a/b") + encode_int(0)),
    )
    reader = client.call(Op.MULTI, body)
    ops = []
    while True:
        op, is_end, error = reader.read_int(), reader.read_bool(), reader.read_int()
        if is_end:
            break
        assert error == 0
        ops.append(op)
        if op in (Op.CREATE, Op.CREATE2):
            reader.read_text()
        if op in (Op.CREATE2, Op.SET_DATA):
            read_stat(reader)
    assert ops == [Op.CREATE, Op.CREATE2, Op.SET_DATA, Op.CHECK, Op.DELETE]
    data, stat = client.get("/a")
    assert (data, stat.children, stat.cversion, stat.version) == (b"y", 0, 2, 1)
    assert stat.czxid == stat.mzxid == stat.pzxid


def test_a_failed_multi_changes_nothing(client):
    client.create("/a")
    errors = multi_errors(
        client,
        (Op.CREATE, create_body("/b")),
        (Op.CHECK, encode_string("/a") + encode_int(7)),
        (Op.CREATE, create_body("/c")),
    )
    assert errors == [0, ZooKeeperError.BAD_VERSION, ZooKeeperError.RUNTIME_INCONSISTENCY]
    assert client.children("/") == ["a", "zookeeper"]


def test_a_multi_may_replace_a_node(harness, client):
    client.create("/a", flags=1)
    client.call(
        Op.MULTI,
        multi_body((Op.DELETE, encode_string("/a") + encode_int(-1)), (Op.CREATE, create_body("/a", b"new"))),
    )
    assert client.exists("/a").owner == 0
    assert not harness.server.tree.ephemerals
    harness.restart()
    assert harness.client().get("/a")[0] == b"new"


def test_a_multi_read_has_a_result_for_each_read(client):
    client.create("/a", b"data")
    read = encode_bool(False)
    body = multi_body(
        (Op.GET_DATA, encode_string("/a") + read),
        (Op.GET_DATA, encode_string("/b") + read),
        (Op.GET_CHILDREN, encode_string("/") + read),
    )
    reader = client.call(Op.MULTI_READ, body)
    assert (reader.read_int(), reader.read_bool(), reader.read_int()) == (Op.GET_DATA, False, 0)
    assert reader.read_buffer() == b"data"
    read_stat(reader)
    assert (reader.read_int(), reader.read_bool(), reader.read_int()) == (Op.ERROR, False, ZooKeeperError.NO_NODE)
    assert reader.read_int() == ZooKeeperError.NO_NODE
    assert (reader.read_int(), reader.read_bool(), reader.read_int()) == (Op.GET_CHILDREN, False, 0)
    assert reader.read_texts() == ["a", "zookeeper"]


# -- sessions


def test_the_timeout_of_a_session_has_limits(harness):
    assert harness.client(timeout_ms=1).timeout_ms == 4000
    assert harness.client(timeout_ms=10**9).timeout_ms == 40_000


def test_an_ephemeral_node_ends_with_its_session(harness, client):
    other = harness.client()
    client.create("/a", flags=1)
    assert other.exists("/a").owner == client.session_id
    with refused(ZooKeeperError.NO_CHILDREN_FOR_EPHEMERALS):
        other.create("/a/b")
    client.close_session()
    assert client.is_closed
    with refused(ZooKeeperError.NO_NODE):
        other.exists("/a")


def test_a_silent_session_expires_and_a_pinging_one_does_not(harness, client):
    other = harness.client()
    client.create("/a", flags=1)
    other.create("/b", flags=1)
    for _ in range(4):
        harness.scheduler.advance(3000)
        other.call(Op.PING, xid=-2)
    assert client.is_closed
    assert other.children("/") == ["b", "zookeeper"]


def test_a_client_continues_its_session_on_a_new_connection(harness, client):
    client.create("/a", flags=1)
    again = type(client)(harness)
    again.connect(client.session_id, client.password)
    assert (again.session_id, client.is_closed) == (client.session_id, True)
    assert again.exists("/a").owner == again.session_id


def test_a_request_on_a_connection_that_the_server_has_closed_is_ignored(harness, client):
    again = type(client)(harness)
    again.connect(client.session_id, client.password)
    client.transmit(encode_int(9) + encode_int(Op.CREATE) + create_body("/a"))
    assert again.children("/") == ["zookeeper"]
    assert not client.frames


@pytest.mark.parametrize("change", ["password", "session"])
def test_a_session_needs_its_id_and_password(harness, client, change):
    again = type(client)(harness)
    if change == "password":
        again.connect(client.session_id, b"x" * 16)
    else:
        again.connect(client.session_id + 1, client.password)
    assert (again.session_id, again.timeout_ms, again.is_closed) == (0, 0, True)
    assert not client.is_closed


def test_a_client_that_has_seen_a_newer_tree_is_refused(harness, client):
    again = type(client)(harness)
    again.connect(last_zxid=harness.server.tree.zxid + 1)
    assert again.is_closed
    assert not again.frames


def test_a_request_after_the_end_of_the_session_creates_nothing(harness, client):
    client.close_session()
    with refused(ZooKeeperError.SESSION_EXPIRED):
        client.is_closed = client.connection.is_closed = False
        client.create("/a", flags=1)


# -- watches


def test_an_event_precedes_the_reply_of_its_cause(client):
    client.create("/a")
    client.get("/a", watch=True)
    number = client.submit(Op.SET_DATA, encode_string("/a") + encode_buffer(b"x") + encode_int(-1))
    event, reply = map(read_reply, client.frames)
    assert (event.xid, reply.xid) == (-1, number)
    assert event.zxid == reply.zxid > 0
    client.frames.pop()
    assert client.events() == [(CHANGED, "/a")]
    client.set("/a", b"y")
    assert not client.events()


def test_a_deletion_notifies_watches_of_data_children_and_parent(client):
    client.create("/a")
    client.create("/a/b")
    client.exists("/a/b", watch=True)
    client.children("/a/b", watch=True)
    client.children("/a", watch=True)
    client.delete("/a/b")
    assert client.events() == [(DELETED, "/a/b"), (CHILD, "/a")]


def test_a_watch_of_a_missing_node_is_notified_of_its_creation(harness, client):
    with refused(ZooKeeperError.NO_NODE):
        client.exists("/a", watch=True)
    with refused(ZooKeeperError.NO_NODE):
        client.get("/b", watch=True)
    other = harness.client()
    other.create("/a")
    other.create("/b")
    assert client.events() == [(CREATED, "/a")]


def test_the_watches_of_a_closed_connection_are_removed(harness, client):
    client.create("/a")
    client.get("/a", watch=True)
    harness.server.disconnected(client.connection)
    assert not len(harness.server.watches)


def test_persistent_watches_stay(client):
    assert client.call(Op.ADD_WATCH, encode_string("/") + encode_int(1)).read_int() == 0
    client.create("/a")
    client.call(Op.ADD_WATCH, encode_string("/a") + encode_int(0))
    client.create("/a/b")
    client.set("/a/b", b"x")
    client.set("/a", b"x")
    client.delete("/a/b")
    assert client.events() == [
        (CREATED, "/a"),
        (CREATED, "/a/b"),
        (CHILD, "/a"),
        (CHANGED, "/a/b"),
        (CHANGED, "/a"),
        (DELETED, "/a/b"),
        (CHILD, "/a"),
    ]


def test_watches_are_checked_and_removed(client):
    client.create("/a")
    client.get("/a", watch=True)
    data, children, any_kind = (encode_string("/a") + encode_int(kind) for kind in (2, 1, 3))
    client.call(Op.CHECK_WATCHES, data)
    with refused(ZooKeeperError.NO_WATCHER):
        client.call(Op.CHECK_WATCHES, children)
    client.call(Op.REMOVE_WATCHES, any_kind)
    with refused(ZooKeeperError.NO_WATCHER):
        client.call(Op.REMOVE_WATCHES, any_kind)
    client.set("/a", b"x")
    assert not client.events()


def test_watches_that_are_set_again_report_missed_changes(harness, client):
    for name in ("same", "changed", "deleted", "parent"):
        client.create(f"/{name}")
    zxid = harness.server.tree.zxid
    client.set("/changed", b"x")
    client.delete("/deleted")
    client.create("/new")
    client.create("/parent/child")
    client.set_watches(zxid, ["/same", "/changed", "/deleted"], ["/new", "/missing"], ["/parent", "/same"])
    assert client.events() == [(CHANGED, "/changed"), (DELETED, "/deleted"), (CREATED, "/new"), (CHILD, "/parent")]
    client.set("/same", b"x")
    client.create("/missing")
    assert client.events() == [(CHANGED, "/same"), (CREATED, "/missing")]


def test_a_client_that_may_not_read_a_node_is_not_notified(harness, client):
    other = harness.client()
    other.call(Op.ADD_WATCH, encode_string("/") + encode_int(1))
    client.authenticate(b"me:secret")
    client.create("/a", acl=encode_acl((AclEntry(31, Identity("auth", "")),)))
    client.set("/a", b"x")
    assert not other.events()


# -- access control


def test_only_the_named_user_may_use_a_node(harness, client):
    client.authenticate(b"me:secret")
    client.create("/a", acl=encode_acl((AclEntry(31, Identity("auth", "")),)))
    other = harness.client()
    for call in (
        lambda: other.get("/a"),
        lambda: other.set("/a", b""),
        lambda: other.create("/a/b"),
        lambda: other.children("/a"),
    ):
        with refused(ZooKeeperError.NO_AUTH):
            call()
    other.exists("/a")  # needs no permission
    other.authenticate(b"me:secret")
    other.set("/a", b"")
    reader = other.call(Op.GET_ACL, encode_string("/a"))
    assert reader.read_int() == 1
    assert (reader.read_int(), reader.read_text()) == (31, "digest")
    assert reader.read_text().startswith("me:")


def test_the_digest_is_hidden_from_readers(harness, client):
    client.authenticate(b"me:secret")
    acl = (AclEntry(31, Identity("auth", "")), AclEntry(1, Identity("world", "anyone")))
    client.create("/a", acl=encode_acl(acl))
    reader = harness.client().call(Op.GET_ACL, encode_string("/a"))
    assert (reader.read_int(), reader.read_int(), reader.read_text(), reader.read_text()) == (2, 31, "digest", "me:x")


@pytest.mark.parametrize(
    "acl", [(), (AclEntry(31, Identity("world", "me")),), (AclEntry(31, Identity("auth", "")),),
            (AclEntry(31, Identity("digest", "me")),), (AclEntry(31, Identity("ip", "x")),),
            (AclEntry(31, Identity("other", "me")),)]
)  # fmt: skip
def test_an_invalid_acl_is_refused(client, acl):
    with refused(ZooKeeperError.INVALID_ACL):
        client.create("/a", acl=encode_acl(acl))


def test_an_address_may_be_named_by_its_network(client):
    client.create("/a", acl=encode_acl((AclEntry(31, Identity("ip", "127.0.0.0/8")),)))
    client.set("/a", b"")
    client.create("/b", acl=encode_acl((AclEntry(31, Identity("ip", "10.0.0.0/8")),)))
    with refused(ZooKeeperError.NO_AUTH):
        client.set("/b", b"")


def test_an_unknown_scheme_ends_the_connection(client):
    body = encode_int(0) + encode_string("kerberos") + encode_buffer(b"")
    with refused(ZooKeeperError.AUTH_FAILED):
        client.call(Op.AUTH, body, xid=-4)
    assert client.is_closed


# -- the log


def test_replies_and_events_wait_for_the_log_in_order(harness, client):
    other = harness.client()
    client.create("/a")
    client.get("/a", watch=True)
    harness.log.is_holding = True
    write = other.submit(Op.SET_DATA, encode_string("/a") + encode_buffer(b"x") + encode_int(-1))
    read = client.submit(Op.GET_DATA, encode_string("/a") + encode_bool(False))
    ping = client.submit(Op.PING, xid=-2)
    assert not client.frames
    assert not other.frames
    harness.log.release()
    assert [read_reply(frame).xid for frame in client.frames] == [-1, read, ping]
    assert [read_reply(frame).xid for frame in other.frames] == [write]
    assert b"x" in client.frames[1]


def test_a_multi_read_with_huge_results_is_refused(client):
    client.create("/a", b"x" * 1_000_000)
    read = (Op.GET_DATA, encode_string("/a") + encode_bool(False))
    reader = client.call(Op.MULTI_READ, multi_body(*[read] * 3))
    assert reader.remaining > 3_000_000
    with refused(ZooKeeperError.MARSHALLING_ERROR):
        client.call(Op.MULTI_READ, multi_body(*[read] * 17))
    assert client.get("/a")[0] is not None


def test_the_bytes_that_wait_for_a_client_are_counted(harness, client):
    other = harness.client()
    other.create("/a", b"x" * 1000)
    harness.log.is_holding = True
    other.submit(Op.SET_DATA, encode_string("/a") + encode_buffer(b"y" * 1000) + encode_int(-1))
    for _ in range(10):
        client.submit(Op.GET_DATA, encode_string("/a") + encode_bool(False))
    assert client.held > 10_000
    harness.log.release()
    assert len(client.frames) == 10
    assert client.held == other.held == 0


@pytest.mark.parametrize("error", [Error.NOT_ENOUGH_REPLICAS, Error.NOT_LEADER_OR_FOLLOWER])
def test_a_refused_record_ends_the_connections_and_changes_nothing(harness, client, error):
    harness.log.next_failure = error
    client.submit(Op.CREATE, create_body("/a"))
    assert client.is_closed
    assert not client.frames
    again = type(client)(harness)
    again.connect(client.session_id, client.password)
    assert again.session_id == client.session_id
    assert again.children("/") == ["zookeeper"]
    again.create("/a")


@pytest.mark.parametrize("is_closed_by_client", [True, False])
def test_a_session_whose_end_the_log_refuses_expires_later(harness, client, is_closed_by_client):
    client.create("/ephemeral", flags=1)
    harness.log.next_failure = Error.NOT_ENOUGH_REPLICAS
    if is_closed_by_client:
        client.submit(Op.CLOSE_SESSION)
    else:
        harness.scheduler.advance(11_000)
    assert harness.log.next_failure is None
    assert client.is_closed
    assert "/ephemeral" in harness.server.tree.nodes
    harness.scheduler.advance(11_000)
    assert "/ephemeral" not in harness.server.tree.nodes
    assert client.session_id not in harness.server.tree.sessions


def test_the_tree_is_the_same_after_a_restart(harness, client):
    client.create("/a", b"data", acl=encode_acl((AclEntry(31, Identity("ip", "127.0.0.1")),)))
    client.create("/a/b", flags=1)
    client.create("/a/c", flags=3)
    client.create("/d")
    client.create("/d/e")
    client.delete("/d/e")
    client.delete("/d")
    client.create("/d")
    client.set("/a", b"new")
    before = harness.server.tree
    harness.restart()
    after = harness.server.tree
    assert after is not before
    assert (after.nodes, after.sessions, after.ephemerals) == (before.nodes, before.sessions, before.ephemerals)
    assert after.zxid >> 32 == (before.zxid >> 32) + 1
    assert client.is_closed
    again = type(client)(harness)
    again.connect(client.session_id, client.password)
    assert again.create("/a/n", flags=2) == "/a/n0000000002"
    harness.scheduler.advance(20_000)
    assert harness.client().children("/a") == ["n0000000002"]


# -- malformed requests


def test_a_malformed_request_is_answered_with_an_error(client):
    with refused(ZooKeeperError.MARSHALLING_ERROR):
        client.call(Op.CREATE, encode_int(2_000_000_000))
    client.create("/a")


def test_an_unknown_operation_ends_the_connection(client):
    with refused(ZooKeeperError.UNIMPLEMENTED):
        client.call(77)
    assert client.is_closed


@pytest.mark.parametrize("op", [Op.SASL, Op.RECONFIG])
def test_operations_that_are_not_served_are_unimplemented(client, op):
    with refused(ZooKeeperError.UNIMPLEMENTED):
        client.call(op)
    client.create("/a")


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0" * 7])
def test_a_frame_without_a_header_ends_the_connection(client, frame):
    client.transmit(frame)
    assert client.is_closed


def test_the_beginning_of_every_frame_is_refused_or_answered(harness):
    """Sends each proper prefix of requests; the server must stay whole."""
    bodies = [
        create_body("/a"),
        encode_string("/a") + encode_int(-1),
        multi_body((Op.CREATE, create_body("/a")), (Op.CHECK, encode_string("/") + encode_int(-1))),
    ]
    for op, body in zip((Op.CREATE, Op.DELETE, Op.MULTI), bodies, strict=True):
        for end in range(len(body)):
            client = harness.client()
            with refused(ZooKeeperError.MARSHALLING_ERROR):
                client.call(op, body[:end])
    assert harness.client().children("/") == ["zookeeper"]


def test_the_server_counts_what_it_serves(harness, client):
    client.create("/a", flags=1)
    client.get("/a", watch=True)
    client.children("/", watch=True)
    counts = harness.server.counts()
    assert (counts.nodes, counts.ephemerals, counts.sessions, counts.connections) == (5, 1, 1, 1)
    assert (counts.watches, counts.outstanding, counts.received, counts.sent) == (2, 0, 4, 4)
    client.delete("/a")
    assert len(harness.server.watches) == 0


def test_who_am_i_shows_whole_addresses_and_names_without_digests(harness):
    client = TestClient(harness, "0:0:0:0:0:0:0:1")
    client.connect()
    client.authenticate(b"user:password")
    reader = client.call(Op.WHO_AM_I, b"")
    found = [(reader.read_text(), reader.read_text()) for _ in range(reader.read_int())]
    assert found == [("ip", "0:0:0:0:0:0:0:1"), ("digest", "user")]
