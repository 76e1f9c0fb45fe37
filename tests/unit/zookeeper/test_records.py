"""The records of the tree: a tree that is loaded from a compacted log equals the tree that wrote it."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.zookeeper.acl import AclEntry, Identity
from kafkapy.zookeeper.jute import encode_bool, encode_int, encode_string
from kafkapy.zookeeper.records import TreeLoader
from kafkapy.zookeeper.requests import Op, encode_acl
from kafkapy.zookeeper.tree import Tree
from tests.harness.zookeeper import ZooKeeperHarness, ZooKeeperReplyError, create_body

NAMES = ("a", "b", "c")
ACLS = (
    encode_acl((AclEntry(31, Identity("world", "anyone")),)),
    encode_acl((AclEntry(31, Identity("ip", "127.0.0.1")), AclEntry(1, Identity("world", "anyone")))),
)


def random_path(choose):
    return "".join(f"/{choose.choice(NAMES)}" for _ in range(choose.randint(1, 3)))


def random_operation(choose):
    path = random_path(choose)
    data = choose.randbytes(choose.randint(0, 5))
    return choose.choice(
        [
            (Op.CREATE, create_body(path, data, choose.choice([0, 1, 2, 3, 4]), choose.choice(ACLS))),
            (Op.CREATE, create_body(path, None)),
            (Op.DELETE, encode_string(path) + encode_int(-1)),
            (Op.SET_DATA, encode_string(path) + encode_int(len(data)) + data + encode_int(-1)),
        ]
    )


def act(choose, client):
    if choose.random() < 0.2:
        operations = [random_operation(choose) for _ in range(3)]
        body = b"".join(encode_int(op) + encode_bool(False) + encode_int(-1) + request for op, request in operations)
        client.call(Op.MULTI, body + encode_int(-1) + encode_bool(True) + encode_int(-1))
        return
    with suppress(ZooKeeperReplyError):
        client.call(*random_operation(choose))


def loaded(records):
    tree = Tree()
    loader = TreeLoader(tree)
    for record in records:
        loader.replay(record.key, record.value)
    loader.finish()
    return tree


@pytest.mark.parametrize("seed", range(12))
def test_a_compacted_log_has_the_whole_tree(seed):
    choose = random.Random(seed)
    harness = ZooKeeperHarness()
    clients = [harness.client() for _ in range(3)]
    for _ in range(300):
        index = choose.randrange(3)
        act(choose, clients[index])
        if choose.random() < 0.02:
            clients[index].close_session()
            clients[index] = harness.client()
    written = harness.server.tree
    records = harness.log.records
    last = {record.key: record.offset for record in records}
    compacted = [record for record in records if last[record.key] == record.offset]
    without_tombstones = [record for record in compacted if record.value is not None]
    for kept in (records, compacted, without_tombstones):
        tree = loaded(kept)
        assert (tree.nodes, tree.sessions, tree.ephemerals) == (written.nodes, written.sessions, written.ephemerals)
        assert tree.expendable == written.expendable
        assert {path: set(tree.children(path)) for path in tree.nodes} == {
            path: set(written.children(path)) for path in written.nodes
        }
    assert len(compacted) < len(records)


def test_an_unknown_kind_of_record_is_ignored():
    harness = ZooKeeperHarness()
    builder = RecordBatchBuilder(harness.log.log_end_offset(None))
    builder.append(0, b"\0\x63", b"later")
    harness.log.append_raw(bytes(builder.build()))
    harness.restart()
    assert harness.client().children("/") == ["zookeeper"]
