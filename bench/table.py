"""The table of workloads: the figure that is compared, the servers, and the sets that include the workload."""

from __future__ import annotations

from collections.abc import Iterator

from bench.cluster.table import CLUSTER_ROWS
from bench.run import LARGE_BATCHES, SMALL_BATCHES
from bench.security import Security
from bench.workload import BROKERS, FULL, MUST, QUICK, SECURITY, Workload
from bench.workloads.connections import idle_connections, tail
from bench.workloads.down_conversion import down_conversion
from bench.workloads.handshakes import attacked, handshakes
from bench.workloads.hostile import HOSTILE, with_hostile_clients
from bench.workloads.life import idle, recovery, start_up
from bench.workloads.partitions import sweep, ten_thousand
from bench.workloads.requests import HOUSEKEEPING, WATCHED, closed_loop, housekeeping, latency, scraped
from bench.workloads.shares import PROPERTIES as SHARES
from bench.workloads.shares import in_flight, java_tool, memory_of_partitions, our_tool, perf_tool
from bench.workloads.throughput import consume, mixed, produce

# Numbers of messages that Apache Kafka handles in about two seconds: (100 B, 1,000 B) for each codec.
MESSAGES = {
    "none": (5_000_000, 800_000),
    "lz4": (3_000_000, 800_000),
    "snappy": (3_000_000, 600_000),
    "zstd": (3_000_000, 400_000),
    "gzip": (400_000, 40_000),
}
MUST_PRODUCE = ("produce-100B", "produce-1KB", "produce-1KB-lz4", "produce-100B-16KB-batches")


def produce_name(size: int, producers: int, acks: str, codec: str, large: bool) -> str:
    """Returns a name that contains the parameters that differ from the usual ones.

    The usual ones are one producer, acks=1, and large uncompressed batches.
    """
    parts = ["produce", "1KB" if size == 1000 else f"{size}B"]
    parts += [f"{producers}-producers"] if producers > 1 else []
    parts += [f"acks-{acks}"] if acks != "1" else []
    parts += [codec] if codec != "none" else []
    parts += ["16KB-batches"] if not large else []
    return "-".join(parts)


