"""Several instances of the registry: forwarding, the election of another writer, and a restart."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.http_process import RegistryProcess, avro

DEADLINE_S = 60


@pytest.fixture(scope="module")
def second(broker, registry, tmp_path_factory):
    with RegistryProcess(tmp_path_factory.mktemp("second"), broker.bootstrap) as running:
        yield running


PATIENT = ("--property", "kafkastore.session.timeout.ms=6000")


def until(condition):
    """Calls `condition` until it returns a true value, which it returns."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_every_instance_takes_writes_and_serves_them(registry, second):
    for number, instance in enumerate((registry, second, registry, second)):
        status, answer = instance.request(
            "POST", f"/subjects/s{number}/versions", avro({"type": "string", "n": number})
        )
        assert status == 200, answer
        for each in (registry, second):
            until(lambda each=each, answer=answer: each.request("GET", f"/schemas/ids/{answer['id']}")[0] == 200)
    status, answer = second.request("POST", "/subjects/s0/versions", avro("{"))
    assert (status, answer["error_code"]) == (422, 42201), "an error of the writer is passed on"


def test_another_instance_writes_after_the_writer_was_killed(registry, second):
    ids = registry.request("GET", "/schemas")[1]
    registry.kill()

    def is_registered():
        status, answer = second.request("POST", "/subjects/after/versions", avro({"type": "int", "after": True}))
        return answer["id"] if status == 200 else None

    assert until(is_registered) not in {each["id"] for each in ids}
    registry.start()
    until(lambda: "after" in registry.request("GET", "/subjects")[1])
    assert registry.request("POST", "/subjects/again/versions", avro({"type": "int", "again": True}))[0] == 200


def test_a_paused_writer_does_not_write_after_another_one_has_taken_over(broker, tmp_path):
    own = ("--property", "kafkastore.topic=_paused", "--property", "schema.registry.group.id=paused", *PATIENT)
    with RegistryProcess(tmp_path / "first", broker.bootstrap, *own) as first:
        assert first.request("POST", "/subjects/s/versions", avro({"type": "string", "n": 0}))[0] == 200
        with RegistryProcess(tmp_path / "second", broker.bootstrap, *own) as second:
            os.kill(first.pid, signal.SIGSTOP)
            try:
                registered = until(
                    lambda: second.request("POST", "/subjects/t/versions", avro({"type": "int", "n": 1}))[0] == 200
                )
            finally:
                os.kill(first.pid, signal.SIGCONT)
            assert registered
            for number, instance in enumerate((first, second), 2):
                schema = avro({"type": "int", "n": number})
                until(lambda each=instance, body=schema: each.request("POST", "/subjects/u/versions", body)[0] == 200)
            ids = [each["id"] for each in second.request("GET", "/schemas")[1]]
            assert sorted(ids) == [1, 2, 3, 4]
