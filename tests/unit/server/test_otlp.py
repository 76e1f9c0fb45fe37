"""Clients' metrics in protobuf: the points read from them, and the refusal of malformed bytes."""

import random

import pytest

from kafkapy.server.otlp import MalformedMetrics, Point, read_metrics
from tests.otlp import CUMULATIVE, DELTA, field, metric, metrics_data, point, pushed, varint


def test_what_clients_push():
    data = metrics_data(
        metric("org.apache.kafka.producer.record.send.total", 12, DELTA, client_id="c", node_id="1"),
        metric("org.apache.kafka.consumer.lag", 5, CUMULATIVE),
        metric("org.apache.kafka.consumer.poll.idle.ratio.avg", 0.5),
        metric("negative", -3),
    )
    assert read_metrics(data, 100) == (
        [
            Point("org.apache.kafka.producer.record.send.total", "client_id=c,node_id=1", 12, True),
            Point("org.apache.kafka.consumer.lag", "", 5, False),
            Point("org.apache.kafka.consumer.poll.idle.ratio.avg", "", 0.5, False),
            Point("negative", "", -3, False),
        ],
        0,
    )
    assert read_metrics(b"", 100) == ([], 0)


def test_what_is_no_number_or_too_much_is_counted():
    histogram = field(1, b"latency") + field(9, field(1, b"") + field(1, b""))
    nameless = field(5, field(1, point(1)))
    empty = field(1, b"empty") + field(5, field(1, b""))
    data = metrics_data(histogram, nameless, empty, *(metric(f"m{number}", number) for number in range(5)))
    points, dropped = read_metrics(data, 3)
    assert [each.name for each in points] == ["m0", "m1", "m2"]
    assert dropped == 2 + 1 + 1 + 2


def test_names_and_attributes_are_bounded():
    many = {f"key{number}": "v" * 1000 for number in range(20)}
    ((found,), _) = read_metrics(metrics_data(metric("n" * 5000, 1, **many)), 10)
    assert len(found.name) == 200
    assert found.attributes.count("=") == 8
    assert len(found.attributes) < 8 * 110


def test_attributes_of_every_type_become_text():
    def attributed(value):
        data = field(7, field(1, b"k") + field(2, value)) + point(1)
        ((found,), _) = read_metrics(metrics_data(field(1, b"m") + field(5, field(1, data))), 10)
        return found.attributes

    assert attributed(varint(2 << 3) + varint(1)) == "k=true"
    assert attributed(varint(3 << 3) + varint(7)) == "k=7"
    assert attributed(varint(3 << 3) + varint(2**64 - 7)) == "k=-7"
    assert attributed(field(1, b"\xff")) == "k=\ufffd"
    assert attributed(b"") == "k="


@pytest.mark.parametrize(
    "data",
    [b"garbage", b"\x00\x01", b"\x0a", b"\x0a\xff\xff\xff\xff\x7f", b"\x0b", b"\x80" * 11, field(1, b"\x12\x7f"),
     b"\x09" + bytes(7)],
)  # fmt: skip
def test_malformed_metrics_are_refused(data):
    with pytest.raises(MalformedMetrics):
        read_metrics(data, 10)


def test_every_truncation_and_random_damage_is_read_or_refused():
    data = pushed(("one", 1), ("two", 2.0, DELTA), ("three", 3, CUMULATIVE))
    chance = random.Random(1)
    damaged = [data[:size] for size in range(len(data))]
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        damaged.append(bytes(changed))
    for each in damaged:
        try:
            points, _ = read_metrics(each, 2)
        except MalformedMetrics:
            continue
        assert len(points) <= 2
