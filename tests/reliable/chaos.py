"""Kills of broker, services and application under a chain of the patterns; every record ends exactly once.

    application -> chaos -> kafkapy retry -> __kafkapy_delay -> kafkapy delay -> final
                              \\-> chaos.retry.1, chaos.retry.2 -> chaos.dlt

The records of the topic `chaos` are the input: each of them must be once in `final` or in `chaos.dlt`, and these topics
must have nothing else. The broker's audit must have counted the records of the three topics, to the bucket.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client import Admin, Consumer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable.audit import APPENDED, AUDIT_TOPIC, BUCKET_MS, unpack_count
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.server.audit.count_writer import AUDIT_GROUP
from tests.broker_process import BrokerProcess
from tests.reliable.tool_process import ToolProcess

SOURCE, FINAL, DEAD_LETTERS = "chaos", "final", "chaos.dlt"
AUDITED = (SOURCE, FINAL, DEAD_LETTERS)
DRAIN_S = 180.0


class Chaos:
    """One run with a seed. Not thread-safe."""

    def __init__(self, directory: Path, seed: int, rate: int = 100) -> None:
        self._chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.broker = BrokerProcess(directory / "broker", {"kafkapy.audit.topics": ",".join(AUDITED)})
        address = ["-b", self.broker.bootstrap]
        retry = ["retry", "-t", SOURCE, "-g", "charges", "--handler", "tests.reliable.handlers:delay_or_fail"]
        retry += ["--delays", "200ms,500ms", "--handler-timeout", "2s", *address]
        self._victims = {
            "retry-1": ToolProcess(directory / "retry-1", [*retry, "--instance", "1"]),
            "retry-2": ToolProcess(directory / "retry-2", [*retry, "--instance", "2"]),
            "delay": ToolProcess(directory / "delay", ["delay", "--instance", "1", *address]),
            "application": ToolProcess(
                directory / "application", [self.broker.bootstrap, SOURCE, str(rate)], "tests.reliable.chaos_producer"
            ),
        }

    def run(self, kills: int) -> None:
        """Starts everything, kills `kills` times, and ends the application; raises AssertionError for a difference."""
        self.broker.start()
        try:
            with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
                admin.create_topics([NewTopic(SOURCE, 4, 1), NewTopic(FINAL, 2, 1)]).check()
            for each in self._victims.values():
                each.start()
            self._wait_for(self._has_positions)
            for _ in range(kills):
                time.sleep(self._chance.uniform(0.2, 1.5))
                self._kill()
            time.sleep(1)
            self._victims["application"].kill()
            self._check()
        finally:
            for each in (*self._victims.values(), self.broker):
                if each.is_running:
                    each.kill()

    def _kill(self) -> None:
        """Kills one process, or the broker together with a service, and starts them again."""
        name = self._chance.choice(("broker", "both", *self._victims))
        self.kills[name] += 1
        service = self._chance.choice(("retry-1", "retry-2", "delay")) if name == "both" else name
        if service in self._victims:
            self._victims[service].kill()
        if name in ("broker", "both"):
            self.broker.kill()
            time.sleep(self._chance.uniform(0, 1))
            self.broker.start()
        if service in self._victims:
            self._victims[service].start()

    def _records(self, topic: str) -> list[ConsumerRecord]:
        properties = {"bootstrap.servers": self.broker.bootstrap}
        return list(scan(properties, dict.fromkeys(all_partitions(properties, topic))))

    def _values(self, topic: str) -> list[bytes]:
        return [each.value for each in self._records(topic)]

    @staticmethod
    def _wait_for(condition: Callable[[], bool]) -> None:
        """Waits until the condition is met, or for DRAIN_S seconds; the caller then finds the difference."""
        deadline_s = time.monotonic() + DRAIN_S
        while not condition() and time.monotonic() < deadline_s:
            time.sleep(0.5)

    def _has_positions(self) -> bool:
        """Returns whether the audit has stored its first positions; earlier records need not be counted."""
        properties = {"bootstrap.servers": self.broker.bootstrap}
        partitions = [each for topic in AUDITED for each in all_partitions(properties, topic)]
        with Consumer(properties, group_id=AUDIT_GROUP) as consumer:
            return None not in consumer.committed(partitions).values() and len({each[0] for each in partitions}) == 3

    def _counts(self) -> Counter[tuple[str, int]]:
        """Returns the committed records that the broker has counted, by topic and bucket."""
        counts: Counter[tuple[str, int]] = Counter()
        for count in map(unpack_count, self._values(AUDIT_TOPIC)):
            counts[count.topic, count.bucket_ms] += count.number if count.tier == APPENDED else -count.number
        return +counts

    def _check(self) -> None:
        expected = Counter(self._values(SOURCE))

        def drained() -> Counter[bytes]:
            return Counter(self._values(FINAL)) + Counter(self._values(DEAD_LETTERS))

        self._wait_for(lambda: drained().total() >= expected.total())
        found = drained()
        missing, surplus = expected - found, found - expected
        assert not missing and not surplus, (
            f"{missing.total()} of {expected.total()} missing {list(missing)[:5]}, "
            f"{surplus.total()} too many {list(surplus)[:5]}; kills: {dict(self.kills)}"
        )
        assert not self._values("__kafkapy_delay.dlt")
        counted = Counter(
            (topic, each.timestamp - each.timestamp % BUCKET_MS) for topic in AUDITED for each in self._records(topic)
        )
        self._wait_for(lambda: self._counts().total() >= counted.total())
        assert self._counts() == counted
        self.input_count = expected.total()
