"""The connection of a client to its cluster: the first metadata, and the version of the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.client.cluster import TopicInfo, merge
from kafkapy.client.connection import State
from kafkapy.client.network import Network
from kafkapy.compat.kafka.errors import KafkaTimeoutError, translated
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse

# Releases of Apache Kafka, the latest first, with an API and its highest version that the release before it lacks.
_RELEASES: tuple[tuple[tuple[int, ...], ApiKey, int], ...] = (
    ((4, 3), ApiKey.DESCRIBE_LOG_DIRS, 5),
    ((4, 2), ApiKey.LIST_OFFSETS, 11),
    ((4, 1), ApiKey.PRODUCE, 13),
    ((4, 0), ApiKey.LIST_OFFSETS, 10),
    ((3, 9), ApiKey.FETCH, 17),
    ((3, 8), ApiKey.PRODUCE, 11),
    ((3, 7), ApiKey.FETCH, 16),
    ((3, 5), ApiKey.FETCH, 15),
    ((3, 3), ApiKey.DESCRIBE_ACLS, 3),
    ((3, 2), ApiKey.JOIN_GROUP, 9),
    ((3, 1), ApiKey.FETCH, 13),
    ((3, 0), ApiKey.LIST_OFFSETS, 7),
    ((2, 8), ApiKey.PRODUCE, 9),
    ((2, 4), ApiKey.PRODUCE, 8),
    ((2, 1), ApiKey.FETCH, 10),
    ((2, 0), ApiKey.FETCH, 8),
    ((1, 0), ApiKey.FETCH, 6),
    ((0, 11), ApiKey.FETCH, 4),
)
_OLDEST = (0, 10)


def await_bootstrap(network: Network, timeout_ms: float | None) -> None:
    """Blocks until a broker has named the brokers of the cluster. Raises KafkaTimeoutError after `timeout_ms`."""
    with translated():
        if not network.wait_until(
            lambda: network.metadata.updates > 0, None if timeout_ms is None else timeout_ms / 1e3
        ):
            error = network.timed_out(f"No broker has responded within {timeout_ms} ms.")
            raise KafkaTimeoutError(error.message) from error


def has_connection(network: Network) -> bool:
    """Returns whether some connection to a broker is ready."""
    with network.lock:
        return any(each.state is State.READY for each in network._connections.values())


def broker_version(network: Network, configured: Any) -> tuple[int, ...]:
    """Returns the release of Apache Kafka that is `configured`, such as (2, 8) or "2.8", as a tuple.

    If it is None or "auto", derives the release from the versions of the APIs that the connected broker serves.
    """
    if configured not in (None, "auto"):
        return tuple(int(each) for each in configured.split(".")) if isinstance(configured, str) else tuple(configured)
    with network.lock:
        versions = next((each.versions for each in network._connections.values() if each.versions), {})
    return release_of(versions)


def release_of(versions: Mapping[int, tuple[int, int]]) -> tuple[int, ...]:
    """Returns the release of Apache Kafka of a broker, derived from the versions of the APIs that the broker serves.

    `versions` maps the number of each API to its lowest and highest version.
    """
    for release, key, highest in _RELEASES:
        if versions.get(key, (0, -1))[1] >= highest:
            return release
    return _OLDEST


def all_topics(network: Network, timeout_s: float) -> dict[str, TopicInfo]:
    """Returns all topics that the client may see, by name; blocks. Raises KafkaTimeoutError after `timeout_s`."""
    found: list[MetadataResponse] = []
    is_waiting = False

    def build(version: int) -> MetadataRequest:
        must_allow = version < MetadataRequest.FIRST_VERSION_WITH_ALLOW_AUTO_TOPIC_CREATION
        return MetadataRequest(topics=None if version else [], allow_auto_topic_creation=must_allow)

    def on_done(response: MetadataResponse | None, version: int, error: Exception | None) -> None:
        nonlocal is_waiting
        is_waiting = False
        if response is not None and not response.error_code:
            found.append(response)

    def is_answered() -> bool:
        nonlocal is_waiting
        node_id = None if is_waiting or found else network.least_loaded()
        if node_id is not None:
            is_waiting = True
            network.submit(node_id, ApiKey.METADATA, build, on_done)
        return bool(found)

    with translated():
        if not network.wait_until(is_answered, timeout_s, poll_ms=network.retry_backoff.pause_ms(0)):
            raise network.timed_out("Timeout expired while fetching the metadata of all topics.")
    return merge(network.cluster, found[0], all_requested=True).topics
