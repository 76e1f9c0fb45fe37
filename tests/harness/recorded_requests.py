"""The requests of a broker to other brokers, which a test answers itself."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkapy.protocol.api import ApiKey


class SentRequest(NamedTuple):
    """A request that waits for `on_answer(response, error)`."""

    broker_id: int
    body: Any
    key: ApiKey
    on_answer: Any


class RecordedRequests:
    """BrokerRequests without connections; `sent` are the requests that have no answer yet."""

    def __init__(self) -> None:
        self.sent: list[SentRequest] = []

    def send(self, broker_id: int, body: Any, key: ApiKey, on_answer: Any) -> None:
        self.sent.append(SentRequest(broker_id, body, key, on_answer))

    def take(self) -> list[SentRequest]:
        """Returns the requests and forgets them."""
        taken, self.sent = self.sent, []
        return taken

    def only(self, broker_id: int, key: ApiKey) -> SentRequest:
        """Returns the only request, which is for this broker, and forgets it."""
        (request,) = self.take()
        assert (request.broker_id, request.key) == (broker_id, key)
        return request
