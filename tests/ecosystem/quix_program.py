"""Counts words by key with Quix Streams; runs in an environment of its own, which has that library.

Arguments: bootstrap servers, guarantee (at-least-once or exactly-once), folder of the state. It reads `lines`, and
writes the running count of each word to `counts` and the counts of windows of ten seconds to `windows`.
"""

import sys
from datetime import timedelta

from quixstreams import Application, State


def count(word: str, state: State) -> int:
    number = int(state.get("count", 0)) + 1
    state.set("count", number)
    return number


def main() -> None:
    bootstrap, guarantee, state = sys.argv[1:]
    application = Application(
        broker_address=bootstrap,
        consumer_group="words",
        auto_offset_reset="earliest",
        processing_guarantee=guarantee,
        state_dir=state,
        commit_interval=0.5,
        producer_extra_config={"transaction.timeout.ms": 10000} if guarantee == "exactly-once" else {},
    )
    lines = application.topic("lines", value_deserializer="str", key_deserializer="str")
    counts = application.topic("counts", value_serializer="str", key_serializer="str")
    windows = application.topic("windows", value_serializer="json", key_serializer="str")
    words = application.dataframe(lines).apply(str.split, expand=True).group_by(lambda word: word, name="word")
    words.apply(count, stateful=True).apply(str).to_topic(counts)
    words.tumbling_window(timedelta(seconds=10)).count().final().to_topic(windows)
    application.run()


if __name__ == "__main__":
    main()
