"""Snapshots on disk: durable once written."""

from kafkapy.metadata.image_writer import snapshot_records
from kafkapy.quorum.snapshot import list_snapshots, read_snapshot, snapshot_bytes, snapshot_name, write_snapshot
from kafkapy.types import OffsetAndEpoch
from tests.harness.metadata import bootstrapped
from tests.lossy_filesystem import LossyFilesystem

SNAPSHOT_ID = OffsetAndEpoch(7, 2)


def test_a_written_snapshot_survives_a_power_failure(tmp_path):
    directory, survived = tmp_path / "data", tmp_path / "survived"
    directory.mkdir()
    filesystem = LossyFilesystem(str(directory))
    content = snapshot_bytes(2, 0, 0, [], snapshot_records(bootstrapped()))
    write_snapshot(filesystem, str(directory), SNAPSHOT_ID, content)
    filesystem.pull_the_plug(str(survived))
    filesystem.close()
    assert list_snapshots(str(survived)) == [SNAPSHOT_ID]
    assert len(read_snapshot(str(survived / snapshot_name(SNAPSHOT_ID)), SNAPSHOT_ID).records) > 5
