"""The mirror between two brokers: exact copies, translated offsets, MirrorMaker 1's example, the topologies."""

from __future__ import annotations

import json
import re

import pytest

from kafkapy.client import Admin, Producer, TopicPartition
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable.mirror import Mirror
from tests.broker_process import BrokerProcess
from tests.reliable.running import records_of, running, values_of, wait_until
from tests.reliable.tool_process import ToolProcess


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """Returns the address of a second cluster."""
    with BrokerProcess(tmp_path_factory.mktemp("second")) as broker:
        yield broker.bootstrap


def create(bootstrap: str, topic: str, partitions: int) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1)]).check()
    return topic


def fill(bootstrap: str, topic: str, values, **settings) -> None:
    with Producer(bootstrap_servers=bootstrap, **settings) as producer:
        for value in values:
            producer.send(topic, value, value, timestamp=1_700_000_000_000 + int(value), headers=[("h", value)])


def mirror_of(source: str, target: str, include: str, **settings) -> Mirror:
    return Mirror({"bootstrap.servers": source}, {"bootstrap.servers": target}, include, **settings)


def mirrored(mirror: Mirror, condition) -> None:
    with mirror, running(mirror.run, mirror.stop) as errors:
        wait_until(condition, errors)


def test_copies_are_exact_and_offsets_are_translated(bootstrap, second, make_topic):
    topic = make_topic("mirrored", 3)
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(20):  # markers and aborted records make the offsets differ
            producer.begin_transaction()
            for value in range(number * 10, number * 10 + 10):
                producer.send(topic, b"%d" % value, b"%d" % value, headers=[("h", b"x")], timestamp=10**12 + value)
            producer.commit_transaction() if number % 3 else producer.abort_transaction()
    group = f"{topic}-group"
    originals = records_of(bootstrap, topic)
    committed = {
        TopicPartition(topic, number): [each.offset for each in originals if each.partition == number][15]
        for number in range(3)
    }
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.alter_group_offsets(group, committed).check()
    mirror = mirror_of(bootstrap, second, topic, source_name=topic, groups=re.escape(group))
    mirrored(mirror, lambda: mirror.counts["copied"] >= len(originals))
    again = mirror_of(bootstrap, second, topic, source_name=topic, groups=re.escape(group))
    mirrored(again, lambda: again.counts["groups"] >= 3)
    assert again.counts["copied"] == 0
    copies = records_of(second, topic)

    def content(record):
        return record.partition, record.key, record.value, record.headers, record.timestamp

    assert [content(each) for each in sorted(copies, key=lambda each: int(each.value))] == [
        content(each) for each in sorted(originals, key=lambda each: int(each.value))
    ]
    with Admin(bootstrap_servers=second) as admin:
        translated = admin.list_group_offsets([group])[group]
    for partition, offset in committed.items():
        [original] = [each for each in originals if (each.partition, each.offset) == (partition.partition, offset)]
        [copy] = [each for each in copies if each.value == original.value]
        assert translated[partition].offset == copy.offset


def test_a_topic_that_is_created_again_is_copied_from_its_beginning(bootstrap, second, make_topic):
    topic = make_topic("again", 1)
    group = f"{topic}-group"
    fill(bootstrap, topic, [b"%d" % each for each in range(10)])
    mirror = mirror_of(bootstrap, second, topic, source_name=topic)
    mirrored(mirror, lambda: mirror.counts["copied"] >= 10)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_topics([topic]).check()
        create(bootstrap, topic, 1)
        fill(bootstrap, topic, [b"%d" % each for each in range(100, 130)])
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 5}).check()
    later = mirror_of(bootstrap, second, topic, source_name=topic, groups=re.escape(group))
    mirrored(later, lambda: later.counts["copied"] >= 30)
    again = mirror_of(bootstrap, second, topic, source_name=topic, groups=re.escape(group))
    mirrored(again, lambda: again.counts["groups"] >= 1)
    assert again.counts["copied"] == 0
    assert values_of(second, topic) == [b"%d" % each for each in (*range(10), *range(100, 130))]
    with Admin(bootstrap_servers=second) as admin:
        translated = admin.list_group_offsets([group]).values[group][TopicPartition(topic, 0)].offset
    assert next(each.value for each in records_of(second, topic) if each.offset >= translated) == b"105"


