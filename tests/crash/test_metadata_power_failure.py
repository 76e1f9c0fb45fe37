"""The power fails at every sync of a metadata log's life: acknowledged changes exist, and the log opens again."""

import pytest

from kafkapy.controller.producer_ids import allocate_producer_ids
from kafkapy.controller.topics import delete_topics
from kafkapy.errors import ApiError
from tests.harness.metadata import QuorumHarness
from tests.lossy_filesystem import LossyFilesystem, PowerFailure

SETTINGS = {"metadata_log_max_record_bytes_between_snapshots": "700", "metadata_max_retention_bytes": "3000"}


class Life:
    """Two runs of a quorum with topics, producer ids, snapshots and small segments; stores what was acknowledged."""

    def __init__(self, directory, filesystem):
        self.harness = QuorumHarness(directory, filesystem, **SETTINGS)
        self.topics = {}
        self.last_producer_id = -1
        self.epoch = 0

    def live(self):
        for run in range(2):
            self.harness.start()
            self.harness.quorum.log.segment_bytes = 900
            self.epoch = self.harness.loop.image.epoch
            for number in range(6):
                name = f"r{run}t{number}"
                self.harness.create_topic(name)
                self.topics[name] = self.harness.loop.image.topics.by_name[name].topic_id
                block = self.harness.loop.submit(lambda image: allocate_producer_ids(image, 1)).result()
                self.last_producer_id = block.first_producer_id + block.size - 1
            self.harness.stop()
            if self.harness.faults:
                raise self.harness.faults[0]

    def end(self):
        loop = getattr(self.harness, "loop", None)
        if loop is not None:
            loop.stop()


def syncs_of_a_life(tmp_path):
    directory = tmp_path / "whole"
    directory.mkdir()
    filesystem = LossyFilesystem(str(directory))
    life = Life(directory, filesystem)
    life.live()
    return filesystem.syncs


def check_moment(tmp_path, fail_at):
    directory = tmp_path / f"run{fail_at}"
    directory.mkdir()
    filesystem = LossyFilesystem(str(directory), fail_at=fail_at)
    life = Life(directory, filesystem)
    with pytest.raises((PowerFailure, ApiError)):
        life.live()
    life.end()
    survived = tmp_path / f"after{fail_at}"
    filesystem.pull_the_plug(str(survived))
    filesystem.close()
    harness = QuorumHarness(survived, **SETTINGS)
    image = harness.start().image
    found = {name: topic.topic_id for name, topic in image.topics.by_name.items()}
    assert life.topics.items() <= found.items()
    assert image.next_producer_id > life.last_producer_id
    assert image.epoch > life.epoch
    assert all(topic.partitions[0].leader == 1 for topic in image.topics.by_name.values())
    harness.stop()
    assert not harness.faults


def test_sampled_moments(tmp_path):
    total = syncs_of_a_life(tmp_path)
    assert total > 60
    for fail_at in range(0, total, total // 40):
        check_moment(tmp_path, fail_at)


def test_what_a_killed_broker_left_is_durable_before_anything_follows_from_it(tmp_path):
    """A broker appends the deletion of a topic and dies before the sync; the next broker renames the topic's directory.

    If the power failed then and the deletion were lost, the topic would exist without its records.
    """
    directory = tmp_path / "life"
    directory.mkdir()
    filesystem = LossyFilesystem(str(directory))
    harness = QuorumHarness(directory, filesystem)
    harness.start()
    harness.create_topic("t")
    filesystem.fail_at = filesystem.syncs
    deletion = harness.loop.submit(lambda image: delete_topics(image, list(image.topics.by_id)))
    assert isinstance(deletion.exception(), ApiError)
    harness.loop.stop()
    filesystem.fail_at = None
    assert "t" not in QuorumHarness(directory, filesystem).open().topics.by_name
    survived = tmp_path / "survived"
    filesystem.pull_the_plug(str(survived))
    filesystem.close()
    assert "t" not in QuorumHarness(survived).open().topics.by_name
