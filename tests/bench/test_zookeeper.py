"""The comparison with ZooKeeper on a small scale."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from bench.zookeeper import __main__ as zookeeper
from bench.zookeeper.client import Session, Stream, check, create, delete, drive, get_data, multi
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import RealZooKeeper

RATES = ("getData", "exists", "getChildren", "setData", "create-delete", "multi")


def medians(tmp_path, *words):
    output = tmp_path / "figures.json"
    zookeeper.main(["--scale", "0.01", "--rounds", "1", "--foreign-limit", "inf", "--output", str(output), *words])
    return json.loads(output.read_text())["medians"]


def test_each_workload_measures_the_broker(tmp_path, capsys):
    found = medians(tmp_path, "--servers", "kafkapy,listener-off,listener-on")
    assert list(found) == list(zookeeper.WORKLOADS)
    for name in RATES:
        assert found[name]["kafkapy"]["per_second"] > 0
        assert found[name]["kafkapy"]["requests"] % 16 == 0
    for name in ("latency-getData", "latency-setData"):
        assert 0 < found[name]["kafkapy"]["p50_us"] <= found[name]["kafkapy"]["p99_us"]
    assert 0 < found["1000-watches"]["kafkapy"]["change_ms"] <= found["1000-watches"]["kafkapy"]["slowest_ms"]
    assert found["100000-nodes"]["kafkapy"]["start_seconds"] > 0
    output = capsys.readouterr().out
    assert "| getData | per_second |" in output
    assert "| idle-broker | memory_mb |" in output


def test_the_listener_has_no_thread_and_no_descriptor_where_it_is_off(tmp_path):
    found = medians(tmp_path, "--workloads", "idle-broker")["idle-broker"]
    assert found["listener-off"]["threads"] <= found["listener-on"]["threads"]
    assert found["listener-off"]["descriptors"] < found["listener-on"]["descriptors"]
    assert found["listener-off"]["memory_mb"] < found["listener-on"]["memory_mb"]


@pytest.mark.peer
def test_zookeeper_takes_its_turns(tmp_path, capsys):
    found = medians(tmp_path, "--workloads", "setData,1000-watches,100000-nodes", "--servers", "kafkapy,zookeeper")
    for figures in found.values():
        assert list(figures) == ["kafkapy", "zookeeper"]
    assert "/ zookeeper" in capsys.readouterr().out


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(ListeningBroker, id="kafkapy"),
        pytest.param(RealZooKeeper, id="ZooKeeper", marks=pytest.mark.peer),
    ],
)
def port(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("served")) as server:
        port = int(server.zookeeper.rpartition(":")[2])
        while True:
            try:
                Session(port).close()
            except OSError:
                continue
            break
        yield port


@pytest.mark.parametrize(
    "requests",
    [[get_data("/absent")], [get_data("/"), multi([check("/"), check("/absent")])]],
    ids=["a read", "a multi"],
)
def test_a_refused_request_ends_the_measurement(port, requests):
    with closing(Session(port)) as session, pytest.raises(RuntimeError):
        Stream(session, [requests], repeat=True)


def test_every_request_of_a_stream_is_counted_once(port):
    with closing(Session(port)) as session:
        paths = [f"/counted-{number}" for number in range(6)]
        streams = [Stream(session, [[create(path, b""), delete(path)] for path in paths], repeat=False)]
        assert drive(streams).requests == 2 * (len(paths) - 1), "the first batch was checked before the load"