def test_mirror_maker_1s_example_with_other_partition_counts(bootstrap, second, tmp_path):
    """The book's example: group `mirror`, `--whitelist acls-foo`; all records are present, the process goes on."""
    create(bootstrap, "acls-foo", 6)
    create(second, "acls-foo", 2)
    fill(bootstrap, "acls-foo", [b"%d" % n for n in range(100)])
    (tmp_path / "consumer.properties").write_text(f"bootstrap.servers={bootstrap}\ngroup.id=mirror\n")
    (tmp_path / "producer.properties").write_text(f"bootstrap.servers={second}\n")
    words = ["mirror", "--consumer.config", str(tmp_path / "consumer.properties"), "--producer.config"]
    words += [str(tmp_path / "producer.properties"), "--whitelist", "acls-foo", "--new.consumer", "--num.streams", "2"]
    with ToolProcess(tmp_path / "service", words) as service:
        wait_until(lambda: len(values_of(second, "acls-foo")) >= 100)
        fill(bootstrap, "acls-foo", [b"100"])
        wait_until(lambda: len(values_of(second, "acls-foo")) >= 101)
        service.kill()
        fill(bootstrap, "acls-foo", [b"101"])
        service.start()
        wait_until(lambda: len(values_of(second, "acls-foo")) >= 102)
        assert service.is_running and service.stop() == 0
        assert json.loads(service.log().splitlines()[-1])["copied"] == 1
    assert sorted(map(int, values_of(second, "acls-foo"))) == list(range(102))
    with Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_group_offsets(["mirror"])["mirror"]
    assert sum(each.offset for each in offsets.values()) >= 100


def test_a_stop_between_two_polls_still_commits_the_groups_offsets(bootstrap, second):
    topic = "stopped-between-polls"
    create(bootstrap, topic, 1)
    fill(bootstrap, topic, [b"1", b"2"])
    source = {"bootstrap.servers": bootstrap, "group.id": topic}
    with Mirror(source, {"bootstrap.servers": second}, topic) as mirror, Admin(bootstrap_servers=bootstrap) as admin:
        while mirror.counts["copied"] < 2:
            mirror.run_once()
        partition = TopicPartition(topic, 0)
        admin.alter_group_offsets(topic, {partition: 0}).check()
        mirror.stop()
        mirror.run()
        assert admin.list_group_offsets([topic])[topic][partition].offset == 2


def test_active_active_clusters_do_not_copy_in_circles(bootstrap, second):
    topic = "both"
    create(bootstrap, topic, 1)
    create(second, topic, 1)
    fill(bootstrap, topic, [b"1", b"2"])
    fill(second, topic, [b"3", b"4"])
    there = mirror_of(bootstrap, second, topic, source_name="a", target_name="b")
    back = mirror_of(second, bootstrap, topic, source_name="b", target_name="a")
    with there, back, running(there.run, there.stop) as errors, running(back.run, back.stop) as others:
        wait_until(lambda: there.counts["skipped"] >= 2 and back.counts["skipped"] >= 2, errors + others)
    for cluster in (bootstrap, second):
        assert sorted(values_of(cluster, topic)) == [b"1", b"2", b"3", b"4"]


def test_a_hub_collects_its_spokes_under_their_names(bootstrap, second):
    create(bootstrap, "sales", 1)
    fill(bootstrap, "sales", [b"1"])
    spoke = mirror_of(bootstrap, second, "sales", source_name="berlin", rename="{source}.{topic}")
    mirrored(spoke, lambda: spoke.counts["copied"] >= 1)
    assert values_of(second, "berlin.sales") == [b"1"]