def produce_workloads() -> Iterator[Workload]:
    for size, place in ((100, 0), (1000, 1)):
        for producers in (1, 4):
            for acks in ("0", "1", "all"):
                for codec, messages in MESSAGES.items():
                    for large in (True, False):
                        name = produce_name(size, producers, acks, codec, large)
                        batches = LARGE_BATCHES if large else SMALL_BATCHES
                        settings = (f"acks={acks}", f"compression.type={codec}", *batches)
                        load = produce(messages[place] // (1 if large else 2), size, settings, producers)
                        sets: tuple[str, ...] = (FULL, MUST) if name in MUST_PRODUCE else (FULL,)
                        sets += (QUICK,) if name in MUST_PRODUCE[:2] else ()
                        yield Workload(name, "per_second", True, load, sets=sets)


def latency_workloads() -> Iterator[Workload]:
    for rate in (1_000, 10_000):
        name = f"latency-{rate}-per-second"
        sets = (FULL, MUST) + ((QUICK,) if rate == 1_000 else ())
        yield Workload(name, "p99_us", False, latency(rate, 5), sets=sets)
        beside = latency(rate, 5, housekeeping)
        yield Workload(f"{name}-busy", "p99_us", False, beside, BROKERS, (FULL, MUST), HOUSEKEEPING)
        for interval_s in (1, 15):
            watched = latency(rate, max(5, 2 * interval_s), scraped(interval_s))
            scrapes = f"{name}-scraped-every-{interval_s}-s"
            yield Workload(scrapes, "p99_us", False, watched, ("kafkapy",), (FULL,), WATCHED)


TLS = Security("SSL")
# What secures the broker, by the first part of the names of the workloads.
SECURITIES = {
    "tls": TLS,
    "tls-scram-acls": Security("SASL_SSL", has_acls=True),
    "acls": Security(has_acls=True),
}


def security_workloads() -> Iterator[Workload]:
    sets = (FULL, SECURITY)
    loads = {
        "produce-100B": produce(3_000_000, 100, ("acks=1", *LARGE_BATCHES)),
        "produce-1KB": produce(500_000, 1000, ("acks=1", *LARGE_BATCHES)),
        "consume-100B": consume(4_000_000, 100),
        "consume-1KB": consume(1_000_000, 1000),
        "requests-64-connections": closed_loop(64, 4),
    }
    for prefix, security in SECURITIES.items():
        for name, load in loads.items():
            has_ceiling = prefix == "tls" and name.startswith("produce")
            servers = (*BROKERS, "ceiling") if has_ceiling else BROKERS
            yield Workload(f"{prefix}-{name}", "per_second", True, load, servers, sets, security=security)
    for kind in ("full", "resumed"):
        servers = (*BROKERS, "openssl")
        name = f"tls-handshakes-{kind}"
        yield Workload(name, "cpu_us_per_handshake", False, handshakes(kind, 4), servers, sets, security=TLS)
    for name, run in (
        ("tls-latency-1000-per-second", latency(1_000, 5)),
        ("tls-latency-1000-per-second-attacked", attacked(1_000, 5)),
    ):
        yield Workload(name, "p99_us", False, run, BROKERS, sets, security=TLS)


ROWS = (
    Workload("start-up", "start_seconds", False, start_up, BROKERS, (FULL, MUST, QUICK)),
    Workload("idle", "memory_mb", False, idle, BROKERS, (FULL, MUST)),
    *produce_workloads(),
    Workload("consume-100B", "per_second", True, consume(6_000_000, 100), sets=(FULL, MUST, QUICK)),
    Workload("consume-1KB", "per_second", True, consume(1_500_000, 1000), sets=(FULL, MUST)),
    Workload("consume-100B-4-consumers", "per_second", True, consume(3_000_000, 100, 4)),
    Workload("consume-1KB-4-consumers", "per_second", True, consume(1_000_000, 1000, 4)),
    Workload("mixed-1KB", "per_second", True, mixed(800_000, 1000)),
    Workload("requests-64-connections", "per_second", True, closed_loop(64, 4), sets=(FULL, MUST, QUICK)),
    Workload("requests-1-connection", "per_second", True, closed_loop(1, 4, pinned=True), sets=(FULL, MUST)),
    Workload("metadata-64-connections", "per_second", True, closed_loop(64, 4, kind="metadata")),
    *latency_workloads(),
    Workload("partition-sweep", "produce_1000", True, sweep, BROKERS, (FULL, MUST)),
    Workload("10000-partitions", "start_seconds", False, ten_thousand, BROKERS, (FULL, MUST)),
    Workload("5000-idle-connections", "grown_mb", False, idle_connections(5_000), BROKERS, (FULL, MUST)),
    Workload("tail-500-consumers", "p99_us", False, tail(500, 20, 5), BROKERS),
    Workload("down-conversion-1KB", "per_second", True, down_conversion(200_000, 1000), ("kafkapy", "kafka39")),
    Workload("recovery-1GB", "start_seconds", False, recovery, BROKERS),
    Workload("share-consume-java", "per_second", True, perf_tool(java_tool), BROKERS, (FULL, MUST), SHARES),
    Workload("share-consume-kafkapy", "per_second", True, perf_tool(our_tool), BROKERS, (FULL, MUST), SHARES),
    Workload("share-10000-in-flight", "per_second", True, in_flight, BROKERS, (FULL, MUST), SHARES),
    Workload("share-partition-memory", "kb_per_partition", False, memory_of_partitions, BROKERS, (FULL, MUST), SHARES),
    *(
        Workload(f"beside-{name}", "p99_us", False, with_hostile_clients(hostile), BROKERS)
        for name, hostile in HOSTILE.items()
    ),
    *security_workloads(),
    *CLUSTER_ROWS,
)  # fmt: skip
WORKLOADS = {workload.name: workload for workload in ROWS}


def in_set(name: str) -> list[str]:
    return [workload.name for workload in ROWS if name in workload.sets]
