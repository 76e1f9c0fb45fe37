"""Keeps offsets where the results are: both are written in one database transaction, so that nothing counts twice.

The group only shares out the partitions; where to begin is read from the database when a partition comes.
"""

from __future__ import annotations

import sqlite3
import sys

from kafkapy.client import Consumer, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS totals (key TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (topic TEXT, "partition" INTEGER, next INTEGER, PRIMARY KEY (topic, "partition"));
"""


class BeginWhereTheDatabaseSays:
    """Seeks when partitions are assigned. It is called within `poll`."""

    def __init__(self, consumer: Consumer, database: sqlite3.Connection) -> None:
        self._consumer = consumer
        self._database = database

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            query = 'SELECT next FROM offsets WHERE topic = ? AND "partition" = ?'
            found = self._database.execute(query, each).fetchone()
            self._consumer.seek(each, found[0] if found else 0)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Nothing is open between polls."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Nothing is open between polls."""


def main(bootstrap: str, topic: str, path: str, count: str) -> None:
    database = sqlite3.connect(path)
    database.executescript(TABLES)
    left = int(count)
    with Consumer(bootstrap_servers=bootstrap, group_id=f"counters-of-{topic}", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], BeginWhereTheDatabaseSays(consumer, database))
        while left > 0:
            for partition, records in consumer.poll(1.0).by_partition().items():
                wanted = records[:left]
                if not wanted:
                    break
                with database:  # one transaction: all of it, or nothing if this program dies here
                    for record in wanted:
                        key = record.key.decode() if record.key else ""
                        add = "INSERT INTO totals VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET count = count + 1"
                        database.execute(add, (key,))
                    keep = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
                    database.execute(keep, (*partition, wanted[-1].offset + 1))
                left -= len(wanted)
    total = database.execute("SELECT sum(count) FROM totals").fetchone()[0]
    print(f"{total} records counted")
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:5])
