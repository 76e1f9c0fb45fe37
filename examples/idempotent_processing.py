"""Orders come at least once, and sometimes twice: a table with a unique key makes the second do nothing."""

from __future__ import annotations

import sqlite3
import sys

from kafkapy.client import Consumer, Producer


def send_orders(bootstrap: str, topic: str) -> None:
    """Ten orders, each sent twice, as a sender does that has not heard of its first attempt."""
    with Producer(bootstrap_servers=bootstrap, value_serializer="json") as producer:
        for number in [*range(10), *range(10)]:
            producer.send(topic, {"order": number, "amount": number * 10}, key=str(number))


def main(bootstrap: str, topic: str, path: str) -> None:
    send_orders(bootstrap, topic)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY, amount INTEGER)")
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
            database.commit()  # first the results, then the offsets: at least once
            consumer.commit()
    booked, amount = database.execute("SELECT count(*), sum(amount) FROM orders").fetchone()
    print(f"received {received}, repeated {repeated}, booked {booked} orders of {amount}")
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
