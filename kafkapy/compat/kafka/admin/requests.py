"""The requests of KafkaAdminClient, whose responses are returned as dictionaries of the protocol's fields.

kafka-python's administration client returns the fields of the responses. The modules of this package therefore send the
requests of kafkapy's admin client, with its look-ups and retries, but do not use its operations, which return objects.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import Target
from kafkapy.client.coordinator import GROUP
from kafkapy.compat.kafka.configuration import ClientSettings
from kafkapy.compat.kafka.errors import for_code, kafka_errors, translate, translated
from kafkapy.compat.kafka.structs import TopicPartition
from kafkapy.errors import ApiError
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition as ClientPartition

AT_CONTROLLER = "active controller"
_UUID_BYTES = 16
_TAGGED_FIELDS = "unknown_tagged_fields"


class AdminConnection(AdminLookups):
    """The connections of an administration client, and the look-ups of brokers, coordinators and leaders on them."""

    def __init__(self, settings: ClientSettings, *, in_flight_limit: int) -> None:
        self._environment = settings.environment
        super().__init__(settings.properties)
        self.network = self._network
        self.network.in_flight_limit = in_flight_limit

    def ask(self, key: ApiKey, build: Callable[[int], Message], node: int | str | None, timeout_s: float) -> Any:
        """Sends the request `build(version)` and returns the response. Blocks.

        `node` is the id of a broker, AT_CONTROLLER for the controller, or None for any broker. Raises ApiError if no
        response can be obtained, and RequestTimedOut; errors in the response are not raised.
        """
        target: Target
        if node is None:
            target = self._any_broker
        elif node == AT_CONTROLLER:
            target = self._controller
        else:
            target = self._broker(int(node))
            self._brokers(self._deadline_ms(timeout_s))
        return self._request(target, key, build, deadline_ms=self._deadline_ms(timeout_s))

    def broker_ids(self, timeout_s: float) -> list[int]:
        """Returns the ids of all brokers. Blocks."""
        return sorted(self._brokers(self._deadline_ms(timeout_s)))

    def coordinators(self, keys: Collection[str], key_type: int, timeout_s: float) -> dict[int, list[str]]:
        """Returns the ids of the coordinators, each with those of `keys` that it coordinates. Blocks.

        `key_type` is that of FindCoordinator: 0 for groups, 1 for transactional ids. Raises the error of the first key
        without a coordinator.
        """
        found = self._find_coordinators(key_type)(list(keys), self._deadline_ms(timeout_s))
        return _by_node(keys, found.nodes, found.errors)

    def leaders(self, partitions: Collection[Any], timeout_s: float) -> dict[int, list[TopicPartition]]:
        """Returns the ids of the leaders, each with those of `partitions` that it leads. Blocks.

        Raises the error of the first partition without a leader.
        """
        wanted = [ClientPartition(*each) for each in partitions]
        found = self._find_leaders(wanted, self._deadline_ms(timeout_s))
        by_node = _by_node(wanted, found.nodes, found.errors)
        return {node: [TopicPartition(*each) for each in led] for node, led in by_node.items()}


def _by_node(keys: Collection[Any], nodes: dict[Any, int], errors: dict[Any, ApiError]) -> dict[int, list[Any]]:
    for key in keys:
        if key in errors:
            raise ApiError(errors[key].error, f"{key}: {errors[key].message}")
    by_node: dict[int, list[Any]] = {}
    for key in keys:
        by_node.setdefault(nodes[key], []).append(key)
    return by_node


class AdminRequests:
    """The base class of the operations of KafkaAdminClient: it sends requests and raises kafka-python's exceptions."""

    config: dict[str, Any]
    _connection: AdminConnection

    def _ask(
        self,
        key: ApiKey,
        request: Message | Callable[[int], Message],
        node: int | str | None = None,
        timeout_ms: float | None = None,
    ) -> Any:
        build = request if callable(request) else lambda version: request
        with translated():
            return self._connection.ask(key, build, node, self._seconds(timeout_ms))

    def _timeout_ms(self, timeout_ms: float | None) -> int:
        return int(timeout_ms or self.config["request_timeout_ms"])

    def _seconds(self, timeout_ms: float | None = None) -> float:
        return self._timeout_ms(timeout_ms) / 1000

    def _broker_ids(self) -> list[int]:
        with translated():
            return self._connection.broker_ids(self._seconds())

    def _coordinators(self, keys: Collection[str], key_type: int = GROUP, node: int | None = None) -> Any:
        if node is not None:
            return {node: list(keys)}
        with translated():
            return self._connection.coordinators(keys, key_type, self._seconds())

    def _leaders(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        with translated():
            return self._connection.leaders(list(partitions), self._seconds())


def as_dict(message: Any) -> dict[str, Any]:
    """Returns the fields of a message as a dictionary.

    A topic id is the text of its UUID, or None if it is all zeros.
    """
    return {name: _plain(getattr(message, name)) for name in type(message).FIELDS if name != _TAGGED_FIELDS}


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return as_dict(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes) and len(value) == _UUID_BYTES:
        return str(uuid.UUID(bytes=value)) if any(value) else None
    return value


class ResponseFields:
    """A response, or a structure within one. A field is read by its name, `response.topics`, or by its index in the
    message, `response[0]`. Structures in fields are ResponseFields, too.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._names = [name for name in type(message).FIELDS if name != _TAGGED_FIELDS]

    def __getattr__(self, name: str) -> Any:
        return _with_fields(getattr(self._message, name))

    def __getitem__(self, key: int) -> Any:
        return getattr(self, self._names[key])

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._names)

    def __repr__(self) -> str:
        return repr(self._message)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as a dict; a structure within the response is a dict, too."""
        return as_dict(self._message)


def _with_fields(value: Any) -> Any:
    if isinstance(value, Message):
        return ResponseFields(value)
    return [_with_fields(each) for each in value] if isinstance(value, list | tuple) else value


def error_class(code: int) -> Any:
    """Returns the exception class of an error code; NoError for the code 0."""
    return for_code(code)


def raise_error(code: int, message: str | None) -> None:
    """Raises the exception of an error code; does nothing for the code 0."""
    if code:
        raise for_code(code)(message or for_code(code).description)


def error_text(code: int, message: str | None) -> str | None:
    """Returns the text of the exception for an error code and its message; None for the code 0."""
    return str(for_code(code)(message)) if code else None


NoError: Any = kafka_errors[0]
__all__ = [
    "AT_CONTROLLER",
    "AdminConnection",
    "AdminRequests",
    "NoError",
    "ResponseFields",
    "as_dict",
    "error_class",
    "error_text",
    "raise_error",
    "translate",
]
