"""The election of the one instance that writes, and the addresses of the instances.

All instances are members of one consumer group that subscribes to the topic of the registry. The topic has one
partition; the member to which the group assigns it is the writer. The writer commits its address as the metadata of an
offset, where the other instances find it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from kafkapy.client import Consumer, OffsetAndMetadata, WakeupError
from kafkapy.errors import KafkapyError
from kafkapy.registry.topic import SchemaTopic
from kafkapy.types import TopicPartition

log = logging.getLogger("kafkapy.registry")

_STEP_S = 0.2
_ELECTION_TIMEOUT_MS = 10_000
_LOOK_UP_S = 1.0
_ELECT_AGAIN_S = 2.0
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


class Election:
    """Takes part in the election for this instance, on a thread of its own from `start` to `close`.

    `leader_url` is the address of the writer, None while it is unknown. `is_leader` is True if this instance is the
    writer.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str,
        topic: SchemaTopic,
        *,
        is_eligible: bool = True,
    ) -> None:
        session_timeout_ms = int(properties.get("session.timeout.ms", _ELECTION_TIMEOUT_MS))
        self._properties = {
            **properties,
            "group.id": group,
            "group.protocol": "classic",
            "partition.assignment.strategy": COOPERATIVE,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": session_timeout_ms // 3,
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        self._topic = topic
        self._is_eligible = is_eligible
        self._url = ""
        self._is_closed = False
        self._owns_partition = False
        self._changed = threading.Condition()
        self._resignation = threading.Event()
        self.is_leader = False
        self.leader_url: str | None = None
        self._thread = threading.Thread(target=self._run, name="registry-election", daemon=True)

    def start(self, url: str) -> None:
        """Takes part in the election; `url` is the address at which other instances reach this one."""
        self._url = url
        self._thread.start()

    def close(self) -> None:
        """Leaves the group, so that another instance becomes the writer at once."""
        self._is_closed = True
        if self._thread.is_alive():
            self._thread.join(10)

    def await_leader(self, timeout_s: float) -> str | None:
        """Waits for the address of the writer and returns it; None if it is unknown after `timeout_s` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.leader_url is not None, timeout_s)
            return self.leader_url

    def resign(self) -> None:
        """Makes this instance stop being the writer, because the cluster has fenced one of its writes.

        If the consumer group still assigns the topic's only partition to this instance, this instance then becomes the
        writer again.
        """
        self._set_leader(None)
        self._resignation.set()

    # The callbacks of a rebalance, called within `poll`

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._owns_partition = self._owns_partition or bool(partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._owns_partition = False
            self._set_leader(None)
            self._topic.step_down()

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)

    def _run(self) -> None:
        while not self._is_closed:
            try:
                with Consumer(self._properties) as consumer:
                    self._take_part(consumer)
            except WakeupError:
                break
            except Exception as error:  # the thread must go on taking part
                log.warning("The election of the registry's writer failed, trying again: %s", error)
                self.on_partitions_revoked([self._topic.partition])
                time.sleep(_ELECT_AGAIN_S)

    def _take_part(self, consumer: Consumer) -> None:
        if self._is_eligible:
            consumer.subscribe([self._topic.partition.topic], self)
        next_look_up_s = 0.0
        while not self._is_closed:
            if self._is_eligible:
                consumer.poll(_STEP_S)
            else:
                time.sleep(_STEP_S)
            if self._resignation.is_set():
                self._resignation.clear()
                self._topic.step_down()
            if self._owns_partition and not self.is_leader:
                consumer.pause([self._topic.partition])  # the group serves the election only
                self._topic.take_over()
                self._publish(consumer)
            elif not self._owns_partition and time.monotonic() >= next_look_up_s:
                self._look_up(consumer)
                next_look_up_s = time.monotonic() + (_LOOK_UP_S if self.leader_url else _STEP_S)
        self._topic.step_down()
        if self.is_leader:
            with suppress(KafkapyError):
                consumer.commit({self._topic.partition: OffsetAndMetadata(0, "")}, timeout=2)

    def _publish(self, consumer: Consumer) -> None:
        address = json.dumps({"url": self._url})
        consumer.commit({self._topic.partition: OffsetAndMetadata(0, address)})
        self._set_leader(self._url, is_self=True)
        log.info("This instance, %s, writes the schemas", self._url)

    def _look_up(self, consumer: Consumer) -> None:
        found = consumer.committed([self._topic.partition])[self._topic.partition]
        url = None
        with suppress(ValueError, AttributeError):
            url = json.loads(found.metadata).get("url") if found is not None and found.metadata else None
        # This instance's own address was written by an earlier process, or in a generation that has ended.
        self._set_leader(url if isinstance(url, str) and url != self._url else None)

    def _set_leader(self, url: str | None, *, is_self: bool = False) -> None:
        with self._changed:
            self.is_leader = is_self
            self.leader_url = url
            self._changed.notify_all()
