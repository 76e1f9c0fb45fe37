"""The blacklist in a Redis server: keys with the entries' ends, and errors before a session starts."""

from __future__ import annotations

import datetime
import time

import pytest
import redis

import ip_blacklist
from kafkapy_jobs.redis_list import RedisList, connect, without_password
from tests.redis_server import RedisServer

ENTRY = "ip string, is_listed boolean, requests long, time timestamp, until timestamp"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as made:
        yield made


def test_entries_are_keys_that_end_with_them(spark, server):
    now = datetime.datetime.now(datetime.UTC)
    later, past = now + datetime.timedelta(hours=1), now - datetime.timedelta(hours=1)
    entries = [
        ("10.0.0.1", True, 61, now, later),
        ("10.0.0.2", True, 62, past, past),
        ("10.0.0.3", False, None, now, None),
    ]
    sink = RedisList(connect(server.url))
    for batch in (0, 0):  # Spark may repeat a micro-batch
        sink(spark.createDataFrame(entries, ENTRY), batch)
    client = redis.Redis.from_url(server.url)
    assert client.keys("*") == [b"blacklist:10.0.0.1"]
    assert client.get("blacklist:10.0.0.1") == b"61"
    assert client.pexpiretime("blacklist:10.0.0.1") == int(later.timestamp() * 1000)


def test_a_stream_fills_the_list(spark, topics, server, tmp_path):
    topic = topics.create()
    topics.fill(topic, [b"10.1.1.1", b"10.1.1.1", b"10.1.1.2"], timestamp=int(time.time() * 1000))
    words = ["--bootstrap-server", topics.bootstrap, "--topic", topic, "--trigger", "available-now", "--threshold", "2"]
    words += ["--sink", "redis", "--redis-url", server.url, "--checkpoint", f"{tmp_path}/checkpoint"]
    ip_blacklist.main(words)
    assert redis.Redis.from_url(server.url).keys("blacklist:10.1.*") == [b"blacklist:10.1.1.1"]


def test_a_server_that_does_not_answer_is_an_error_in_one_line(capsys):
    with pytest.raises(SystemExit):
        connect("redis://user:secret@127.0.0.1:1/0")
    error = capsys.readouterr().err
    assert error.startswith("--redis-url redis://127.0.0.1:1/0: ") and error.count("\n") == 1
    assert "secret" not in error
    with pytest.raises(SystemExit):
        connect("localhost")
    assert capsys.readouterr().err.startswith("--redis-url localhost: ")


def test_the_password_is_not_shown():
    assert without_password("redis://:secret@host:6379/1") == "redis://host:6379/1"
