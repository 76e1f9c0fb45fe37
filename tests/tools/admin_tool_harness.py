"""A broker with topics, records, groups and a member, one of each for Apache Kafka's tools and one for ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkapy.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.tools.admin_comparisons import FILES
from tests.tools.comparison import OURS, THEIRS, Comparison, compare
from tests.tools.tool_host import ToolHost

PARTITIONS = 3
RECORDS = 30


class AdminToolHarness:
    """The topics, groups and files for the tests that compare our administration tools with those of Apache Kafka."""

    def __init__(self, host: ToolHost, bootstrap: str, directory: Path) -> None:
        self._host = host
        self._bootstrap = bootstrap
        self._directory = directory
        for me in (THEIRS, OURS):
            (directory / me).mkdir()
            for name, content in FILES.items():
                (directory / me / name).write_text(content.replace("{me}", me))
        with Admin(bootstrap_servers=bootstrap) as admin:
            topics = [f"orders-{THEIRS}", f"orders-{OURS}", "orders-active"]
            admin.create_topics([NewTopic("empty", 1), *(NewTopic(name, PARTITIONS) for name in topics)]).check()
            wall_ms = int(time.time() * 1000)
            with Producer(bootstrap_servers=bootstrap) as producer:
                for number in range(RECORDS):
                    for name in topics:
                        partition, timestamp = number % PARTITIONS, wall_ms + number
                        producer.send(name, str(number), partition=partition, timestamp=timestamp)
            for me in (THEIRS, OURS):
                first, second = (TopicPartition(f"orders-{me}", number) for number in range(2))
                offsets = {first: OffsetAndMetadata(3), second: OffsetAndMetadata(5, "five", 0)}
                admin.alter_group_offsets(f"readers-{me}", offsets).check()

    def compare(self, comparison: Comparison) -> None:
        """Raises AssertionError if the output of the two tools differs."""
        compare(self._host, comparison, self._bootstrap, self._directory)


@contextmanager
def member_of(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """Keeps a member in a group until the context ends."""
    ends = threading.Event()
    joined = threading.Event()

    def poll() -> None:
        with Consumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            count = 0
            while not ends.is_set():
                count += len(consumer.poll(0.2))
                if count == RECORDS and not joined.is_set():
                    consumer.commit()
                    joined.set()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert joined.wait(60)
        yield
    finally:
        ends.set()
        thread.join()
