"""The delay service on a broker: precision, order of times, cancellation, restart, bad records."""

from __future__ import annotations

import os
import time

from kafkapy.client import Admin, Consumer, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable import DelayService, cancellation, delayed
from kafkapy.client.reliable.topic_scan import all_partitions
from tests.reliable.running import records_of, running, values_of, wait_until


def send(bootstrap: str, topic: str, outputs) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for each in outputs:
            producer.send(topic, each.value, each.key, headers=each.headers)


def service_of(bootstrap: str, topic: str, **settings) -> DelayService:
    properties = {"bootstrap.servers": bootstrap, "heartbeat.interval.ms": 500, "session.timeout.ms": 6000}
    return DelayService(properties, topic=topic, group=topic, instance="one", **settings)


def test_records_arrive_at_their_time_and_unchanged(bootstrap, make_topic):
    target, topic = make_topic("due", 2), make_topic("delay", 2)
    arrived: list[tuple[bytes, int]] = []
    with (
        Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer,
        service_of(bootstrap, topic) as service,
        running(service.run, service.stop) as errors,
    ):
        consumer.assign(all_partitions({"bootstrap.servers": bootstrap}, target))
        consumer.seek_to_beginning()
        now_ms = time.time_ns() // 1_000_000
        times = {b"%d" % n: now_ms + 300 + n * 37 % 1000 for n in range(60)}
        send(
            bootstrap,
            topic,
            [delayed(target, value, b"k", at_ms=at, headers=(("h", b"1"),)) for value, at in times.items()],
        )

        def has_all() -> bool:
            for each in consumer.poll(0.01):
                assert (each.key, each.headers) == (b"k", (("h", b"1"),))
                arrived.append((each.value, time.time_ns() // 1_000_000))
            return len(arrived) >= len(times)

        wait_until(has_all, errors)
    assert {value for value, _ in arrived} == set(times) and len(arrived) == len(times)
    assert all(at >= times[value] for value, at in arrived)
    assert service.pending_count == 0


def test_a_pending_record_can_be_cancelled_and_replaced(bootstrap, make_topic):
    target, topic = make_topic("due"), make_topic("delay")
    with service_of(bootstrap, topic) as service, running(service.run, service.stop) as errors:
        send(
            bootstrap,
            topic,
            [
                delayed(target, b"cancelled", b"a", delay_ms=1500, record_id="1"),
                delayed(target, b"replaced", b"b", delay_ms=1500, record_id="1"),
                delayed(target, b"kept", b"c", delay_ms=1500, record_id="1"),
                cancellation("1", b"a"),
                cancellation("2", b"c"),
                delayed(target, b"new", b"b", delay_ms=1600, record_id="1"),
            ],
        )
        wait_until(lambda: service.counts["delivered"] >= 2, errors)
    assert sorted(values_of(bootstrap, target)) == [b"kept", b"new"]
    counts = service.counts
    assert (counts["cancelled"], counts["replaced"], counts["unknown_cancellations"]) == (1, 1, 1)


def test_a_service_that_starts_again_knows_what_is_pending(bootstrap, make_topic):
    target, topic = make_topic("due"), make_topic("delay", 2)
    with service_of(bootstrap, topic) as service, running(service.run, service.stop) as errors:
        soon = [delayed(target, b"soon %d" % n, b"%d" % n, delay_ms=100) for n in range(10)]
        later = [delayed(target, b"later %d" % n, b"%d" % n, delay_ms=4000, record_id="x") for n in range(10)]
        send(bootstrap, topic, soon + later)
        wait_until(lambda: service.counts["accepted"] >= 20 and service.counts["delivered"] >= 10, errors)
    with service_of(bootstrap, topic) as service, running(service.run, service.stop) as errors:
        wait_until(lambda: service.counts["restored"] >= 10, errors)
        send(bootstrap, topic, [cancellation("x", b"3")])
        wait_until(lambda: service.counts["delivered"] >= 9, errors)
    assert service.counts["cancelled"] == 1
    expected = [b"soon %d" % n for n in range(10)] + [b"later %d" % n for n in range(10) if n != 3]
    assert sorted(values_of(bootstrap, target)) == sorted(expected)


def test_bad_records_become_dead_letters(bootstrap, make_topic):
    target, topic = make_topic("due"), make_topic("delay")
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"no headers")
        producer.send(topic, b"no number", headers=[("kafkapy.target", target), ("kafkapy.deliver-at", "tomorrow")])
        producer.send(topic, b"no topic", headers=[("kafkapy.target", "nowhere"), ("kafkapy.delay-ms", "1")])
        producer.send(topic, b"too late", headers=[("kafkapy.target", target), ("kafkapy.deliver-at", "9" * 17)])
        producer.send(topic, b"good", headers=[("kafkapy.target", target), ("kafkapy.delay-ms", "1")])
    with service_of(bootstrap, topic) as service, running(service.run, service.stop) as errors:
        wait_until(lambda: service.counts["delivered"] >= 1 and service.counts["dead"] >= 4, errors)
    assert values_of(bootstrap, target) == [b"good"]
    dead = records_of(bootstrap, f"{topic}.dlt")
    assert [each.value for each in dead] == [b"no headers", b"no number", b"no topic", b"too late"]
    assert all(b"InvalidDelay" in dict(each.headers)["kafkapy.retry.error"] for each in dead)


def test_a_full_service_leaves_records_in_the_topic(bootstrap, make_topic):
    target, topic = make_topic("due"), make_topic("delay")
    with service_of(bootstrap, topic, most_pending=5) as service, running(service.run, service.stop) as errors:
        send(bootstrap, topic, [delayed(target, b"%d" % n, delay_ms=200) for n in range(20)])
        wait_until(lambda: service.counts["delivered"] >= 20, errors)
    assert sorted(map(int, values_of(bootstrap, target))) == list(range(20))
    assert service.counts["full"] > 0


def test_an_aborted_transaction_does_not_read_the_pending_records_again(bootstrap, make_topic):
    target, topic = make_topic("due"), make_topic("delay")
    narrow = f"{target}-narrow"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(narrow, 1, 1, configs={"max.message.bytes": "1000"})]).check()
    with service_of(bootstrap, topic) as service, running(service.run, service.stop) as errors:
        # Random bytes do not become smaller by compression.
        outputs = [delayed(narrow, os.urandom(5000), b"large", delay_ms=500, record_id="large")]
        outputs += [delayed(target, b"%d" % n, delay_ms=500) for n in range(10)]
        outputs += [delayed(target, b"cancelled", b"k", delay_ms=60_000, record_id="1")]
        send(bootstrap, topic, outputs)
        wait_until(lambda: service.counts["delivered"] >= 10 and service.counts["dead"] >= 1, errors)
        send(bootstrap, topic, [cancellation("1", b"k")])
        wait_until(lambda: service.counts["cancelled"] >= 1, errors)
    assert service.counts["aborted"] >= 1 and service.counts["restored"] == 0
    assert sorted(map(int, values_of(bootstrap, target))) == list(range(10))
    (dead,) = records_of(bootstrap, f"{topic}.dlt")
    assert dead.key == b"large" and service.pending_count == 0
