"""The pages of the inspection interface: JSON about logs, fetches and quotas, for programs such as the console.

    broker                                      the node id, the cluster id and the version of the broker
    topics/TOPIC/partitions/N                   the offsets and the size of its log
    topics/TOPIC/partitions/N/segments          ?start=OFFSET&limit=   its segments
    topics/TOPIC/partitions/N/offsets/OFFSET    the segment, byte position and batch that contain the offset
    fetches          ?topic=&partition=&client_id=&start=&limit=   the partitions that consumers read in fetch sessions
    large-fetches    ?topic=&partition=&client_id=&start=&limit=   fetches that met a batch larger than they permitted
    quotas           ?client_id=&start=&limit=  what limits clients, and how long they are delayed

The pages change nothing, and no part of them runs on the reactor's thread. Each page is made on a thread of its own,
which ends with the page. A slow disk therefore delays neither the metrics nor the health pages of the listener.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from kafkapy import __version__
from kafkapy.config.row import INT_MAX
from kafkapy.metrics.http_server import Pending, Response
from kafkapy.metrics.page import Pace
from kafkapy.replica.partition import Partition
from kafkapy.server.inspection.clients import fetch_places, large_fetches, quota_page
from kafkapy.server.inspection.refusal import Query, Refusal, whole
from kafkapy.server.inspection.segments import describe_partition, place_of, segments_page
from kafkapy.server.services import Services
from kafkapy.types import TopicPartition

logger = logging.getLogger("kafkapy.metrics.Inspection")

PAGE_CONTENT_TYPE = "application/json"
PATIENCE_S = 10.0
MOST_PAGES = 4
MOST_SEGMENTS = 100
MOST_CLIENT_ENTRIES = 500
_PAGE_PARAMETERS = ("start", "limit")
_PAGES = (
    "broker, topics/TOPIC/partitions/N, topics/TOPIC/partitions/N/segments, topics/TOPIC/partitions/N/offsets/OFFSET, "
    "fetches, large-fetches and quotas"
)

Make = Callable[[Pace], dict[str, Any]]


class Inspection:
    """Makes the pages, at most MOST_PAGES at a time. Called by the metrics listener's thread only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running = threading.BoundedSemaphore(MOST_PAGES)

    def page(self, path: str, query: str) -> Response | Pending:
        """Returns the page at `path`, which is relative to the interface's prefix, for the query of the URL.

        The status is 400 for a query that has no meaning, 404 for a page, topic, partition or offset that this broker
        does not have, and 503 if too many pages are being made or a file cannot be read.
        """
        try:
            make = self._find(path.split("/"), _parsed(query))
        except Refusal as refusal:
            return _refused(refusal)
        if not self._running.acquire(blocking=False):
            return _refused(Refusal(503, f"{MOST_PAGES} pages are being made already. Try again."))
        pending = Pending(_refused(Refusal(503, f"The page was not made within {PATIENCE_S:g} seconds.")), PATIENCE_S)
        threading.Thread(target=self._make, args=(make, pending), name="kafkapy-inspection", daemon=True).start()
        return pending

    def _make(self, make: Make, pending: Pending) -> None:
        try:
            response = _json(make(Pace()))
        except Refusal as refusal:
            response = _refused(refusal)
        except Exception:
            logger.exception("A page of the inspection interface could not be made")
            response = _refused(Refusal(500, "The page could not be made; the broker's log has the reason."))
        self._running.release()
        pending.resolve(response)

    def _find(self, words: list[str], query: Query) -> Make:
        """Returns the function that makes the page whose path has the elements `words`.

        Raises Refusal if there is no such page, or if `query` has an unknown parameter or an invalid value.
        """
        services = self._services
        if words == ["broker"]:
            query.check(())
            return lambda pace: {
                "node_id": services.node_id,
                "cluster_id": services.cluster_id,
                "version": __version__,
            }
        if words in (["fetches"], ["large-fetches"]):
            query.check(("topic", "partition", "client_id", *_PAGE_PARAMETERS))
            partition, client_id = _asked_partition(query), query.text("client_id")
            start, limit = query.whole("start", 0, INT_MAX), query.limit(MOST_CLIENT_ENTRIES)
            if words == ["fetches"]:
                return lambda pace: fetch_places(services, client_id, partition, start, limit, pace)
            return lambda pace: large_fetches(services, client_id, partition, start, limit)
        if words == ["quotas"]:
            query.check(("client_id", *_PAGE_PARAMETERS))
            client_id = query.text("client_id")
            start, limit = query.whole("start", 0, INT_MAX), query.limit(MOST_CLIENT_ENTRIES)
            return lambda pace: quota_page(services, client_id, start, limit, pace)
        if len(words) >= 4 and (words[0], words[2]) == ("topics", "partitions"):
            return self._find_partition(words[1], words[3], words[4:], query)
        raise Refusal(404, f"There is no page at this path; the pages are {_PAGES}.")

    def _find_partition(self, topic: str, number: str, rest: list[str], query: Query) -> Make:
        partition = self._partition(topic, whole("partition", number, INT_MAX))
        if not rest:
            query.check(())
            return lambda pace: describe_partition(partition)
        if rest == ["segments"]:
            query.check(_PAGE_PARAMETERS)
            start, limit = query.whole("start", 0), query.limit(MOST_SEGMENTS)
            return lambda pace: describe_partition(partition) | segments_page(partition.log, start, limit, pace)
        if len(rest) == 2 and rest[0] == "offsets":
            query.check(())
            offset = whole("offset", rest[1])
            return lambda pace: place_of(partition.log, offset)
        raise Refusal(404, f"There is no page at this path; the pages are {_PAGES}.")

    def _partition(self, topic: str, number: int) -> Partition:
        """Returns a partition of which this broker has a replica. Raises Refusal."""
        services = self._services
        found = services.replica_manager.partitions.get(TopicPartition(topic, number))
        if found is not None and found.log.directory.is_online:
            return found
        image = services.metadata.image.topics
        if topic not in image.by_name:
            raise Refusal(404, f"There is no topic {topic[:100]!r}.")
        state = image.partition(topic, number)
        if state is None:
            raise Refusal(404, f"The topic {topic} has no partition {number}.")
        if services.node_id in state.replicas:
            raise Refusal(503, f"The replica of {topic}-{number} on this broker is offline or not ready.")
        others = ", ".join(map(str, state.replicas))
        raise Refusal(404, f"This broker has no replica of {topic}-{number}; the brokers {others} have one.")


def _parsed(text: str) -> Query:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=10) if text else []
    except ValueError as error:
        raise Refusal(400, f"The query cannot be parsed: {error}.") from error
    given = dict(pairs)
    if len(given) < len(pairs):
        raise Refusal(400, "The query has a parameter twice.")
    return Query(given)


def _asked_partition(query: Query) -> TopicPartition | None:
    topic, number = query.text("topic"), query.text("partition")
    if (topic is None) != (number is None):
        raise Refusal(400, "topic and partition are needed together.")
    return None if topic is None else TopicPartition(topic, query.whole("partition", 0, INT_MAX))


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response((json.dumps(content, allow_nan=False) + "\n").encode(), status, PAGE_CONTENT_TYPE)


def _refused(refusal: Refusal) -> Response:
    return _json({"error": refusal.text}, refusal.status)
