"""The benchmark on a small scale: kafkapy and the ceiling with the report, and the soak's verdict."""

import json

from bench import client_soak, report
from bench.measure import run_workload
from bench.servers import SERVERS, Kafkapy
from bench.soak import verdict
from bench.table import WORKLOADS

SMALL = ("requests-64-connections", "start-up", "tail-500-consumers", "5000-idle-connections")


def test_small_workloads(tmp_path):
    servers = [SERVERS["kafkapy"], SERVERS["ceiling"]]
    rounds = {
        name: run_workload(WORKLOADS[name], servers, 1, tmp_path, scale=0.05, limit=float("inf")) for name in SMALL
    }
    result = report.write(tmp_path / "report.json", rounds)
    assert set(result["requests-64-connections"]) == {"kafkapy", "ceiling"}
    assert set(result["start-up"]) == {"kafkapy"}
    for figures in result.values():
        for values in figures.values():
            assert values.get("failed", 0) == 0
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["medians"] == result and "machine" in written
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") >= len(SMALL)
    assert "requests-64-connections" in report.table(result)


def test_small_loads_of_a_share_group(tmp_path):
    names = ("share-consume-kafkapy", "share-10000-in-flight", "share-partition-memory")
    found = {
        name: run_workload(WORKLOADS[name], [SERVERS["kafkapy"]], 1, tmp_path, scale=0.004, limit=float("inf"))
        for name in names
    }
    rate, held, memory = (found[name]["kafkapy"][0] for name in names)
    assert rate["messages"] == 4_000 and rate["per_second"] > 0
    assert held["messages"] == 400 and held["most_in_flight"] == 40
    assert "kb_per_partition" in memory


def test_small_loads_of_secured_listeners(tmp_path):
    names = ("tls-scram-acls-requests-64-connections", "acls-produce-1KB", "tls-handshakes-resumed")
    servers = [SERVERS["kafkapy"]]
    found = {
        name: run_workload(WORKLOADS[name], servers, 1, tmp_path, scale=0.02, limit=float("inf"))["kafkapy"][0]
        for name in names
    }
    requests, produced, handshakes = found.values()
    assert requests["answered"] > requests["failed"] == 0 and produced["messages"] == 10_000
    assert handshakes["resumed"] > 0.5, "only the first handshake of each thread has no ticket"


def test_a_small_soak_of_clients(tmp_path):
    server = Kafkapy(tmp_path, client_soak.PROPERTIES)
    server.start()
    try:
        sampled = client_soak.soak(server, 2, 10, 200, minute_s=3)
    finally:
        server.stop()
    assert len(sampled) == 2
    for figures in sampled:
        assert all(figures[f"{part}_mb"] > 10 for part in client_soak.PARTS)


def test_the_soak_of_clients_is_flat_or_says_so():
    flat = dict.fromkeys((f"{part}_mb" for part in client_soak.PARTS), 40.0)
    assert client_soak.verdict([flat] * 30)["is_flat"]
    for part in client_soak.PARTS:
        found = client_soak.verdict([{**flat, f"{part}_mb": 40.0 + minute} for minute in range(30)])
        assert (found[f"{part}_growth_mb"], found["is_flat"]) == (18.0, False)


def test_the_soak_is_flat_or_says_so():
    flat = [{"memory_mb": 40.0, "p99_us": 200.0}] * 30
    assert verdict(flat)["is_flat"]
    assert not verdict([{"memory_mb": 40.0 + minute, "p99_us": 200.0} for minute in range(30)])["is_flat"]
    assert not verdict([{"memory_mb": 40.0, "p99_us": 200.0 + 30 * minute} for minute in range(30)])["is_flat"]
