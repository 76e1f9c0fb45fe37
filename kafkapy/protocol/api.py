"""Every API of the protocol: its key, its versions, its classes and the version of its headers.

The rows come from the definitions (`messages/api_table.py` is generated); classes are imported on first use.
"""

from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader
from kafkapy.errors import ProtocolViolation
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.api_table import ROWS, ApiKey
from kafkapy.protocol.messages.header import RequestHeader

__all__ = [
    "API_TABLE",
    "FORWARDABLE",
    "Api",
    "ApiKey",
    "decode_request_header",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
]


class Api(NamedTuple):
    """One API of the protocol, with all versions that kafkapy implements.

    `served_by` contains, for each release of Kafka, the versions that the release serves.
    """

    key: ApiKey
    name: str  # Kafka's, as in ProduceRequest without "Request"
    request_module: str  # below kafkapy.protocol.messages; the response is there too
    lowest: int
    highest: int
    flexible_from: int  # 32767: never
    listeners: tuple[str, ...]  # "broker", "controller", "zkBroker"; empty: no current release serves it
    latest_version_unstable: bool
    served_by: dict[str, tuple[int, int] | None]  # release -> (lowest, highest); None: known there but not served


API_TABLE: dict[ApiKey, Api] = {ApiKey(row[0]): Api(ApiKey(row[0]), *row[1:]) for row in ROWS}
# Used for the header of every request: a lookup here creates neither an enum member nor a tuple.
FLEXIBLE_FROM: dict[int, int] = {int(key): api.flexible_from for key, api in API_TABLE.items()}
HEADER_START = Struct(">hh")
# The APIs that a broker forwards to the active controller.
FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)


@cache
def request_class(key: ApiKey) -> type[Message]:
    return _message_class(key, "Request")


@cache
def response_class(key: ApiKey) -> type[Message]:
    return _message_class(key, "Response")


def _message_class(key: ApiKey, suffix: str) -> type[Message]:
    api = API_TABLE[key]
    module = import_module(f"kafkapy.protocol.messages.{api.request_module}")
    message_class: type[Message] = getattr(module, api.name + suffix)
    return message_class


def request_header_version(key: ApiKey, version: int) -> int:
    """Returns the version of the request header: 2 for a flexible version of the API, otherwise 1.

    The exception is ControlledShutdown 0, whose request has the header version 0, without a client id.
    """
    if version >= FLEXIBLE_FROM[key]:
        return 2
    return 0 if key == ApiKey.CONTROLLED_SHUTDOWN and version == 0 else 1


def response_header_version(key: ApiKey, version: int) -> int:
    """Returns the version of the response header: 1 for a flexible version of the API, otherwise 0.

    The exception is ApiVersions, whose responses always have 0, because the client does not know the broker's versions
    yet (KIP-511).
    """
    return 1 if version >= FLEXIBLE_FROM[key] and key != ApiKey.API_VERSIONS else 0


def decode_request_header(buffer: Any, pos: int = 0, end: int | None = None) -> tuple[RequestHeader, int]:
    """Returns the header of the request in `buffer[pos:end]`, and the position of the body in `buffer`.

    The buffer is read during the call only. Raises ProtocolViolation if the bytes are not a header or the API is
    unknown. Does not check the version, because only the dispatcher can refuse it in the way that the API requires.
    """
    reader = Reader(buffer, pos, end)
    if reader.remaining < HEADER_START.size:
        raise ProtocolViolation(f"request of {reader.remaining} bytes has no header")
    key, version = HEADER_START.unpack_from(buffer, pos)
    flexible_from = FLEXIBLE_FROM.get(key)
    if version < 0 or flexible_from is None:
        raise ProtocolViolation(f"request with api key {key}, version {version}")
    header_version = 2 if version >= flexible_from else 1 if version or key != ApiKey.CONTROLLED_SHUTDOWN else 0
    return RequestHeader.read(reader, header_version), reader.pos
