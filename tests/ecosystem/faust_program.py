"""Counts words with faust; runs in an environment of its own, which has that library.

Arguments: bootstrap servers, folder of the data. It reads `lines` and writes the running count of each word to
`counts`; its table's changelog is a topic of its own.
"""

import sys

import faust

bootstrap, directory = sys.argv[1:]
app = faust.App(
    "words",
    broker=f"kafka://{bootstrap}",
    store="memory://",
    topic_partitions=1,
    topic_replication_factor=1,
    stream_wait_empty=False,
    broker_commit_interval=0.5,
    consumer_auto_offset_reset="earliest",
    web_enabled=False,
    datadir=directory,
)
lines = app.topic("lines", value_type=bytes, value_serializer="raw")
counts = app.topic("counts", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
table = app.Table("table", key_type=str, value_type=int, default=int)


@app.agent(lines)
async def count(stream: faust.StreamT[bytes]) -> None:
    async for line in stream:
        for word in line.decode().split():
            table[word] += 1
            await counts.send(key=word.encode(), value=str(table[word]).encode())


if __name__ == "__main__":
    faust.Worker(app, loglevel="INFO").execute_from_commandline()
