"""Messages refuse and drop values as Kafka's own messages do; defaults, equality and printing."""

import pytest

from kafkapy._core.bytes.wire import AbsentFieldError, EncodeError
from kafkapy.protocol.messages.coordinator_records import ConsumerGroupMemberMetadataValue
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.metadata_records import ConfigRecord, UserScramCredentialRecord
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest


def test_fields_have_the_defaults_of_kafka():
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.rack_id, request.cluster_id) == (-1, 0x7FFFFFFF, "", None)
    assert request.topics == [] == FetchRequest().topics
    assert request.topics is not FetchRequest().topics
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert FetchRequest.FetchPartition().high_watermark == 2**63 - 1
    assert FetchResponse.PartitionData().aborted_transactions == []
    assert MetadataRequest(topics=None).topics is None


def test_classes_know_their_key_and_versions():
    assert (ProduceRequest.API_KEY, ProduceRequest.LOWEST_VERSION, ProduceRequest.HIGHEST_VERSION) == (0, 0, 13)
    assert (ProduceRequest.FLEXIBLE_VERSION, HeartbeatRequest.FLEXIBLE_VERSION) == (9, 4)


def test_value_that_the_version_cannot_carry():
    with pytest.raises(AbsentFieldError, match=r"^HeartbeatRequest version 0 has no field group_instance_id"):
        HeartbeatRequest(group_instance_id="i").encode(0)
    with pytest.raises(ValueError, match="coordinator_keys"):
        FindCoordinatorRequest(coordinator_keys=["a"]).encode(3)
    with pytest.raises(ValueError, match="replica_state"):
        FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1)).encode(14)
    with pytest.raises(ValueError, match="replica_id"):
        FetchRequest(replica_id=1).encode(15)
    with pytest.raises(ValueError, match="unknown_tagged_fields"):
        HeartbeatRequest(unknown_tagged_fields=((9, b""),)).encode(3)


def test_ignorable_value_is_dropped():
    assert FetchRequest(session_id=5, rack_id="r").encode(4) == FetchRequest().encode(4)
    topic = ProduceRequest.TopicProduceData(name="dropped by version 13", topic_id=bytes(range(16)))
    assert ProduceRequest.decode(ProduceRequest(topic_data=[topic]).encode(13), 13).topic_data[0].name == ""


def test_null_that_is_not_allowed():
    with pytest.raises(EncodeError, match="HeartbeatRequest version 4 cannot be written: null"):
        HeartbeatRequest(group_id=None).encode(4)
    with pytest.raises(EncodeError, match="null"):
        MetadataRequest(topics=None).encode(0)
    assert MetadataRequest(topics=None).encode(1) == bytes.fromhex("ffffffff")
    with pytest.raises(EncodeError):
        ProduceRequest(topic_data=None).encode(3)


def test_value_of_the_wrong_kind_or_out_of_range():
    with pytest.raises(ValueError, match="HeartbeatRequest version 4"):
        HeartbeatRequest(generation_id=2**31).encode(4)
    with pytest.raises(ValueError, match="HeartbeatRequest version 4"):
        HeartbeatRequest(group_id=5).encode(4)
    with pytest.raises(OverflowError):
        ProduceRequest(timeout_ms=2**31)
    with pytest.raises(ValueError, match="ProduceRequest version 3"):
        ProduceRequest(topic_data=[HeartbeatRequest()]).encode(3)


def test_tagged_struct_is_written_only_if_set():
    partition = ProduceResponse.PartitionProduceResponse(index=1)
    plain = ProduceResponse(
        responses=[ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition])]
    ).encode(10)
    partition.current_leader.leader_id = 3
    led = ProduceResponse(
        responses=[ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition])]
    ).encode(10)
    assert len(led) == len(plain) + 2 + 9
    assert ProduceResponse.decode(led, 10).responses[0].partition_responses[0].current_leader.leader_id == 3


def test_nullable_tagged_struct():
    """The default is an empty struct: null is written as one byte."""
    unset = ConsumerGroupMemberMetadataValue()
    assert unset.classic_member_metadata == ConsumerGroupMemberMetadataValue.ClassicMemberMetadata()
    assert unset.encode(0).endswith(b"\x00")
    null = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert null.encode(0).endswith(bytes.fromhex("01 00 01 00"))
    assert ConsumerGroupMemberMetadataValue.decode(null.encode(0), 0) == null


def test_unknown_tags_stand_in_their_order():
    request = FetchRequest(cluster_id="c", unknown_tagged_fields=((1, b"one"), (7, b"seven")))
    data = request.encode(12)
    assert data.endswith(bytes.fromhex("03 00 02 02 63 01 03") + b"one" + bytes.fromhex("07 05") + b"seven")
    assert FetchRequest.decode(data, 12) == request
    with pytest.raises(EncodeError, match="tag 1 is a known field"):
        request.encode(15)


def test_equality_and_printing():
    assert HeartbeatRequest(group_id="g") == HeartbeatRequest(group_id="g")
    assert HeartbeatRequest(group_id="g") != HeartbeatRequest(group_id="h")
    assert HeartbeatRequest() != "text"
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=0)
    assert repr(HeartbeatRequest(group_id="g", unknown_tagged_fields=((1, b""),))) == (
        "HeartbeatRequest(group_id='g', generation_id=0, member_id='', group_instance_id=None, "
        "unknown_tagged_fields=((1, b''),))"
    )


def test_decode_in_the_middle_of_a_buffer():
    data = HeartbeatRequest(group_id="g").encode(4)
    buffer = memoryview(b"head" + data + b"tail")
    assert HeartbeatRequest.decode(buffer, 4, 4, 4 + len(data)) == HeartbeatRequest(group_id="g")


def test_encode_chunks_begins_with_the_prefix():
    records = memoryview(b"r" * 2000)
    partition = FetchResponse.PartitionData(partition_index=0, records=records)
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])])
    chunks = response.encode_chunks(4, b"header")
    assert chunks[0].startswith(b"header")
    assert chunks[1] is records
    assert b"".join(chunks) == b"header" + response.encode(4)


def test_the_representation_hides_secrets():
    shown = [
        SaslAuthenticateRequest(auth_bytes=b"secret"),
        RenewDelegationTokenRequest(hmac=b"secret", renew_period_ms=7),
        ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="secret"),
        IncrementalAlterConfigsRequest.AlterableConfig(name="ssl.key.password", config_operation=0, value="secret"),
        UserScramCredentialRecord(name="ann", mechanism=1, salt=b"", stored_key=b"secret", server_key=b"secret"),
    ]
    text = repr(shown)
    assert "secret" not in text
    assert "hmac=[hidden], renew_period_ms=7" in text
    assert "server_key=[hidden]" in text
    assert "auth_bytes=b''" in repr(SaslAuthenticateRequest(auth_bytes=b""))
