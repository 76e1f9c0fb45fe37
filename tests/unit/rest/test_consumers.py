"""The consumer instances of the REST proxy, on a consumer whose polls the test decides."""

from __future__ import annotations

import threading

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.http.json_api import RequestRefused
from kafkapy.rest.consumers import ConsumerInstance, ConsumerInstances
from kafkapy.rest.formats import Formats, decode_binary


class Record:
    topic, partition, key, value = "t", 0, None, b"a"

    def __init__(self, offset):
        self.offset = offset


class Consumer:
    """A consumer whose polls return or raise the elements of `results`; it records what is committed."""

    def __init__(self, results):
        self._results = list(results)
        self.committed = []

    def poll(self, timeout):
        result = self._results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def commit_async(self, offsets):
        self.committed.append({place.partition: each.offset for place, each in offsets.items()})


def test_records_that_were_read_before_an_error_are_returned_and_the_error_is_reported_afterwards():
    error = ApiError(Error.TOPIC_AUTHORIZATION_FAILED)
    consumer = Consumer([[Record(4)], error, error])
    settings = {"timeout_ms": 60_000, "least_bytes": 1 << 20}
    instance = ConsumerInstance(consumer, "binary", (decode_binary, decode_binary), commits=True, settings=settings)
    found = instance.run(lambda: instance.records(None, None, 1 << 20))
    assert [each["offset"] for each in found] == [4]
    with pytest.raises(RequestRefused):
        instance.run(lambda: instance.records(None, None, 1 << 20))
    assert consumer.committed == [{0: 5}], "the record of the first response"


def test_instances_that_are_made_at_the_same_time_do_not_exceed_the_limit():
    both = threading.Barrier(2)

    class Instances(ConsumerInstances):
        def _make(self, group, form, decoders, body):
            both.wait(60)
            return super()._make(group, form, decoders, body)

    instances = Instances({"bootstrap.servers": "localhost:1"}, Formats(None), most=1, idle_s=60)
    outcomes = []

    def create():
        try:
            outcomes.append(instances.create("g", {}))
        except RequestRefused as refusal:
            outcomes.append(refusal.code)

    threads = [threading.Thread(target=create) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    instances.close()
    assert len(outcomes) == 2 and outcomes.count(50301) == 1


def test_an_instance_whose_request_waits_longer_than_the_idle_time_is_not_removed():
    is_polling, may_end = threading.Event(), threading.Event()

    class Waiting(Consumer):
        def poll(self, timeout):
            is_polling.set()
            may_end.wait(60)
            return super().poll(timeout)

        def close(self, timeout):
            pass

    settings = {"timeout_ms": 60_000, "least_bytes": 0}
    decoders = (decode_binary, decode_binary)
    instance = ConsumerInstance(Waiting([[Record(4)]]), "binary", decoders, commits=False, settings=settings)
    instances = ConsumerInstances({}, Formats(None), most=1, idle_s=0)
    instances._instances["g", "i"] = instance
    request = threading.Thread(target=lambda: instance.run(lambda: instance.records(None, None, 1 << 20)))
    request.start()
    try:
        assert is_polling.wait(60)
        assert instances.remove_idle() == 0
        assert instances.get("g", "i") is instance
    finally:
        may_end.set()
        request.join(60)
    assert instances.remove_idle() == 1
