"""The outcomes of the requests that a test sent by a channel, and the request that the tests send."""

from __future__ import annotations

from queue import Queue
from typing import Any

from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse

WAIT_S = 20
KEY = ApiKey.ALLOCATE_PRODUCER_IDS


class Outcomes(Queue[Any]):
    """The results of requests in the order in which their callbacks were called: a response or an error."""

    def callback(self, response: Any, version: int, error: Exception | None) -> None:
        self.put(error if response is None else response)

    def next_response(self) -> Any:
        found = self.get(timeout=WAIT_S)
        assert not isinstance(found, Exception), found
        return found

    def next_error(self) -> Error:
        found = self.get(timeout=WAIT_S)
        assert isinstance(found, ApiError), found
        return found.error


def echo(request: Any, version: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=request.broker_id)
