"""Processes orders that arrive at least once, and some of them twice: a unique key in the table ignores the second.

The table is in the SQLite database PATH, by default in memory.
"""

from __future__ import annotations

import sqlite3

from example_support import run

from kafkapy.client import Consumer, Producer


def send_orders(bootstrap: str, topic: str) -> None:
    """Sends ten orders twice, like a sender that got no response to its first attempt."""
    with Producer(bootstrap_servers=bootstrap, value_serializer="json") as producer:
        for number in [*range(10), *range(10)]:
            producer.send(topic, {"order": number, "amount": number * 10}, key=str(number))


def main(bootstrap: str, topic: str, path: str) -> None:
    send_orders(bootstrap, topic)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, amount INTEGER)")
    received = repeated = 0
    settings = {"group_id": f"booking-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(bootstrap_servers=bootstrap, value_deserializer="json", **settings) as consumer:
        consumer.subscribe([topic])
        while received < 20:
            for record in consumer.poll(1.0):
                order = record.value
                insert = "INSERT OR IGNORE INTO orders VALUES (?, ?)"
                repeated += 1 - database.execute(insert, (order["order"], order["amount"])).rowcount
                received += 1
            database.commit()  # results before offsets: at least once
            consumer.commit()
    booked, amount = database.execute("SELECT count(*), sum(amount) FROM orders").fetchone()
    print(f"received {received}, repeated {repeated}, booked {booked} orders of {amount}")
    database.close()


if __name__ == "__main__":
    run(main, __doc__, topic="example-orders", path=":memory:")
