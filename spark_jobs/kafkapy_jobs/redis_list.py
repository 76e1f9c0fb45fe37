"""The blacklist in Redis: a key for each address, which Redis removes when the address's entry ends."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame

from kafkapy_jobs.arguments import fail

PREFIX = "blacklist:"
# Commands of one request to the server.
_AT_ONCE = 1000
_TIMEOUT_S = 10.0


def connect(url: str) -> Any:
    """Returns a client of the server at `url`, such as redis://localhost:6379/0.

    Ends the program with one line if the client's library is missing, or if the server does not answer.
    """
    try:
        import redis  # only this sink needs it
    except ModuleNotFoundError:
        fail("--sink redis needs the library redis: pip install 'kafkapy[redis]'")
    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=_TIMEOUT_S, socket_timeout=_TIMEOUT_S)
        client.ping()
    except (ValueError, redis.RedisError) as error:
        fail(f"--redis-url {without_password(url)}: {error}")
    return client


def without_password(url: str) -> str:
    """Returns the URL without user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class RedisList:
    """The sink that writes the entries of the blacklist to Redis. Not thread-safe.

    The time at which an entry expires comes from its row, so that a micro-batch that Spark repeats stores the same keys
    with the same times. An entry that has expired already is not stored.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __call__(self, entries: DataFrame, batch_id: int) -> None:
        commands = self._client.pipeline(transaction=False)
        for row in entries.where("is_listed").toLocalIterator():
            commands.set(PREFIX + row["ip"], row["requests"], pxat=int(row["until"].timestamp() * 1000))
            if len(commands) == _AT_ONCE:
                commands.execute()
        commands.execute()
