"""Reprocessing: records are sent again once, as they are or changed, from a time."""

from __future__ import annotations

import pytest

import reprocess
from tests.spark.topic_content import read_topic
from tests.spark.topic_records import START

START_MS = int(START.timestamp() * 1000)


@pytest.fixture
def run(spark, topics, tmp_path):
    """Returns a function that sends a topic's records to another topic, with further options of the job."""

    def job(topic, output, *words):
        common = ["--bootstrap-server", topics.bootstrap, "--topic", topic, "--output-topic", output]
        reprocess.main([*common, "--checkpoint", f"{tmp_path}/checkpoint", "--shuffle-partitions", "1", *words])

    return job


def test_records_are_sent_again_once_as_they_are(topics, run):
    topic, output = topics.create(), topics.create()
    topics.fill(topic, [b"\xff\x00", None], key=b"k", headers=[("error", b"x")])
    run(topic, output)
    topics.fill(topic, [b"later"])
    run(topic, output)
    run(topic, output)
    origin = [{"error": b"x", "reprocessed-from": f"{topic}-0-{offset}".encode()} for offset in (0, 1)]
    assert [(key, value, dict(headers)) for key, value, headers in read_topic(topics.bootstrap, output)] == [
        (b"k", b"\xff\x00", origin[0]),
        (b"k", None, origin[1]),
        (None, b"later", {"reprocessed-from": f"{topic}-0-2".encode()}),
    ]


def test_records_of_a_time_are_chosen_and_changed(topics, run):
    topic, output, letters = topics.create(), topics.create(), topics.create()
    for second in range(4):
        topics.fill(topic, [f'{{"n":"{second}","keep":true}}'.encode()], timestamp=START_MS + second * 1000)
    topics.fill(topic, [b"{}", b'{"n":"9","keep":true}'], timestamp=START_MS + 2000)
    run(
        topic, output, "--from", "2017-05-01T20:00:01+08:00", "--until", "2017-05-01T20:00:03+08:00",
        "--where", "offset != 5", "--new-key", "get_json_object(text, '$.n')",
        "--new-value", "get_json_object(text, '$.n') || '!'", "--dead-letter-topic", letters,
    )  # fmt: skip
    assert [(key, value) for key, value, _ in read_topic(topics.bootstrap, output)] == [(b"1", b"1!"), (b"2", b"2!")]
    ((_, value, headers),) = read_topic(topics.bootstrap, letters)
    assert (value, headers["error"]) == (b"{}", b"an expression has no result")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--from", "2017-05-01"], "'2017-05-01' is not a time such as"),
        ([], "--sink topic needs --output-topic"),
        (
            ["--output-topic", "words-search", "--checkpoint", "/c", "--trigger", "1 s"],
            "would read what it has written",
        ),
    ],
)
def test_wrong_options_are_refused(capsys, words, error):
    with pytest.raises(SystemExit):
        reprocess.main(words)
    assert error in capsys.readouterr().err
