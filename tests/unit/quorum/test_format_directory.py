"""Formatted directories: what is in them, and their identity."""

import pytest

from kafkapy.errors import ConfigError
from kafkapy.quorum.format_directory import check_formatted, format_directories, format_node
from kafkapy.quorum.snapshot import read_snapshot
from kafkapy.quorum.voters import ControllerListener, Voter, VoterSet
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.meta_properties import read_meta_properties
from kafkapy.types import OffsetAndEpoch, random_uuid
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
    with pytest.raises(
        ConfigError, match=rf"^Invalid cluster\.id in: .*/a/meta\.properties\. Expected xyz, but read {cluster}$"
    ):
        format_all(tmp_path / "a", cluster_id="xyz")
    with pytest.raises(
        ConfigError, match=r"^Stored node id 1 doesn't match previous node id 2 in .*/a/meta.properties"
    ):
        format_directories([str(tmp_path / "a")], str(tmp_path / "a"), 2, Filesystem(), MockClock())
    format_all(tmp_path / "c")
    with pytest.raises(ConfigError, match=f"Expected {cluster}, but read "):
        format_all(tmp_path / "a", tmp_path / "c")
    with pytest.raises(ConfigError, match="is configured for the metadata log"):
        format_all(tmp_path / "a", tmp_path / "new", metadata=tmp_path / "new")
    assert not (tmp_path / "new" / "meta.properties").exists()


def test_a_zookeeper_era_directory_is_refused(tmp_path):
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    with pytest.raises(ConfigError, match="ZooKeeper"):
        format_all(tmp_path)


VOTERS = VoterSet(
    Voter(node_id, random_uuid(), (ControllerListener("CONTROLLER", f"host-{node_id}", 9093),), 0, 1)
    for node_id in (3, 1, 2)
)


def format_one(directory, node_id, **options):
    return format_node([str(directory)], str(directory), node_id, Filesystem(), MockClock(), **options)[str(directory)]


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_every_initial_voter_is_in_the_snapshot_of_each_node(tmp_path, node_id):
    formatted = format_one(tmp_path, node_id, voters=VOTERS)
    assert formatted.directory_id == VOTERS.get(node_id).directory_id
    version, voters = read_snapshot(str(tmp_path / CHECKPOINT), OffsetAndEpoch(0, 0)).control_messages
    assert version.kraft_version == 1
    assert [(each.voter_id, each.endpoints[0].host) for each in voters.voters] == [
        (1, "host-1"),
        (2, "host-2"),
        (3, "host-3"),
    ]


def test_a_node_that_is_no_initial_voter_has_a_directory_id_of_its_own(tmp_path):
    formatted = format_one(tmp_path, 4, voters=VOTERS)
    assert formatted.directory_id not in {voter.directory_id for voter in VOTERS}
    assert (tmp_path / CHECKPOINT).exists()


def test_without_voters_there_is_no_snapshot(tmp_path):
    assert format_one(tmp_path, 4, voters=None).directory_id is not None
    assert (tmp_path / "bootstrap.checkpoint").exists()
    assert not (tmp_path / CHECKPOINT).exists()


def test_directories_with_the_same_id_are_refused(tmp_path):
    format_all(tmp_path / "a", tmp_path / "b")
    text = (tmp_path / "a" / "meta.properties").read_text()
    (tmp_path / "b" / "meta.properties").write_text(text)
    with pytest.raises(
        ConfigError, match=r"^Duplicate directory ID .* found. It was the ID of .*/a, but also of .*/b$"
    ):
        format_all(tmp_path / "a", tmp_path / "b")


def test_a_node_of_a_cluster_has_to_be_formatted(tmp_path):
    with pytest.raises(ConfigError, match=r"^No `meta.properties` found in .*/a .have you run `kafka-storage.sh` to"):
        check_formatted([str(tmp_path / "a"), str(tmp_path / "b")])
    format_all(tmp_path / "b")
    check_formatted([str(tmp_path / "a"), str(tmp_path / "b")])
