"""Completes the responses to produce requests that waited for replicas in the gate and ended with an error.

The gate is the compiled code that serves usual Produce and Fetch requests. It wrote the response when it appended the
records. Python counts the errors, and adds what the gate does not know: the present leader of a partition (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.reactor.reactor import Connection
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceResponse
from kafkapy.server.leader_hints import LeaderHints
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.server.services import Services

CORRELATION_ID_BYTES = 4

CompleteAnswer = Callable[[Connection, int, bytes, Sequence[int]], Iterable[bytes]]


def failed_produce_answers(services: Services) -> CompleteAnswer:
    """Returns the function that completes a response of the compiled request path (the gate).

    Its arguments are the connection, the Produce version, the encoded response, and the error code of each partition
    in the order of the response. The function counts the errors, adds the current leader to each partition with the
    error NOT_LEADER_OR_FOLLOWER, and returns the parts of the response to send.
    """

    def complete(connection: Connection, version: int, answer: bytes, errors: Sequence[int]) -> Iterable[bytes]:
        header_size = CORRELATION_ID_BYTES + (version >= ProduceResponse.FLEXIBLE_VERSION)
        for error in errors:
            if error:
                services.request_errors.count(ApiKey.PRODUCE, error)
        if Error.NOT_LEADER_OR_FOLLOWER not in errors or version < ProduceResponse.FIRST_VERSION_WITH_CURRENT_LEADER:
            return [answer]
        response = ProduceResponse.decode(answer, version, header_size)
        add_leaders(response, version, services, connection.listener.name)
        chunks: Iterable[bytes] = response.encode_chunks(version, answer[:header_size])
        return chunks

    return complete


def add_leaders(response: ProduceResponse, version: int, services: Services, listener: str) -> None:
    """Adds the current leader to each partition of the response that has the error NOT_LEADER_OR_FOLLOWER."""
    hints = LeaderHints(services, listener)
    by_id = services.metadata.image.topics.by_id
    for topic in response.responses:
        name = topic.name
        if version >= ProduceResponse.FIRST_VERSION_WITH_TOPIC_ID:
            known = by_id.get(topic.topic_id)
            name = "" if known is None else known.name
        for partition in topic.partition_responses:
            if partition.error_code != Error.NOT_LEADER_OR_FOLLOWER:
                continue
            hint = hints.find(TopicPartition(name, partition.index))
            partition.current_leader = ProduceResponse.LeaderIdAndEpoch(
                leader_id=hint.leader_id, leader_epoch=hint.leader_epoch
            )
    response.node_endpoints = hints.endpoints(ProduceResponse.NodeEndpoint)
