"""Stores offsets together with results, in one database transaction, so that each record is counted exactly once.

The group only divides the partitions; when a partition is assigned, its offset is read from the database. The program
sends COUNT records and counts as many. The SQLite database PATH is in memory by default; with a file, a second run
continues at the offset of the first.
"""

from __future__ import annotations

import sqlite3

from example_support import fill, run

from kafkapy.client import Consumer, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS totals (key TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (topic TEXT, "partition" INTEGER, next INTEGER, PRIMARY KEY (topic, "partition"));
"""


class SeekToStoredOffsets:
    """A listener that seeks to the stored offset of each assigned partition. `poll` calls it."""

    def __init__(self, consumer: Consumer, database: sqlite3.Connection) -> None:
        self._consumer = consumer
        self._database = database

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            query = 'SELECT next FROM offsets WHERE topic = ? AND "partition" = ?'
            found = self._database.execute(query, each).fetchone()
            self._consumer.seek(each, found[0] if found else 0)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Does nothing: between polls no transaction is open."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Does nothing: between polls no transaction is open."""


def main(bootstrap: str, topic: str, path: str, count: str) -> None:
    fill(bootstrap, topic, int(count))
    database = sqlite3.connect(path)
    database.executescript(TABLES)
    left = int(count)
    with Consumer(bootstrap_servers=bootstrap, group_id=f"counters-of-{topic}", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], SeekToStoredOffsets(consumer, database))
        while left > 0:
            for partition, records in consumer.poll(1.0).by_partition().items():
                wanted = records[:left]
                if not wanted:
                    break
                with database:  # one transaction: if the program dies here, nothing is stored
                    for record in wanted:
                        key = record.key.decode() if record.key else ""
                        add = "INSERT INTO totals VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET count = count + 1"
                        database.execute(add, (key,))
                    store = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
                    database.execute(store, (*partition, wanted[-1].offset + 1))
                left -= len(wanted)
    total = database.execute("SELECT sum(count) FROM totals").fetchone()[0]
    print(f"{total} records counted")
    database.close()


if __name__ == "__main__":
    run(main, __doc__, topic="example-offsets", path=":memory:", count="30")
