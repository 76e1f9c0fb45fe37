"""Interceptors are called in order, and their exceptions do not stop the client."""

from __future__ import annotations

from kafkapy.client.interceptors import Interceptors


class Stamp:
    def __init__(self, mark="!"):
        self.mark = mark
        self.heard = []

    def on_send(self, topic, value, key):
        return topic, value + self.mark, key

    def on_consume(self, records):
        return [*records, self.mark]

    def on_commit(self, offsets):
        self.heard.append(offsets)


class Failing:
    def on_send(self, topic, value, key):
        raise ValueError("no")

    def on_consume(self, records):
        raise ValueError("no")

    def on_commit(self, offsets):
        raise ValueError("no")


class Silent:
    """An interceptor without methods."""


def test_each_gets_what_the_one_before_it_made(caplog):
    last = Stamp("?")
    interceptors = Interceptors([Stamp, Failing, Silent(), last])
    assert interceptors.transform("on_send", "topic", "value", None) == ("topic", "value!?", None)
    assert interceptors.transform("on_consume", [1]) == [1, "!", "?"]
    interceptors.notify("on_commit", {"where": 1})
    assert last.heard == [{"where": 1}]
    assert [each.getMessage() for each in caplog.records] == [
        f"An interceptor failed in {method}" for method in ("on_send", "on_consume", "on_commit")
    ]


def test_without_any_there_is_nothing_to_do():
    assert not Interceptors([])
