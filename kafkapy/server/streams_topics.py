"""Creates the internal topics of Kafka Streams applications: repartition and changelog topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import DEFAULT, NewTopic
from kafkapy.coordinator.group.streams.topic_configuration import InternalTopic
from kafkapy.errors import Error
from kafkapy.server.forwarding_port import OnCreated
from kafkapy.types import Clock

# (topic, callback for the result): requests a topic from the controller, without waiting.
CreateTopic = Callable[[NewTopic, OnCreated], None]


class StreamsTopics:
    """The requests for internal topics that are being created, and the topics that could not be created.

    A topic is not requested again before its error has expired, so that not every heartbeat repeats the request.
    Only the reactor's thread may use it; results arrive on any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # topic -> the monotonic time in ms after which the request counts as lost
        self._requested: dict[str, int] = {}
        # topic -> its error, and the monotonic time in ms at which the error expires
        self._errors: dict[str, tuple[str, int]] = {}

    def request(self, topics: Mapping[str, InternalTopic], error_ttl_ms: int, create: CreateTopic) -> None:
        """Requests the creation, by `create`, of each topic that is neither being created nor has an error.

        Does not wait: `create` is called with the topic and a callback for its result. An error is returned by `errors`
        for `error_ttl_ms` milliseconds; a request without a result in this time is made again by a later call.
        """
        failed = self.errors(topics)
        now_ms = self._clock.monotonic_ms()
        for name, topic in topics.items():
            if name in failed or self._requested.get(name, 0) > now_ms:
                continue
            self._requested[name] = now_ms + error_ttl_ms
            wanted = NewTopic(name, topic.partitions, topic.replication_factor or DEFAULT, configs=dict(topic.configs))
            create(wanted, partial(self._finish, name, error_ttl_ms))

    def errors(self, names: Iterable[str]) -> dict[str, str]:
        """Returns {topic: text of the error} of those topics in `names` whose creation failed less than their
        `error_ttl_ms` ago."""
        now_ms = self._clock.monotonic_ms()
        for name, (_, deadline_ms) in list(self._errors.items()):
            if deadline_ms <= now_ms:
                self._errors.pop(name, None)
        return {name: self._errors[name][0] for name in names if name in self._errors}

    def _finish(self, name: str, error_ttl_ms: int, result: ErrorMessage | BaseException) -> None:
        """Records that the request for topic `name` has ended, and its error, if it failed, for `error_ttl_ms`.

        Any thread may call it.
        """
        self._requested.pop(name, None)
        if isinstance(result, BaseException):
            message = str(result)
        elif result.error:
            message = result.message or Error.of(result.error).message
        else:
            return
        self._errors[name] = (message, self._clock.monotonic_ms() + error_ttl_ms)
