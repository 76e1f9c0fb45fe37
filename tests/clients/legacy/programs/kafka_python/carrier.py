"""The program for kafka-python from 1.4.7 on, which PROTOCOL.md describes.

It runs in a virtual environment of its own and cannot import this repository. Its arguments are settings of the client,
such as `api_version=0.8.2`; `oauth_token` is a token for OAUTHBEARER.
"""

import sys
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

DEADLINE_SECONDS = 100
NO_TIMESTAMP = -1


def _bytes(text):
    return None if text == "-" else bytes.fromhex(text)


def _hex(value):
    return "-" if value is None else value.hex()


def _headers(text):
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return [(bytes.fromhex(name).decode(), _bytes(value)) for name, _, value in pairs]


def _send(producer, topic, line, speaks):
    """Sends the record of a line; `speaks` is the broker version that the client assumes."""
    partition, _, timestamp, key, value, headers = line.rstrip("\n").split("\t")
    more = {}
    if speaks >= (0, 10):
        more["timestamp_ms"] = int(timestamp)
    if speaks >= (0, 11):
        more["headers"] = _headers(headers)
    return producer.send(topic, value=_bytes(value), key=_bytes(key), partition=int(partition), **more)


def produce(settings, lines, bootstrap, topic, codec, count):
    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=compression,
        acks="all",
        linger_ms=5,
        retries=5,
        max_in_flight_requests_per_connection=1,  # otherwise a retry changes the order
        **settings,
    )
    try:
        speaks = producer.config["api_version"]
        futures = [_send(producer, topic, next(lines), speaks) for _ in range(int(count))]
        for future in futures:
            future.get(DEADLINE_SECONDS)
    finally:
        producer.close(10)
    return len(futures)


def _offset_and_metadata(offset):
    """Returns an OffsetAndMetadata, which has more fields in newer releases."""
    return OffsetAndMetadata(offset, *{2: ("",), 3: ("", -1)}[len(OffsetAndMetadata._fields)])


def _commit(consumer, partitions):
    """Commits the positions of partitions."""
    consumer.commit({each: _offset_and_metadata(consumer.position(each)) for each in partitions})


def consume(settings, lines, bootstrap, topic, partitions, count, group):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        group_id=None if group == "-" else group,
        enable_auto_commit=False,
        **settings,
    )
    try:
        # before 0.9 a group has no coordinator that assigns partitions
        if group == "-" or consumer.config["api_version"] < (0, 9):
            consumer.assign([TopicPartition(topic, number) for number in range(int(partitions))])
        else:
            consumer.subscribe([topic])
        received, deadline = 0, time.monotonic() + DEADLINE_SECONDS
        while received < int(count):
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {received} of {count} records")
            for records in consumer.poll(timeout_ms=5000, max_records=2000).values():
                received += len(records)
                sys.stdout.writelines(map(_line, records))
        if group != "-":
            _commit(consumer, consumer.assignment())
    finally:
        consumer.close()
    return received


def _line(record):
    headers = ",".join(f"{name.encode().hex()}={_hex(value)}" for name, value in record.headers or ())
    timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
    fields = (record.partition, record.offset, timestamp, _hex(record.key), _hex(record.value), headers)
    return "\t".join(map(str, fields)) + "\n"


def _provider(token):
    try:
        from kafka.net.sasl.oauth import AbstractTokenProvider  # from 3.0 on
    except ImportError:
        from kafka.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        def token(self):
            return token

    return Provider()


def _settings(arguments):
    pairs = dict(argument.split("=", 1) for argument in arguments)
    if "api_version" in pairs:
        pairs["api_version"] = tuple(map(int, pairs["api_version"].split(".")))
    if "oauth_token" in pairs:
        pairs["sasl_oauth_token_provider"] = _provider(pairs.pop("oauth_token"))
    return pairs


def main():
    settings, lines = _settings(sys.argv[1:]), iter(sys.stdin)
    for line in lines:
        command, *arguments = line.rstrip("\n").split("\t")
        try:
            count = {"produce": produce, "consume": consume}[command](settings, lines, *arguments)
        except Exception as error:
            # the input may still contain records of the failed command, so the program ends
            print("error", repr(error), sep="\t", flush=True)
            raise
        print("ok", count, sep="\t", flush=True)


if __name__ == "__main__":
    main()
