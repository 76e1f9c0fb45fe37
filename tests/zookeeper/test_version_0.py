"""OffsetCommit 0 and OffsetFetch 0, which mean the offsets in ZooKeeper."""

from __future__ import annotations

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker_process import BrokerProcess
from tests.old_client import ask, create_topic
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.version_0 import commit, fetch

TOPIC = "old"
FOLDER = f"/consumers/{{}}/offsets/{TOPIC}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ListeningBroker(tmp_path_factory.mktemp("zookeeper")) as broker:
        create_topic(broker, TOPIC)
        yield broker


@pytest.fixture(scope="module")
def client(broker):
    client = KazooClient(broker.zookeeper)
    client.start(timeout=30)
    yield client
    client.stop()
    client.close()


def test_a_commit_writes_the_node_of_the_offset(broker, client):
    assert commit(broker, "written", TOPIC, {0: 5}) == {0: Error.NONE}
    path = f"{FOLDER.format('written')}/0"
    data, stat = client.get(path)
    assert (data, stat.version, stat.ephemeralOwner) == (b"5", 0, 0)
    assert commit(broker, "written", TOPIC, {0: 7}) == {0: Error.NONE}
    assert (client.get(path)[0], client.get(path)[1].version) == (b"7", 1)
    assert fetch(broker, "written", TOPIC, [0]) == {0: (7, Error.NONE)}


def test_a_commit_notifies_the_watch_of_the_node(broker, client):
    events = []
    path = f"{FOLDER.format('watched')}/0"
    client.exists(path, watch=events.append)
    commit(broker, "watched", TOPIC, {0: 1})
    client.sync("/")  # a reply, which follows the event
    assert [(event.type, event.path) for event in events] == [("CREATED", path)]


def test_a_fetch_reads_what_another_program_wrote(broker, client):
    client.create(f"{FOLDER.format('other')}/0", b"42", makepath=True)
    assert fetch(broker, "other", TOPIC, [0]) == {0: (42, Error.NONE)}


def test_nothing_committed_is_an_unknown_partition(broker):
    assert fetch(broker, "nobody", TOPIC, [0]) == {0: (-1, Error.UNKNOWN_TOPIC_OR_PARTITION)}


@pytest.mark.parametrize("data", [b"", b"five", b"1 ", b"1_0", b"9" * 19, b"\xff"])
def test_a_node_without_a_number_is_an_error(broker, client, data):
    path = f"{FOLDER.format('damaged')}/0"
    client.ensure_path(path)
    client.set(path, data)
    assert fetch(broker, "damaged", TOPIC, [0]) == {0: (-1, Error.UNKNOWN_SERVER_ERROR)}


def test_unknown_partitions_are_refused(broker, client):
    expected = {0: Error.NONE, 9: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert commit(broker, "partly", TOPIC, {0: 1, 9: 1}) == expected
    assert client.get_children(FOLDER.format("partly")) == ["0"]
    assert fetch(broker, "partly", TOPIC, [9]) == {9: (-1, Error.UNKNOWN_TOPIC_OR_PARTITION)}
    assert commit(broker, "partly", "no-topic", {0: 1}) == {0: Error.UNKNOWN_TOPIC_OR_PARTITION}


def test_long_metadata_is_refused(broker):
    assert commit(broker, "long", TOPIC, {0: 1}, metadata="m" * 4097) == {0: Error.OFFSET_METADATA_TOO_LARGE}


@pytest.mark.parametrize("group", ["", ".", "a\x01"])
def test_a_group_that_is_no_name_of_a_node_is_an_error(broker, group):
    assert commit(broker, group, TOPIC, {0: 1}) == {0: Error.UNKNOWN_SERVER_ERROR}
    assert fetch(broker, group, TOPIC, [0])[0][1] is not Error.NONE


def test_a_node_that_belongs_to_others_stays_as_it_is(broker, client):
    path = f"{FOLDER.format('private')}/0"
    client.ensure_path(FOLDER.format("private"))
    client.create(path, b"3", acl=[make_digest_acl("user", "password", all=True)])
    assert commit(broker, "private", TOPIC, {0: 4}) == {0: Error.UNKNOWN_SERVER_ERROR}
    assert fetch(broker, "private", TOPIC, [0]) == {0: (-1, Error.UNKNOWN_SERVER_ERROR)}
    client.add_auth("digest", "user:password")
    assert client.get(path)[0] == b"3"


def test_the_group_coordinator_has_other_offsets(broker):
    """Version 1 means the coordinator, for which the group of the tree does not exist."""
    commit(broker, "two", TOPIC, {0: 8})
    request = OffsetFetchRequest(
        group_id="two", topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    )
    answer = ask(broker, ApiKey.OFFSET_FETCH, 1, request)
    assert [each.committed_offset for each in answer.topics[0].partitions] == [-1]


def lowest_versions(server):
    answer = ask(server, ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    announced = {each.api_key: each.min_version for each in answer.api_keys}
    return announced[ApiKey.OFFSET_COMMIT], announced[ApiKey.OFFSET_FETCH]


def test_version_0_is_served_only_with_the_listener(broker, tmp_path):
    """Without the listener it is not announced, and a request ends the connection, as in Apache Kafka 4.3."""
    assert lowest_versions(broker) == (0, 0)
    with BrokerProcess(tmp_path) as other:
        assert lowest_versions(other) == (1, 1)
        for key, request in (
            (ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id="g", topics=[])),
            (ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id="g", topics=[])),
        ):
            with pytest.raises(ConnectionResetError):
                ask(other, key, 0, request)
