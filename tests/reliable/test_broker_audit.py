"""The counts of brokers, on a broker with kafkapy.audit.topics."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable import AuditReporter, ConsumerAudit, ProducerAudit
from kafkapy.client.reliable.audit import ABORTED, APPENDED, AUDIT_TOPIC, unpack_count
from kafkapy.tools.reliable.audit import TOOL
from kafkapy.tools.tool import run_tool
from tests.broker_process import BrokerProcess
from tests.reliable.running import records_of, wait_until

KEYS = {"kafkapy.audit.topics": "audited-*"}
BUCKET_MS = 10_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("audit"), KEYS) as running:
        yield running


def make_topic(bootstrap: str, name: str, partitions: int = 1, **configs: str) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, configs=settings)]).check()
    return name


def first_bucket_ms() -> int:
    """Returns the beginning of a bucket ten minutes ago."""
    return (time.time_ns() // 1_000_000 - 600_000) // BUCKET_MS * BUCKET_MS


def broker_counts(bootstrap: str, topic: str) -> Counter[tuple[str, str, int]]:
    """Returns the numbers that the broker has counted, by tier, client and bucket."""
    counts: Counter[tuple[str, str, int]] = Counter()
    for record in records_of(bootstrap, AUDIT_TOPIC):
        count = unpack_count(record.value)
        if count.topic == topic and count.tier in (APPENDED, ABORTED):
            counts[count.tier, count.client, count.bucket_ms] += count.number
    return counts


def appended(bootstrap: str, topic: str) -> int:
    return sum(number for (tier, _, _), number in broker_counts(bootstrap, topic).items() if tier == APPENDED)


def consume(bootstrap: str, topic: str, count: int, **settings) -> None:
    """Reads the topic from its beginning until `count` records were returned."""
    found = 0
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()

        def is_read() -> bool:
            nonlocal found
            found += len(consumer.poll(0.1))
            return found >= count

        wait_until(is_read)


def end_offset(bootstrap: str, topic: str) -> int:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        [offset] = consumer.end_offsets([(topic, 0)]).values()
    return offset


def differences(bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str, str, int]]:
    """Returns what `kafkapy audit` finds: bucket, tiers, group and number of missing records."""
    status = run_tool(TOOL, ["--topic", topic, "-b", bootstrap, "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == (2 if found else 0)
    return [(each["bucket_ms"], each["between"], each["group"], each["missing"]) for each in found]


def test_the_audit_finds_losses_and_repetitions_on_both_sides_of_the_broker(broker, capsys):
    bootstrap = broker.bootstrap
    topic = make_topic(bootstrap, "audited-sides", max_message_bytes="2000")
    start_ms = first_bucket_ms()
    audit = ProducerAudit(AuditReporter("shop", bootstrap_servers=bootstrap))
    settings = {"bootstrap_servers": bootstrap, "client_id": "shop-1", "batch_size": 1000}
    with Producer(**settings, interceptor_classes=[audit], acks=0, enable_idempotence=False) as producer:
        for number in range(300):
            producer.send(topic, b"%d" % number, timestamp=start_ms + number * 100)
        producer.flush()
        wait_until(lambda: end_offset(bootstrap, topic) == 300)
        # The broker refuses this record, and a producer with acks=0 does not learn of it: lost on the way.
        producer.send(topic, bytes(5000), timestamp=start_ms + 15_000)
        producer.flush()
    with Producer(bootstrap_servers=bootstrap, client_id="intruder") as producer:  # written behind the audit's back
        producer.send(topic, b"7", timestamp=start_ms + 700)

    class Faulty:
        """Drops two records of the third bucket before the audit counts them, and repeats one of the second."""

        def on_consume(self, records):
            kept = [each for each in records if each.value not in (b"210", b"211")]
            return kept + [each for each in records if each.value == b"110"]

    counting = ConsumerAudit(AuditReporter("charges", bootstrap_servers=bootstrap, group="charging"))
    consume(bootstrap, topic, 300, interceptor_classes=[Faulty(), counting])
    wait_until(lambda: appended(bootstrap, topic) == 301)
    assert differences(bootstrap, topic, capsys) == [
        (start_ms, "produced, appended", "", -1),
        (start_ms + BUCKET_MS, "produced, appended", "", 1),
        (start_ms + BUCKET_MS, "appended, consumed", "charging", -1),
        (start_ms + 2 * BUCKET_MS, "appended, consumed", "charging", 2),
    ]
    counts = broker_counts(bootstrap, topic)
    assert (counts[APPENDED, "shop-1", start_ms], counts[APPENDED, "intruder", start_ms]) == (100, 1)


def test_aborted_and_repeated_batches_and_every_codec_are_counted_once(broker, capsys):
    bootstrap = broker.bootstrap
    topic = make_topic(bootstrap, "audited-transactions")
    start_ms = first_bucket_ms()
    audit = ProducerAudit(AuditReporter("shop", bootstrap_servers=bootstrap))
    settings = {"bootstrap_servers": bootstrap, "client_id": "shop-2", "interceptor_classes": [audit]}
    with Producer(**settings, transactional_id="audited") as producer:
        producer.init_transactions()
        for is_committed in (True, False):
            producer.begin_transaction()
            for number in range(50):
                producer.send(topic, b"%d" % number, timestamp=start_ms + number)
            producer.flush()
            producer.commit_transaction() if is_committed else producer.abort_transaction()
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        audit = ProducerAudit(AuditReporter("shop", bootstrap_servers=bootstrap))
        with Producer(
            bootstrap_servers=bootstrap, client_id=codec, compression_type=codec, interceptor_classes=[audit]
        ) as producer:
            for number in range(100):
                producer.send(topic, b"%d" % number, timestamp=start_ms + BUCKET_MS + number)
    for group, level, expected in (("committed", "read_committed", 450), ("all", "read_uncommitted", 500)):
        counting = ConsumerAudit(AuditReporter(group, bootstrap_servers=bootstrap, group=group))
        consume(bootstrap, topic, expected, interceptor_classes=[counting], isolation_level=level)
    wait_until(lambda: appended(bootstrap, topic) == 500)
    assert broker_counts(bootstrap, topic) == {
        (APPENDED, "shop-2", start_ms): 100,
        (ABORTED, "shop-2", start_ms): 50,
        **{(APPENDED, codec, start_ms + BUCKET_MS): 100 for codec in ("gzip", "snappy", "lz4", "zstd")},
    }
    assert differences(bootstrap, topic, capsys) == []


def test_a_killed_broker_counts_each_record_once(tmp_path):
    with BrokerProcess(tmp_path, KEYS) as broker:
        topic = make_topic(broker.bootstrap, "audited-kills", 3)
        start_ms = first_bucket_ms()
        for attempt in range(3):
            with Producer(bootstrap_servers=broker.bootstrap, client_id="shop-3") as producer:
                for number in range(1000):
                    producer.send(topic, b"value", timestamp=start_ms + number)
            if attempt == 0:
                wait_until(lambda: appended(broker.bootstrap, topic) == 1000)
            broker.kill()
            broker.start()
        wait_until(lambda: appended(broker.bootstrap, topic) >= 3000)
        broker.stop()  # writes what is not written yet
        broker.start()
        assert appended(broker.bootstrap, topic) == 3000
        counts = broker_counts(broker.bootstrap, topic)
        assert counts[APPENDED, "shop-3", start_ms] >= 1000
        assert {(tier, client) for tier, client, _ in counts} <= {(APPENDED, "shop-3"), (APPENDED, "")}


def test_other_topics_are_not_counted(broker):
    bootstrap = broker.bootstrap
    topic, counted = make_topic(bootstrap, "plain"), make_topic(bootstrap, "audited-plain")
    for name in (topic, counted):
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send(name, b"1")
    wait_until(lambda: appended(bootstrap, counted) == 1)
    assert appended(bootstrap, topic) == 0
