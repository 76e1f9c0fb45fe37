"""The pages of metrics listeners as the console reads them, and the sentences for what it cannot read."""

from __future__ import annotations

import json

import pytest

from kafkapy.console.broker_facts import BrokerFacts, FactsUnknown
from kafkapy.console.metrics_addresses import addresses_of
from kafkapy.errors import ConfigError
from kafkapy.metrics.http_server import Credentials, HttpServer, Response
from kafkapy.tools.metrics import PageAddress
from kafkapy.types import TopicPartition

CLUSTER = "a-cluster"
PARTITION = TopicPartition("orders", 3)


class Listener:
    """A metrics listener whose inspection pages are those of `pages`, by path."""

    def __init__(self, pages, **settings):
        self.pages = pages
        self.asked = []
        self.server = HttpServer("127.0.0.1:0", **settings)
        self.server.start({}, trees={"/v1/": self.answer})
        self.address = PageAddress(f"http://127.0.0.1:{self.server.port}/metrics")

    def answer(self, path, query):
        self.asked.append(f"{path}?{query}" if query else path)
        found = self.pages.get(self.asked[-1])
        if found is None:
            return Response(b'{"error": "There is no such page."}\n', 404)
        return Response(json.dumps(found).encode())


@pytest.fixture
def listen():
    listeners = []

    def make(pages, **settings):
        listeners.append(Listener(pages, **settings))
        return listeners[-1]

    yield make
    for each in listeners:
        each.server.close()


def broker(node_id):
    return {"cluster_id": CLUSTER, "node_id": node_id}


def test_without_addresses_the_reason_names_the_option_and_apache_kafka():
    with pytest.raises(FactsUnknown, match=r"option --metrics names; Apache Kafka does not tell it\."):
        BrokerFacts(()).place(CLUSTER, [1], PARTITION, 5)


def test_the_place_comes_from_the_first_broker_that_tells_it(listen):
    path = "topics/orders/partitions/3/offsets/5"
    leader = listen({"broker": broker(2)})
    follower = listen({"broker": broker(7), path: {"position": 11}})
    facts = BrokerFacts([follower.address, leader.address])
    assert facts.place(CLUSTER, [2, 7], PARTITION, 5) == {"broker": 7, "position": 11}
    assert leader.asked == ["broker", path]


def test_the_reason_is_that_of_the_leader(listen):
    facts = BrokerFacts([listen({"broker": broker(2)}).address])
    with pytest.raises(FactsUnknown, match=r"There is no such page\."):
        facts.place(CLUSTER, [2, 3], PARTITION, 5)
    with pytest.raises(FactsUnknown, match="No address of --metrics belongs to broker 3 of this cluster"):
        facts.place(CLUSTER, [3, 2], PARTITION, 5)


def test_a_listener_of_another_cluster_is_not_used(listen):
    facts = BrokerFacts([listen({"broker": {"cluster_id": "other", "node_id": 2}}).address])
    with pytest.raises(FactsUnknown, match="No address of --metrics belongs to broker 2 of this cluster"):
        facts.quotas(CLUSTER, 2)


def test_lists_are_read_in_pages_up_to_a_limit(listen):
    endless = {f"quotas?start={start}": {"quotas": [{"n": start}], "next": start + 1} for start in range(10)}
    short = {"large-fetches?start=0": {"large_fetches": [{"n": 0}], "next": None}}
    facts = BrokerFacts([listen({"broker": broker(2), **endless, **short}).address])
    assert facts.quotas(CLUSTER, 2) == (2, [{"n": number} for number in range(4)], False)
    assert facts.large_fetches(CLUSTER, 2) == (2, [{"n": 0}], True)


def test_a_listener_that_does_not_respond_is_not_asked_again_for_some_seconds(listen):
    now_s = [100.0]
    gone = listen({})
    gone.server.close()
    facts = BrokerFacts([gone.address], lambda: now_s[0])
    with pytest.raises(FactsUnknown, match=r"cannot be read: Connection refused"):
        facts.quotas(CLUSTER, 2)
    gone.server = HttpServer(f"127.0.0.1:{gone.server.port}")
    gone.pages = {"broker": broker(2), "quotas?start=0": {"quotas": [], "next": None}}
    gone.server.start({}, trees={"/v1/": gone.answer})
    with pytest.raises(FactsUnknown, match=r"cannot be read: Connection refused"):
        facts.quotas(CLUSTER, 2)
    now_s[0] += 11
    assert facts.quotas(CLUSTER, 2).entries == []


def test_a_listener_of_another_program_is_named(listen):
    server = HttpServer("127.0.0.1:0")
    server.start({"/metrics": lambda: Response(b"jvm_memory 1\n")})
    try:
        facts = BrokerFacts([PageAddress(f"http://user:secret@127.0.0.1:{server.port}/metrics")])
        with pytest.raises(FactsUnknown) as reason:
            facts.quotas(CLUSTER, 2)
    finally:
        server.close()
    assert f"http://127.0.0.1:{server.port} is not the metrics listener of a kafkapy broker" in str(reason.value)
    assert "secret" not in str(reason.value)


def test_wrong_credentials_are_named(listen):
    guarded = listen(
        {"broker": broker(2), "quotas?start=0": {"quotas": [], "next": None}}, credentials=Credentials("me", "right")
    )
    with pytest.raises(FactsUnknown, match="refuses the user name or the password"):
        BrokerFacts([guarded.address._replace(user="me", password="wrong")]).quotas(CLUSTER, 2)
    assert BrokerFacts([guarded.address._replace(user="me", password="right")]).quotas(CLUSTER, 2).entries == []


def test_addresses_are_urls_or_files(tmp_path):
    assert [each.url for each in addresses_of("http://a:1, http://b:2/")] == ["http://a:1", "http://b:2/"]
    assert addresses_of("http://me:p%40ss@a:1")[0][2:] == ("me", "p@ss")
    of_broker = tmp_path / "server.properties"
    of_broker.write_text(
        "kafkapy.metrics.listener=0.0.0.0:9404\nkafkapy.metrics.username=u\nkafkapy.metrics.password=p\n"
    )
    assert addresses_of(str(of_broker)) == (PageAddress("http://localhost:9404/metrics", None, "u", "p"),)
    listed = tmp_path / "metrics.properties"
    listed.write_text(
        "kafkapy.metrics.urls=https://a:1,http://b:2\nkafkapy.metrics.username=u\nkafkapy.metrics.password=p\n"
    )
    first, second = addresses_of(str(listed))
    assert (first.url, first.user, first.password, second.url) == ("https://a:1", "u", "p", "http://b:2")
    assert first.tls is not None


@pytest.mark.parametrize(
    "place", ["localhost:9404", "ftp://a", "http://", "http://a:x", "http://a/other", "", "http://[a"]
)
def test_a_place_that_is_no_address_is_refused(place):
    with pytest.raises(ConfigError, match="is not the address of a metrics listener, such as"):
        addresses_of(place)


def test_a_file_without_addresses_is_refused(tmp_path):
    (tmp_path / "empty.properties").write_text("a=b\n")
    with pytest.raises(ConfigError, match=r"sets neither kafkapy\.metrics\.urls nor kafkapy\.metrics\.listener"):
        addresses_of(str(tmp_path / "empty.properties"))
