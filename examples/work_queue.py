"""Several workers take tasks from one topic as from a queue, and acknowledge each task: a share group.

There are more workers than partitions. A task that fails is released and delivered to some worker again; a task that
fails twice is rejected. The program sends COUNT tasks, of which every fifth fails at first and every tenth always.
"""

from __future__ import annotations

import threading
from collections import Counter

from example_support import fill, run

from kafkapy.client import AcknowledgeType, ConsumerRecord, ShareConsumer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType


class Work:
    """The number of tasks that are left, and the results of the others. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = count
        self.results: Counter[str] = Counter()

    @property
    def is_done(self) -> bool:
        return self._left <= 0

    def process(self, task: ConsumerRecord) -> AcknowledgeType:
        """Processes a task; here a task only fails or succeeds, by its number."""
        number = int(task.value.removeprefix(b"message"))
        if number % 5 or (number % 10 and task.delivery_count > 1):
            return self._finish("done", AcknowledgeType.ACCEPT)
        if task.delivery_count > 1:
            return self._finish("rejected", AcknowledgeType.REJECT)
        return AcknowledgeType.RELEASE

    def _finish(self, result: str, kind: AcknowledgeType) -> AcknowledgeType:
        with self._lock:
            self.results[result] += 1
            self._left -= 1
        return kind


def work(bootstrap: str, topic: str, group: str, tasks: Work) -> None:
    """Takes tasks, a few at a time, until all are done."""
    settings = {"share_acknowledgement_mode": "explicit", "share_acquire_mode": "record_limit", "max_poll_records": 5}
    with ShareConsumer(bootstrap_servers=bootstrap, group_id=group, **settings) as consumer:
        consumer.subscribe(topic)
        while not tasks.is_done:
            for task in consumer.poll(1.0):
                consumer.acknowledge(task, tasks.process(task))


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:  # a new share group begins at the end of a topic otherwise
        reset = ConfigChange("share.auto.offset.reset", "earliest")
        admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, group): [reset]}).check()
    fill(bootstrap, topic, int(count), partitions=1)
    tasks = Work(int(count))
    workers = [threading.Thread(target=work, args=(bootstrap, topic, group, tasks), daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{tasks.results['done']} tasks done, {tasks.results['rejected']} rejected")


if __name__ == "__main__":
    run(main, __doc__, topic="example-tasks", group="example-tasks", count="50")
