"""The delta between two images, compared with the delta of the records between them."""

from __future__ import annotations

from kafkapy.controller.broker_registration import fence_broker
from kafkapy.controller.topics import delete_topics
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kafkapy.metadata.image_difference import delta_between
from kafkapy.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from tests.harness.metadata import bootstrapped, commit, replay, with_brokers, with_topic


def test_the_delta_names_every_change_and_leads_to_the_image():
    before = with_topic(with_topic(with_brokers(bootstrapped(), 1, 2, 3), "kept", 2), "deleted")
    before = replay(
        before, ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="kept", name="flush.ms", value="1")
    )
    deleted = before.topics.by_name["deleted"].topic_id
    after = commit(before, delete_topics(before, [deleted]))
    after = with_topic(after, "created", 3)
    after = commit(after, fence_broker(after, 3))
    after = replay(
        after,
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="kept", name="flush.ms", value=None),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="b", value="2"),
        FeatureLevelRecord(name="group.version", feature_level=0),
    )
    delta = delta_between(before, after)
    assert delta.to_image(after.offset, after.epoch) == after
    assert set(delta.deleted_topics) == {deleted}
    assert {topic.name for topic in delta.changed_topics.values()} == {"created"}
    assert delta.changed_brokers == {3}
    assert delta.changed_configs == {(TOPIC_RESOURCE, "kept"), (BROKER_RESOURCE, "")}
    assert delta.changed_features == {"group.version"}


def test_equal_images_have_no_difference():
    image = with_topic(with_brokers(bootstrapped(), 1), "a")
    delta, empty = delta_between(image, image), MetadataDelta(image)
    for name in ("changed_topics", "deleted_topics", "changed_brokers", "changed_configs", "changed_quotas"):
        assert getattr(delta, name) == getattr(empty, name)
