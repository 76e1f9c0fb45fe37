"""Storage and expiry of the metrics that clients push."""

from kafkapy.server.client_series import ClientSeriesTable
from kafkapy.server.otlp import Point, Points


def push(table, client, monotonic_ms, *points, dropped=0):
    table.store(client, f"id of {client}", Points(list(points), dropped), monotonic_ms, 100)


def values(table, monotonic_ms):
    return {(each.instance_id, each.metric): each.value for each in table.current(monotonic_ms)}


def test_differences_are_added_up_and_others_replaced():
    table = ClientSeriesTable(10)
    for monotonic_ms in (1000, 1100):
        push(table, "c", monotonic_ms, Point("sent", "", 2, True), Point("queue", "", monotonic_ms, False))
    assert values(table, 1100) == {("c", "sent"): 4, ("c", "queue"): 1100}


def test_silent_clients_are_forgotten_and_make_room():
    table = ClientSeriesTable(2)
    push(table, "a", 1000, Point("m", "", 1, False), Point("n", "", 1, False))
    push(table, "b", 1000, Point("m", "", 1, False), dropped=3)
    assert table.dropped == 4
    assert values(table, 1299) == {("a", "m"): 1, ("a", "n"): 1}
    assert values(table, 1300) == {}
    push(table, "b", 3000, Point("m", "", 5, False))
    assert values(table, 3000) == {("b", "m"): 5}


def test_attributes_tell_series_apart():
    table = ClientSeriesTable(10)
    push(table, "a", 0, Point("m", "node=2", 2, False), Point("m", "node=1", 1, False))
    assert [(each.attributes, each.value) for each in table.current(1)] == [("node=1", 1), ("node=2", 2)]
