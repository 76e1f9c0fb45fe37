"""The statistics of a client in the JSON form of librdkafka, for `stats_cb`.

The fields have librdkafka's names and units (sizes in bytes, times in microseconds). Fields of librdkafka's internal
queues are left out. The numbers come from the measurements of kafkapy's client.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.metrics import NodeMetrics, Samples
from kafkapy.compat.confluent_kafka._constants import OFFSET_INVALID
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition as Place

if TYPE_CHECKING:
    from kafkapy.client.admin import Admin
    from kafkapy.client.network import Network
    from kafkapy.compat.confluent_kafka._config import Settings

# The attributes of a request in librdkafka's statistics.
_REQUESTS = {
    "Produce": ApiKey.PRODUCE,
    "ListOffsets": ApiKey.LIST_OFFSETS,
    "Metadata": ApiKey.METADATA,
    "Fetch": ApiKey.FETCH,
    "OffsetCommit": ApiKey.OFFSET_COMMIT,
    "FindCoordinator": ApiKey.FIND_COORDINATOR,
    "Heartbeat": ApiKey.HEARTBEAT,
    "InitProducerId": ApiKey.INIT_PRODUCER_ID,
}


def _window(network: Network, samples: Samples, factor: int = 1) -> dict[str, int]:
    """Returns the statistics of a window of values in the form of librdkafka: a dictionary with avg, max, sum and cnt.

    The window begins with the previous call for the same samples. `factor` converts the unit of the values: avg, max
    and sum are multiplied by it.
    """
    with network.lock:
        count, total, maximum = samples.take()
    return {
        "avg": int(total / count * factor) if count else 0,
        "max": int(maximum * factor),
        "sum": int(total * factor),
        "cnt": count,
    }


def _broker(network: Network, node_id: int, label: str, metrics: NodeMetrics) -> dict[str, Any]:
    node = network.cluster.nodes.get(node_id) or network.coordinators.get(node_id)
    name = label if node is None else f"{node.host}:{node.port}"
    return {
        "name": f"{name}/{node_id if node_id >= 0 else 'bootstrap'}",
        "nodeid": node_id if node_id >= 0 else -1,
        "nodename": name,
        "source": "logical" if node_id in network.coordinators else "configured" if node_id < 0 else "learned",
        "state": "UP" if network.is_connected(node_id) else "INIT",
        "tx": metrics.sent.count,
        "txbytes": int(metrics.sent.total),
        "rx": metrics.received.count,
        "rxbytes": int(metrics.received.total),
        "rtt": _window(network, metrics.latency, 1000),
        "throttle": _window(network, metrics.throttle_time),
        "req": {name: network.metrics.api(key).count for name, key in _REQUESTS.items()},
    }


def _client(settings: Settings, network: Network) -> dict[str, Any]:
    """Returns the statistics that producers, consumers and admin clients have in common."""
    metrics = network.metrics
    kind = "consumer" if metrics.kind == "consumer" else "producer"
    nodes = list(metrics.nodes.items())
    brokers = {}
    for node_id, each in nodes:
        broker = _broker(network, node_id, f"bootstrap{node_id}", each)
        brokers["GroupCoordinator" if broker["source"] == "logical" else broker["name"]] = broker
    return {
        "name": f"{settings['client.id']}#{kind}-1",
        "client_id": settings["client.id"],
        "type": kind,
        "ts": int(time.monotonic() * 1e6),
        "time": int(time.time()),
        "age": metrics.age_ms() * 1000,
        "tx": sum(each.sent.count for _, each in nodes),
        "tx_bytes": int(sum(each.sent.total for _, each in nodes)),
        "rx": sum(each.received.count for _, each in nodes),
        "rx_bytes": int(sum(each.received.total for _, each in nodes)),
        "metadata_cache_cnt": len(network.cluster.topics),
        "brokers": brokers,
        "topics": {},
    }


def _partition(network: Network, topic: str, number: int) -> dict[str, Any]:
    leader = network.cluster.leader(topic, number)
    return {"partition": number, "broker": leader, "leader": leader}


def producer_statistics(settings: Settings, client: Any, outstanding: int) -> str:
    """Returns the statistics of a producer as JSON; `outstanding` is the number of its undelivered records."""
    network: Network = client._network
    found = _client(settings, network)
    topics = list(network.metrics.topics.items())
    found["msg_cnt"] = outstanding
    found["msg_max"] = settings["queue.buffering.max.messages"]
    found["msg_size_max"] = settings["queue.buffering.max.kbytes"] * 1024
    found["txmsgs"] = int(sum(each.records.total for _, each in topics))
    found["txmsg_bytes"] = int(sum(each.size.total for _, each in topics))
    for topic, each in topics:
        info = network.cluster.topics.get(topic)
        partitions = {}
        for number in range(0 if info is None else len(info.partitions)):
            partition = partitions[str(number)] = _partition(network, topic, number)
            records, size = client.sent_to.get((topic, number), (0, 0))
            partition["txmsgs"], partition["txbytes"] = records, size
        found["topics"][topic] = {
            "topic": topic,
            "metadata_age": int(network.metadata_age_s() * 1000),
            "batchsize": _window(network, each.size),
            "batchcnt": _window(network, each.records),
            "txmsgs": int(each.records.total),
            "partitions": partitions,
        }
    return json.dumps(found)


class Progress(NamedTuple):
    """The offsets that the program of a consumer has received, stored and committed, and its number of rebalances."""

    delivered: dict[str, dict[int, int]]  # of the last record that the program has received
    stored: Mapping[Place, OffsetAndMetadata]
    committed: Mapping[Place, OffsetAndMetadata]
    rebalances: int  # the number of assignments and revocations


_NO_PROGRESS = Progress({}, {}, {}, 0)


def consumer_statistics(settings: Settings, client: Any, progress: Progress = _NO_PROGRESS) -> str:
    """Returns the statistics of a consumer as JSON; `progress` has the offsets that its program has reached."""
    network: Network = client._network
    found = _client(settings, network)
    topics = list(network.metrics.topics.items())
    found["rxmsgs"] = int(sum(each.records.total for _, each in topics))
    found["rxmsg_bytes"] = int(sum(each.size.total for _, each in topics))
    states = list(client._subscription.partitions.items())
    for place, state in states:
        topic = found["topics"].setdefault(
            place.topic,
            {"topic": place.topic, "metadata_age": int(network.metadata_age_s() * 1000), "partitions": {}},
        )
        partition = topic["partitions"][str(place.partition)] = _partition(network, *place)
        last = progress.delivered.get(place.topic, {}).get(place.partition)
        position = OFFSET_INVALID if last is None else last + 1
        stored = position if settings["enable.auto.offset.store"] else _offset(progress.stored.get(place))
        committed = _offset(progress.committed.get(place))
        if committed == OFFSET_INVALID and state.found_committed >= 0:
            committed = state.found_committed
        end = state.last_stable_offset if settings["isolation.level"] == "read_committed" else state.high_watermark
        partition.update(
            next_offset=state.fetch_offset,
            app_offset=position,
            stored_offset=stored,
            committed_offset=committed,
            lo_offset=state.log_start_offset,
            hi_offset=state.high_watermark,
            ls_offset=state.last_stable_offset,
            consumer_lag=_lag(committed, end),
            consumer_lag_stored=_lag(stored, end),
        )
    if states or settings["group.id"]:
        found["cgrp"] = {
            "state": "up" if states else "init",
            "join_state": "steady" if states else "init",
            "rebalance_cnt": progress.rebalances,
            "assignment_size": len(states),
        }
    return json.dumps(found)


def _offset(found: OffsetAndMetadata | None) -> int:
    return OFFSET_INVALID if found is None else found.offset


def _lag(offset: int, end: int) -> int:
    return max(end - offset, 0) if offset >= 0 and end >= 0 else -1


def admin_statistics(settings: Settings, client: Admin) -> str:
    """Returns the statistics of an admin client as JSON."""
    return json.dumps(_client(settings, client._network))
