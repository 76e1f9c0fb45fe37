"""The topics of a retry chain, and the decision where a record goes after a failed attempt. This module has no state
and does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kafkapy.client.reliable.chain_headers import ChainState
from kafkapy.client.reliable.records import Failure
from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

LONGEST_TOPIC_NAME = 249
MOST_RETRIES = 32


class Step(NamedTuple):
    """The next topic of a record in its retry chain. `state` is the record's position in the chain, which is written to
    the topic with the record.

    `is_dead` is True if the topic is that of the dead letters.
    """

    topic: str
    state: ChainState
    is_dead: bool


class RetryPlan:
    """The retry topics of some topics: `T.retry.1` to `T.retry.n`, one for each delay, and `T.dlt`. The object does not
    change after its construction.

    `delays_ms` are the delays before the second attempt, the third and so on. Raises ConfigError for delays or names
    that cannot be used.
    """

    def __init__(self, topics: Collection[str], delays_ms: Sequence[int]) -> None:
        if not topics:
            raise ConfigError("At least one topic is required")
        if len(delays_ms) > MOST_RETRIES or any(delay < 0 for delay in delays_ms):
            raise ConfigError(
                f"The delays must be at most {MOST_RETRIES} times that are not negative: {list(delays_ms)}"
            )
        self.topics = tuple(dict.fromkeys(topics))
        self.delays_ms = tuple(delays_ms)
        self._places = {name: place for topic in self.topics for place, name in enumerate(self._chain(topic))}
        derived = [name for topic in self.topics for name in (*self._chain(topic)[1:], self.dead_letters(topic))]
        for name in derived:
            if len(name) > LONGEST_TOPIC_NAME:
                raise ConfigError(f"The name {name} of a retry topic exceeds {LONGEST_TOPIC_NAME} characters")
        loops = set(derived) & set(self.topics)
        if loops:
            raise ConfigError(
                f"{sorted(loops)[0]} is a topic of the retry chain itself, and would be retried in circles"
            )

    def _chain(self, topic: str) -> list[str]:
        return [topic, *(f"{topic}.retry.{level}" for level in range(1, len(self.delays_ms) + 1))]

    def dead_letters(self, topic: str) -> str:
        """Returns the name of the topic with the dead letters of `topic`."""
        return f"{topic}.dlt"

    def retry_topic(self, topic: str, level: int) -> str:
        """Returns the name of the retry topic of a level, from 1 on; the topic itself for level 0."""
        return f"{topic}.retry.{level}" if level else topic

    def chains(self) -> Iterator[tuple[str, list[str], str]]:
        """Yields each topic, its retry topics, and the topic of its dead letters."""
        for topic in self.topics:
            yield topic, self._chain(topic)[1:], self.dead_letters(topic)

    def all_read(self) -> list[str]:
        """Returns the topics that a processor reads: the original ones and all retry topics."""
        return list(self._places)

    def place_of(self, topic: str) -> tuple[str, int]:
        """Returns the original topic and the level (0 for the original topic, n for its n-th retry topic) of a topic
        that is read.
        """
        level = self._places[topic]
        return (topic if level == 0 else topic[: topic.rindex(".retry.")]), level

    def after_failure(self, base: str, level: int, state: ChainState, error: BaseException, now_ms: int) -> Step:
        """Returns the next step of a record whose attempt has failed: the next retry topic, or the topic of the dead
        letters.

        The step also has the record's new position in the retry chain. `base` is the original topic, `level` is the
        level of the topic from which the record was read, and `state` is the record's position before the failure. The
        record becomes a dead letter after an error of the class Failure, or if there is no further retry topic.
        `now_ms` is in ms since 1970.
        """
        attempts = state.attempts + 1
        if level >= len(self.delays_ms) or isinstance(error, Failure):
            return Step(self.dead_letters(base), state._replace(attempts=attempts, level=level, due_ms=0), is_dead=True)
        moved = state._replace(attempts=attempts, level=level + 1, due_ms=now_ms + self.delays_ms[level])
        return Step(self.retry_topic(base, level + 1), moved, is_dead=False)

    def behind_its_key(self, base: str, level: int, state: ChainState) -> Step:
        """Returns the next step of a record that has to wait because an earlier record with its key waits in a retry
        topic.

        The step has the next retry topic and the record's new position in the retry chain. The record is not delayed in
        this topic. `base` is the original topic, `level` is the level of the topic from which the record was read, and
        `state` is the record's position so far.
        """
        return Step(self.retry_topic(base, level + 1), state._replace(level=level + 1, due_ms=0), is_dead=False)
