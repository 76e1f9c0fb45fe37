"""Facts that Kafka's protocol does not report, read from the inspection pages of kafkapy's brokers.

The pages are on the brokers' metrics listeners (docs/inspection.md). If a listener does not respond, or belongs to
Apache Kafka, which has no such pages, the functions raise `FactsUnknown`. The console shows the text of the exception.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Lock
from typing import Any
from urllib.parse import urlencode, urlsplit

from kafkapy.console.expiring import ExpiringCache
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.metrics import PageAddress
from kafkapy.types import TopicPartition

RESPONSE_TIMEOUT_S = 2.0
# A listener that has not responded is not asked for this time, so that pages do not wait for it each time.
PAUSE_S = 10.0
LARGEST_ANSWER = 4 << 20
FACTS_FRESH_S = 2.0
# Pages of a list, with 500 entries each, that are read from one broker.
MOST_LIST_PAGES = 4
CACHED_PAGES = 100
NOT_CONFIGURED = (
    "Kafka's protocol does not tell this. A kafkapy broker tells it on its metrics listener, whose address the "
    "console's option --metrics names; Apache Kafka does not tell it."
)


class FactsUnknown(Exception):
    """Raised if a fact is not known. The text is a full sentence that says why."""


class Fetched(NamedTuple):
    """The entries of a list that one broker has returned. `is_complete` is False if the broker has more entries than
    were read."""

    broker: int
    entries: list[dict[str, Any]]
    is_complete: bool


class BrokerFacts:
    """The inspection pages of the brokers of one cluster. Thread-safe.

    The first call asks each metrics listener for the id of its broker.
    """

    def __init__(self, addresses: Sequence[PageAddress], clock: Callable[[], float] = time.monotonic) -> None:
        self._addresses = tuple(addresses)
        self._clock = clock
        self._cache = ExpiringCache(CACHED_PAGES, clock)
        self._failures: dict[str, tuple[float, str]] = {}
        self._brokers: dict[tuple[str | None, int], PageAddress] = {}
        self._lock = Lock()

    @property
    def is_configured(self) -> bool:
        """True if the console knows the address of a metrics listener."""
        return bool(self._addresses)

    def place(
        self, cluster_id: str | None, brokers: Iterable[int], partition: TopicPartition, offset: int
    ) -> dict[str, Any]:
        """Returns the segment, the position and the batch of an offset, from the first of `brokers` that responds.

        `brokers` are the ids of the brokers with a replica, the leader first. Raises FactsUnknown if none of them
        reports the offset.
        """
        path = f"topics/{partition.topic}/partitions/{partition.partition}/offsets/{offset}"
        reasons = []
        for broker in brokers:
            try:
                return {"broker": broker, **self._read(self._address(cluster_id, broker), path)}
            except FactsUnknown as reason:
                reasons.append(str(reason))
        raise FactsUnknown(reasons[0] if reasons else "The partition has no replica.")

    def quotas(self, cluster_id: str | None, broker: int) -> Fetched:
        """Returns the quotas of a broker, with the clients to which they apply. Raises FactsUnknown."""
        return self._list(cluster_id, broker, "quotas", "quotas")

    def large_fetches(self, cluster_id: str | None, broker: int) -> Fetched:
        """Returns the latest fetches of a broker in which a batch was larger than the fetch permitted. Raises
        FactsUnknown."""
        return self._list(cluster_id, broker, "large-fetches", "large_fetches")

    def _list(self, cluster_id: str | None, broker: int, path: str, member: str) -> Fetched:
        address = self._address(cluster_id, broker)

        def read() -> Fetched:
            found: list[dict[str, Any]] = []
            start: int | None = 0
            for _ in range(MOST_LIST_PAGES):
                page = self._read(address, f"{path}?{urlencode({'start': start})}")
                found += page[member]
                start = page["next"]
                if start is None:
                    break
            return Fetched(broker, found, start is None)

        return self._cache.get((path, broker), FACTS_FRESH_S, read)

    def _address(self, cluster_id: str | None, broker: int) -> PageAddress:
        """Returns the address of the metrics listener of a broker. Raises FactsUnknown."""
        if not self._addresses:
            raise FactsUnknown(NOT_CONFIGURED)
        with self._lock:
            known = self._brokers.get((cluster_id, broker))
        if known is not None:
            return known
        reasons = []
        for address in self._addresses:
            try:
                page = self._cache.get(address.url, PAUSE_S, partial(self._read, address, "broker"))
            except FactsUnknown as reason:
                reasons.append(str(reason))
                continue
            with self._lock:
                self._brokers[page["cluster_id"], page["node_id"]] = address
        with self._lock:
            known = self._brokers.get((cluster_id, broker))
        if known is None:
            said = f" {reasons[0]}" if reasons else ""
            raise FactsUnknown(f"No address of --metrics belongs to broker {broker} of this cluster.{said}")
        return known

    def _read(self, address: PageAddress, path: str) -> dict[str, Any]:
        """Returns the content of a page. Raises FactsUnknown if it cannot be read.

        If the last request to this address failed less than PAUSE_S seconds ago, no request is sent.
        """
        with self._lock:
            until_s, reason = self._failures.get(address.url, (0.0, ""))
        if self._clock() < until_s:
            raise FactsUnknown(reason)
        try:
            status, body = _get(address, f"/v1/{path}")
        except (OSError, HTTPException) as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            reason = f"The metrics listener {shown(address.url)} cannot be read: {said}."
            with self._lock:
                self._failures[address.url] = (self._clock() + PAUSE_S, reason)
            raise FactsUnknown(reason) from None
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        if status == 401:
            raise FactsUnknown(f"The metrics listener {shown(address.url)} refuses the user name or the password.")
        if not isinstance(content, dict) or (status != 200 and "error" not in content):
            raise FactsUnknown(
                f"{shown(address.url)} is not the metrics listener of a kafkapy broker with these pages."
            )
        if status != 200:
            raise FactsUnknown(str(content["error"]))
        return content


def shown(url: str) -> str:
    """Returns a URL without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _get(address: PageAddress, path: str) -> tuple[int, bytes]:
    """Returns the status and the body of a page. Raises OSError or HTTPException."""
    parts = urlsplit(address.url)
    assert parts.hostname is not None, "the address was checked when the command line was read"
    connection: HTTPConnection = (
        HTTPSConnection(parts.hostname, parts.port or 443, timeout=RESPONSE_TIMEOUT_S, context=address.tls)
        if parts.scheme == "https"
        else HTTPConnection(parts.hostname, parts.port or 80, timeout=RESPONSE_TIMEOUT_S)
    )
    headers = {}
    if address.user:
        credentials = b64encode(f"{address.user}:{address.password}".encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(LARGEST_ANSWER)
    finally:
        connection.close()
