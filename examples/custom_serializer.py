"""Sends and reads objects by a serializer and a deserializer of one's own.

A serializer is a function of the topic and the object that returns bytes; a deserializer is its inverse. The format
here has a version byte, so that readers of the next version can still read the old records.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from example_support import make_topic, run

from kafkapy.client import Consumer, Producer

VERSION = 1
HEADER = struct.Struct(">BiI")  # version, id, size of the name in bytes


class Customer(NamedTuple):
    """A customer: the values of the records."""

    number: int
    name: str


def serialize(topic: str, customer: Customer | None) -> bytes | None:
    """Returns the bytes of a customer; a record without a value stays one."""
    if customer is None:
        return None
    name = customer.name.encode()
    return HEADER.pack(VERSION, customer.number, len(name)) + name


def deserialize(topic: str, data: bytes | None) -> Customer | None:
    """Returns the customer in `data`. Raises ValueError for data of another format, which names the topic."""
    if data is None:
        return None
    if len(data) < HEADER.size:
        raise ValueError(f"{len(data)} bytes in {topic} are no customer: {HEADER.size} or more are expected")
    version, number, size = HEADER.unpack_from(data)
    if version != VERSION or len(data) != HEADER.size + size:
        raise ValueError(f"a record in {topic} is no customer of version {VERSION}")
    return Customer(number, data[HEADER.size :].decode())


def main(bootstrap: str, topic: str, group: str) -> None:
    make_topic(bootstrap, topic, 1)
    customers = [Customer(1, "Ada"), Customer(2, "刘备"), None]
    with Producer(bootstrap_servers=bootstrap, value_serializer=serialize) as producer:
        for number, customer in enumerate(customers, 1):
            producer.send(topic, customer, key=str(number))
    settings = {"group_id": group, "auto_offset_reset": "earliest", "value_deserializer": deserialize}
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        left = len(customers)
        while left:
            for record in consumer.poll(1.0):
                print(f"{record.key.decode()}: {record.value}")
                left -= 1
        consumer.commit()


if __name__ == "__main__":
    run(main, __doc__, topic="example-customers", group="example-customers")
