"""A snapshot's records rebuild the image, in Kafka's order and in the versions of its metadata.version."""

import pytest

from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.metadata.image_writer import snapshot_records
from kafkapy.protocol.messages import metadata_records as records
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record
from tests.harness.metadata import bootstrapped, replay, with_brokers, with_topic

ORDER = [
    "FeatureLevelRecord", "RegisterBrokerRecord", "RegisterControllerRecord", "TopicRecord", "ConfigRecord",
    "ClientQuotaRecord", "ProducerIdsRecord", "AccessControlEntryRecord", "UserScramCredentialRecord",
    "DelegationTokenRecord",
]  # fmt: skip


def full_image(metadata_version=30):
    image = with_brokers(bootstrapped(metadata_version, elr=metadata_version >= 23), 1, 2)
    image = with_topic(with_topic(image, "a", 2, 2), "b")
    a = image.topics.by_name["a"].topic_id
    entity = [records.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    return replay(
        image,
        records.RegisterControllerRecord(controller_id=1, incarnation_id=a, end_points=[], features=[]),
        records.PartitionChangeRecord(
            partition_id=1, topic_id=a, isr=[1], leader=1, leader_recovery_state=1,
            eligible_leader_replicas=[2] if metadata_version >= 23 else None,
            last_known_elr=[2] if metadata_version >= 23 else None,
        ),
        records.ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="5"),
        records.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1.5, remove=False),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=2000),
        records.AccessControlEntryRecord(id=a, resource_name="a", principal="User:x", host="*"),
        records.UserScramCredentialRecord(
            name="u", mechanism=2, salt=b"1", stored_key=b"2", server_key=b"3", iterations=8192
        ),
        records.DelegationTokenRecord(owner="o", requester="r", renewers=["x"], token_id="t"),
    )  # fmt: skip


@pytest.mark.parametrize("metadata_version", [17, 21, 23, 30])
def test_rebuilds_the_image(metadata_version):
    image = full_image(metadata_version)
    encoded = [encode_metadata_record(message, version) for message, version in snapshot_records(image)]
    rebuilt = replay(EMPTY_IMAGE, *(decode_metadata_record(value) for value in encoded))
    if metadata_version < 30:
        image = image._replace(
            brokers={key: broker._replace(cordoned_log_dirs=None) for key, broker in image.brokers.items()}
        )
    assert rebuilt._replace(offset=0) == image._replace(offset=0)


def test_records_are_in_the_order_of_apache_kafka():
    kinds = dict.fromkeys(type(message).__name__ for message, _ in snapshot_records(full_image()))
    assert [kind for kind in kinds if kind != "PartitionRecord"] == ORDER


@pytest.mark.parametrize(("metadata_version", "broker", "partition"), [(30, 4, 2), (26, 3, 2), (21, 3, 1), (14, 2, 0)])
def test_record_versions_follow_the_finalized_level(metadata_version, broker, partition):
    versions = {type(message).__name__: version for message, version in snapshot_records(full_image(metadata_version))}
    assert (versions["RegisterBrokerRecord"], versions["PartitionRecord"]) == (broker, partition)
    assert ("RegisterControllerRecord" in versions) == (metadata_version >= 15)
