"""Formatting like `format --standalone`, and the identity of formatted directories."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.quorum.format_directory import format_directories
from kafkapy.quorum.snapshot import read_snapshot
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.meta_properties import read_meta_properties
from kafkapy.types import OffsetAndEpoch
from tests.mock_clock import MockClock

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def format_all(*directories, metadata=None, **options):
    paths = [str(each) for each in directories]
    return format_directories(paths, str(metadata or directories[0]), 1, Filesystem(), MockClock(), **options)


def test_formatting_writes_identity_features_and_voter(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    formatted = format_all(a, b)
    assert len({properties.cluster_id for properties in formatted.values()}) == 1
    assert formatted[str(a)].directory_id != formatted[str(b)].directory_id
    for directory in (a, b):
        assert read_meta_properties(str(directory)) == formatted[str(directory)]
        bootstrap = read_snapshot(str(directory / "bootstrap.checkpoint"), OffsetAndEpoch(0, 0))
        assert [(each.name, each.feature_level) for each in bootstrap.records] == [
            ("metadata.version", 30), ("eligible.leader.replicas.version", 1), ("group.version", 1),
            ("share.version", 1), ("streams.version", 1), ("transaction.version", 2),
        ]  # fmt: skip
    snapshot = read_snapshot(str(a / CHECKPOINT), OffsetAndEpoch(0, 0))
    version, voters = snapshot.control_messages
    assert version.kraft_version == 1
    assert [(voter.voter_id, voter.voter_directory_id) for voter in voters.voters] == [
        (1, formatted[str(a)].directory_id)
    ]
    assert (a / CHECKPOINT).stat().st_mode & 0o777 == 0o400
    assert not (b / "__cluster_metadata-0").exists()


def test_formatted_directories_stay_and_give_the_cluster_id(tmp_path):
    first = format_all(tmp_path / "a")
    assert format_all(tmp_path / "a") == first
    grown = format_all(tmp_path / "a", tmp_path / "b")
    assert grown[str(tmp_path / "b")].cluster_id == first[str(tmp_path / "a")].cluster_id
    assert not (tmp_path / "b" / CHECKPOINT).exists()


def test_refusals_name_both_sides(tmp_path):
    cluster = format_all(tmp_path / "a")[str(tmp_path / "a")].cluster_id
    with pytest.raises(ConfigError, match=f"cluster.id={cluster}, not xyz"):
        format_all(tmp_path / "a", cluster_id="xyz")
    with pytest.raises(ConfigError, match=r"node\.id=1, the configuration node\.id=2"):
        format_directories([str(tmp_path / "a")], str(tmp_path / "a"), 2, Filesystem(), MockClock())
    format_all(tmp_path / "c")
    with pytest.raises(ConfigError, match=f"{cluster} elsewhere"):
        format_all(tmp_path / "a", tmp_path / "c")
    with pytest.raises(ConfigError, match="is configured for the metadata log"):
        format_all(tmp_path / "a", tmp_path / "new", metadata=tmp_path / "new")
    assert not (tmp_path / "new" / "meta.properties").exists()


def test_a_zookeeper_era_directory_is_refused(tmp_path):
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    with pytest.raises(ConfigError, match="ZooKeeper"):
        format_all(tmp_path)
