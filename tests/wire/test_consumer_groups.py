"""Raw requests of consumer groups (KIP-848) to kafkapy and to Apache Kafka, whose responses must be equal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumer_group_client import ConsumerGroupClient, subscription
from tests.peers import run_tool

PROPERTIES = {
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
Client = ConsumerGroupClient

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


def members_that_do_not_exist(client: Client) -> None:
    client.heartbeat("unknown group", "nowhere", member_epoch=1)
    client.heartbeat("leaves an unknown group", "nowhere", member_epoch=-1)
    client.heartbeat("leaves it for a while", "nowhere", member_epoch=-2, instance_id="i")
    client.join_heartbeat("join")
    client.heartbeat("unknown member", member="m9", member_epoch=2)
    client.heartbeat("unknown member leaves", member="m9", member_epoch=-1)
    client.heartbeat("unknown instance", instance_id="i9", member_epoch=2)
    client.heartbeat("unknown instance leaves", instance_id="i9", member_epoch=-2)


def requests_that_contradict_themselves(client: Client) -> None:
    join = client.join_heartbeat
    join("empty group", "")
    join("blank group", "  ")
    join("empty member", member="")
    join("empty member, version 0", "v0", "", version=0)
    client.heartbeat("empty member stays, version 0", "v0", "", version=0, member_epoch=1)
    join("empty instance", instance_id="")
    join("empty rack", rack_id="")
    join("no rebalance timeout", rebalance_timeout_ms=-1)
    join("partitions not said", topic_partitions=None)
    join("partitions owned", owned=[0])
    join("no subscription", subscribed_topic_names=None)
    client.heartbeat("epoch -3", member_epoch=-3)
    client.heartbeat("no instance", member_epoch=-2)
    join("unknown assignor", server_assignor="zigzag")
    join("empty assignor", server_assignor="")
    client.describe("none of them made a group", "g", "", "g")


def epochs(client: Client) -> None:
    client.join_heartbeat("join")
    client.heartbeat("stays", member_epoch=2)
    everything = {"rebalance_timeout_ms": 60000, "subscribed_topic_names": [client.topic], "owned": [0, 1, 2, 3]}
    client.heartbeat("says all", member_epoch=2, **everything)
    client.heartbeat("greater", member_epoch=7)
    client.heartbeat("smaller", member_epoch=1)
    client.heartbeat("unknown assignor", member_epoch=2, server_assignor="zigzag")
    client.join_heartbeat("again from the beginning")
    client.heartbeat("other topics", member_epoch=2, subscribed_topic_names=["nothing"])
    client.heartbeat("revoked", member_epoch=2, owned=[])
    client.heartbeat("the answer was lost", member_epoch=2, owned=[])
    client.heartbeat("the answer was lost, but it owns more", member_epoch=2, owned=[0])
    client.describe("described", "g")
    client.heartbeat("leaves", member_epoch=-1)
    client.describe("described", "g")
    client.join_heartbeat("no topics at all", "empty", subscribed_topic_names=[])
    client.describe("described", "empty")


def two_members(client: Client) -> None:
    client.join_heartbeat("first", rack_id="r1")
    client.join_heartbeat("second waits", member="m2", server_assignor="range")
    client.heartbeat("first revokes", member_epoch=2)
    client.describe("reconciling", "g")
    client.heartbeat("second waits", member="m2", member_epoch=3)
    client.heartbeat("first still owns them", member_epoch=2, owned=[0, 1, 2, 3])
    client.heartbeat("first has revoked", member_epoch=2, owned=[0, 1])
    client.heartbeat("second", member="m2", member_epoch=3)
    client.describe("stable", "g")
    client.list("listed", "g")
    client.describe_classic("not classic", "g")
    client.delete("not empty", "g")
    client.heartbeat("first leaves", member_epoch=-1)
    client.heartbeat("second gets all", member="m2", member_epoch=3)
    client.heartbeat("second leaves", member="m2", member_epoch=-1)
    client.list("listed", "g")
    client.delete("empty", "g")
    client.describe("gone", "g")


def static_members(client: Client) -> None:
    client.join_heartbeat("joins", member="s1", instance_id="one")
    client.join_heartbeat("instance in use", member="s2", instance_id="one")
    client.heartbeat("fenced", member="s2", instance_id="one", member_epoch=2)
    client.heartbeat("fenced leaves", member="s2", instance_id="one", member_epoch=-1)
    client.heartbeat("fenced leaves for a while", member="s2", instance_id="one", member_epoch=-2)
    client.heartbeat("leaves for a while", member="s1", instance_id="one", member_epoch=-2)
    client.describe("away", "g")
    client.join_heartbeat("comes back", member="s3", instance_id="one")
    client.heartbeat("its old id", member="s1", instance_id="one", member_epoch=2)
    client.describe("back", "g")
    client.heartbeat("leaves", member="s3", instance_id="one", member_epoch=-1)
    client.describe("empty", "g")


def offsets(client: Client) -> None:
    client.join_heartbeat("join")
    client.commit("commits", "g", "m1", 2)
    client.commit("by topic id", "g", "m1", 2, version=10)
    client.commit("stale", "g", "m1", 1)
    client.commit("greater", "g", "m1", 3)
    client.commit("too old a version", "g", "m1", 2, version=8)
    client.commit("unknown member", "g", "m9", 2)
    client.commit("administrator of a living group", "g", "", -1)
    client.commit("another instance", "g", "m1", 2, group_instance_id="i9")
    client.commit("unknown group", "nowhere", "m1", 1)
    client.fetch("fetches", "g", "m1", 2)
    client.fetch("stale", "g", "m1", 1)
    client.fetch("greater", "g", "m1", 3)
    client.fetch("unknown member", "g", "m9", 2)
    client.fetch("nobody with an epoch", "g", None, 2)
    client.fetch("empty member", "g", "")
    client.fetch("administrator", "g")
    client.fetch("member of an unknown group", "nowhere", "m1", 1)
    client.delete_offset("subscribed", "g")
    client.heartbeat("other topics", member_epoch=2, subscribed_topic_names=["nothing"])
    client.delete_offset("no longer subscribed", "g")
    client.delete_offset("unknown group", "nowhere")
    client.heartbeat("leaves", member_epoch=-1)
    client.commit("administrator of an empty group", "g", "", -1)
    client.fetch("administrator", "g")
    client.delete("with its offsets", "g")
    client.fetch("gone", "g")


def deletion_of_pending_offsets(client: Client) -> None:
    client.begin_transaction("g")
    client.commit_transactional("pending", "g")
    client.fetch("not committed yet", "g")
    client.delete_offset("deletes what is pending", "g")
    client.commit_transaction()
    client.fetch("does not come back", "g")
    client.commit_transactional("pending", "g")
    client.delete("deletes the group", "g")
    client.commit_transaction()
    client.fetch("does not come back", "g")
    client.commit_transactional("pending", "g")
    client.commit("commits", "g", "", -1)
    client.delete_offset("deletes both", "g")
    client.commit_transaction()
    client.fetch("does not come back", "g")


EXPRESSIONS = (
    "[", "a**", "(", "a{1001}", "\\", "[z-a]", "(?z)", "x)", "*a", "\\pX", "[[:foo:]]", "(?P<n>a", "a{2,1}", "\\8",
    "(?i)ABC", "(?=a)", "(?<!a)", "\\1", "a{,5}", "[^a", "\\Q..\\E", "a++", "^*", "(?:)", "|", "\\C",
    "a|b(c|d)*?[^x-z]{2,}$",
)  # fmt: skip


def regular_expressions(client: Client) -> None:
    for number, expression in enumerate(EXPRESSIONS):
        wanted = {"subscribed_topic_names": None, "subscribed_topic_regex": expression}
        client.join_heartbeat(expression, f"regex-{number}", **wanted)


def configurations(client: Client) -> None:
    for name, values in {
        "consumer.session.timeout.ms": ("45000", "2999", "60001", "-1", "x", "", " 50000 "),
        "consumer.heartbeat.interval.ms": ("5000", "499", "15001", "0"),
        "consumer.assignment.interval.ms": ("0", "15001", "-1"),
        "share.session.timeout.ms": ("1", "50000"),
        "share.auto.offset.reset": ("earliest", "by_duration:PT1H", "by_duration:PT", "x"),
        "share.isolation.level": ("x", "read_committed"),
        "share.renew.acknowledge.enable": ("maybe",),
        "streams.num.standby.replicas": ("1", "99"),
        "streams.initial.rebalance.delay.ms": ("-1", "5"),
        "unknown.key": ("1",),
    }.items():
        for value in values:
            client.configure("configured", name, value)
    client.configure("close", "consumer.session.timeout.ms", "3000")
    client.configure("close", "consumer.heartbeat.interval.ms", "4000")
    client.configure("", "consumer.session.timeout.ms", "45000")


def classic_members_in_a_consumer_group(client: Client) -> None:
    client.join_heartbeat("consumer member")
    client.join("wrong type", member="x", protocol_type="connect")
    client.join("malformed", member="x", protocols=[("range", b"")])
    member = client.join("needs an id").member_id
    client.beat("not joined yet", "g", member, 2)
    client.sync("not joined yet", "g", member, 2)
    client.leave("not joined yet", "g", (member, None))
    generation = client.join("joins", member=member).generation_id
    client.sync("nothing yet", "g", member, generation)
    client.beat("nothing yet", "g", member, generation)
    client.heartbeat("consumer member revokes", member_epoch=2)
    client.heartbeat("consumer member has revoked", member_epoch=2, owned=[0, 1])
    client.beat("there is news", "g", member, generation)
    generation = client.join("joins again", member=member).generation_id
    client.sync("wrong generation", "g", member, generation + 9)
    client.sync("wrong protocol", "g", member, generation, protocol_name="zigzag")
    client.sync("its part", "g", member, generation)
    client.beat("stable", "g", member, generation)
    client.beat("wrong generation", "g", member, generation + 9)
    client.beat("another protocol's member", "g", "m1", 3)
    client.commit("commits", "g", member, generation, version=8)
    client.commit("stale", "g", member, generation - 1, version=8)
    client.describe("both kinds", "g")
    client.describe_classic("both kinds", "g")
    client.heartbeat("the last consumer member leaves", member_epoch=-1)
    client.describe("downgraded", "g")
    client.describe_classic("downgraded", "g")
    client.beat("rebalances", "g", member, generation)
    client.leave("leaves", "g", (member, None), ("nobody", None), ("", "nothing"))


def static_members_change_their_protocol(client: Client) -> None:
    client.join_heartbeat("new protocol", member="s1", instance_id="one")
    old = client.join("old protocol", instance="one")
    client.describe_classic("downgraded", "g")
    client.sync("keeps its part", "g", old.member_id, old.generation_id, group_instance_id="one")
    client.heartbeat("fenced", member="s1", instance_id="one", member_epoch=2)
    client.join_heartbeat("first of the new protocol", member="m2")
    client.describe("upgraded", "g")
    client.beat("told to join", "g", old.member_id, old.generation_id, "one")
    client.join("old id", member="nobody", instance="one")
    client.join("unknown instance", member="nobody", instance="two")
    client.join_heartbeat("new protocol again", member="s3", instance_id="one")
    client.beat("fenced", "g", old.member_id, old.generation_id, "one")


def groups_that_cannot_be_upgraded(client: Client) -> None:
    member = client.join("another type", "connect", protocols=[("x", b"")], protocol_type="connect").member_id
    client.join("another type", "connect", member, protocols=[("x", b"")], protocol_type="connect")
    client.join_heartbeat("another type", "connect")
    member = client.join("malformed", "malformed", protocols=[("x", b"\xff")]).member_id
    client.join("malformed", "malformed", member, protocols=[("x", b"\xff")])
    client.join_heartbeat("malformed", "malformed")
    client.commit("a simple group", "simple", "", -1)
    client.join_heartbeat("a simple group", "simple")
    client.fetch("keeps its offsets", "simple")
    member = client.join("an empty classic group", "classic").member_id
    client.join("an empty classic group", "classic", member, protocols=[("range", subscription([client.topic]))])
    client.leave("an empty classic group", "classic", (member, None))
    client.join_heartbeat("an empty classic group", "classic")
    client.heartbeat("an empty consumer group", "classic", member_epoch=-1)
    client.join("an empty consumer group", "classic", version=3)
    client.heartbeat("classic again", "classic", member_epoch=1)
    client.describe("classic again", "classic")


SCRIPTS = (
    members_that_do_not_exist,
    requests_that_contradict_themselves,
    epochs,
    two_members,
    static_members,
    offsets,
    deletion_of_pending_offsets,
    regular_expressions,
    configurations,
    classic_members_in_a_consumer_group,
    static_members_change_their_protocol,
    groups_that_cannot_be_upgraded,
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_both_say_the_same(script: Callable[[Client], None], ports: tuple[int, int]) -> None:
    ours, theirs = play(script, ports)
    assert ours == theirs
    assert len(ours) > 5


@pytest.mark.parametrize("options", [("--members", "--verbose"), ("--state",)], ids=lambda options: options[0][2:])
def test_the_tool_prints_the_same(options: tuple[str, ...], ports: tuple[int, int], kafka_43: Path) -> None:
    topic = f"tool{options[0]}"
    printed = []
    for port in ports:
        client = ConsumerGroupClient(port, topic)
        client.join_heartbeat("one", rack_id="r1")
        client.join_heartbeat("two", member="m2", instance_id="i2")
        client.heartbeat("one revokes", member_epoch=2)
        client.heartbeat("one has revoked", member_epoch=2, owned=[0, 1])
        client.heartbeat("two", member="m2", member_epoch=3, instance_id="i2")
        client.commit("one commits", "g", "m1", 3)
        arguments = ("--bootstrap-server", f"localhost:{port}", "--describe", *options, "--group", f"{topic}-g")
        name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        output = run_tool(kafka_43, name, *arguments).stdout.decode()
        printed.append(sorted(" ".join(line.split()).replace(str(port), "PORT") for line in output.splitlines()))
        client.close()
    assert printed[0] == printed[1]
    assert any(topic in line for line in printed[0])


def play(script: Callable[[Client], None], ports: tuple[int, int]) -> list[list[str]]:
    """Runs the script against both servers at once and returns the lines of each."""
    said: list[list[str]] = [[], []]

    def run(number: int, port: int) -> None:
        client = ConsumerGroupClient(port, f"topic-{script.__name__}")
        try:
            script(client)
        finally:
            client.close()
        said[number] = client.said

    threads = [threading.Thread(target=run, args=each) for each in enumerate(ports)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said
