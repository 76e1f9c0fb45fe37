"""The functions that the examples share: arguments, topics with records to read, and the end at Ctrl-C."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterable

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.errors import ApiError, Error


def run(main: Callable[..., None], description: str | None, **defaults: str) -> None:
    """Calls `main` with the program's arguments: the broker's address and, in order, those that `defaults` names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"bootstrap": "localhost:9092", **defaults}.items():
        parser.add_argument(name, nargs="?", default=default, help=f"default: {default}")
    try:
        main(**vars(parser.parse_args()))
    except KeyboardInterrupt:
        sys.exit(130)


def join(threads: Iterable[threading.Thread]) -> None:
    """Waits for the end of the threads that were started, which after Ctrl-C may be some of them."""
    for thread in threads:
        if thread.ident is not None:
            thread.join()


def make_topic(bootstrap: str, topic: str, partitions: int, *, is_exact: bool = False) -> None:
    """Creates a topic unless it exists. With `is_exact`, ends the program if it has another number of partitions."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        try:
            admin.create_topics([NewTopic(topic, partitions)]).check()
        except ApiError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise
            found = len(admin.describe_topics([topic]).check()[topic].partitions)
            if is_exact and found != partitions:
                sys.exit(f"The topic {topic} has {found} partitions, not {partitions}: name another topic")


def fill(bootstrap: str, topic: str, count: int, partitions: int = 3) -> None:
    """Creates a topic unless it exists, and sends `count` records with ten different keys to it."""
    make_topic(bootstrap, topic, partitions)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(topic, f"message{number}", key=str(number % 10))
    print(f"sent {count} records to {topic}", flush=True)
