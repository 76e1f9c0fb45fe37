"""Blocks of producer ids never overlap."""

import pytest

from kafkapy.controller.producer_ids import MAX_PRODUCER_ID, allocate_producer_ids
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.record_frame import encode_metadata_record
from tests.harness.metadata import bootstrapped, commit, with_brokers


def test_blocks_follow_each_other():
    image = with_brokers(bootstrapped(), 1)
    starts = []
    for _ in range(3):
        result = allocate_producer_ids(image, 1)
        starts.append(result.response)
        image = commit(image, result)
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert image.next_producer_id == 3000


def test_a_block_is_recorded_as_apache_kafka_records_it():
    image = with_brokers(bootstrapped(), 1)
    image = image._replace(brokers={1: image.brokers[1]._replace(epoch=11)})
    record = allocate_producer_ids(image, 1).records[0]
    assert encode_metadata_record(*record).hex() == "010f0000000001000000000000000b00000000000003e800"


def test_unknown_brokers_and_exhausted_ids_are_refused():
    image = with_brokers(bootstrapped(), 1)
    for broker_id, next_id, error in (
        (2, 0, Error.BROKER_ID_NOT_REGISTERED),
        (1, MAX_PRODUCER_ID - 5, Error.UNKNOWN_SERVER_ERROR),
    ):
        with pytest.raises(ApiError) as raised:
            allocate_producer_ids(image._replace(next_producer_id=next_id), broker_id)
        assert raised.value.error is error


def test_a_remote_broker_needs_its_current_epoch():
    image = with_brokers(bootstrapped(), 1)
    assert allocate_producer_ids(image, 1, image.brokers[1].epoch).response == (0, 1000)
    for broker_id, epoch in ((1, image.brokers[1].epoch - 1), (2, 0)):
        with pytest.raises(ApiError) as raised:
            allocate_producer_ids(image, broker_id, epoch)
        assert raised.value.error is Error.STALE_BROKER_EPOCH
