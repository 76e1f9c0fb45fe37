"""The table of APIs, and the versions of request and response headers."""

import pytest

from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.api import (
    API_TABLE,
    ApiKey,
    decode_request_header,
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from kafkapy.protocol.messages.header import RequestHeader
from tests.reference.wire import facts


def test_every_api_key_of_kafka_is_there():
    keys = {message["api_key"] for message in facts().values() if message["kind"] == "request"}
    assert {int(key) for key in ApiKey} == keys == {int(key) for key in API_TABLE}
    assert len(API_TABLE) == 93


def test_rows_agree_with_the_classes():
    for key, api in API_TABLE.items():
        for message_class in (request_class(key), response_class(key)):
            assert message_class.API_KEY == key == api.key
            assert (api.lowest, api.highest) == (message_class.LOWEST_VERSION, message_class.HIGHEST_VERSION)
            assert api.flexible_from == message_class.FLEXIBLE_VERSION
        assert request_class(key).__name__ == f"{api.name}Request"
        assert key.name == api.request_module.upper()


def test_rows_have_names_versions_and_listeners_of_kafka():
    produce = API_TABLE[ApiKey.PRODUCE]
    assert (produce.name, produce.lowest, produce.highest, produce.flexible_from) == ("Produce", 0, 13, 9)
    assert produce.served_by == {"2.8.2": (0, 9), "3.9.1": (0, 11), "4.3.0": (3, 13)}
    assert produce.listeners == ("broker",)
    assert API_TABLE[ApiKey.LEADER_AND_ISR].served_by["4.3.0"] is None
    assert API_TABLE[ApiKey.ALTER_PARTITION].name == "AlterPartition"
    assert [api.name for api in API_TABLE.values() if api.latest_version_unstable] == ["InitProducerId"]


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
    ],
)
def test_headers_have_the_versions_of_kafka(key, version, request_header, response_header):
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


def test_request_header_of_each_version():
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="rdkafka")
    data = bytes.fromhex("0012 0003 00000007 0007") + b"rdkafka" + b"\x00"
    assert header.encode(2) == data
    assert decode_request_header(data + b"body") == (header, len(data))
    assert decode_request_header(b"####" + data + b"body", 4) == (header, 4 + len(data))

    old = RequestHeader(request_api_key=3, request_api_version=1, correlation_id=-1, client_id=None)
    assert decode_request_header(bytes.fromhex("0003 0001 ffffffff ffff")) == (old, 10)

    oldest = RequestHeader(request_api_key=7, request_api_version=0, correlation_id=5, client_id="")
    decoded, position = decode_request_header(bytes.fromhex("0007 0000 00000005 00000001"))
    assert (decoded.correlation_id, position) == (oldest.correlation_id, 8)


def test_unknown_version_of_a_known_api_still_has_a_header():
    header, _ = decode_request_header(bytes.fromhex("0012 7fff 00000007 ffff 00"))
    assert header.request_api_version == 0x7FFF


@pytest.mark.parametrize(
    "data",
    ["", "0000", "0000 00", "0000 0009 0000", "0000 0009 00000001 0005 61", "0000 ffff 00000001 ffff",
     "ffff 0000 00000001 ffff", "005d 0000 00000001 ffff", "0000 0009 00000001 0002 c328 00"],
)  # fmt: skip
def test_what_is_no_header(data):
    with pytest.raises(ProtocolViolation):
        decode_request_header(bytes.fromhex(data))
