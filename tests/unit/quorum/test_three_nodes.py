"""Three voters with real logs and threads: elections, commits, failures of nodes and of the network."""

from __future__ import annotations

from pathlib import Path

from kafkapy.controller.result import ControllerResult
from kafkapy.protocol.messages.metadata_records import ConfigRecord
from tests.harness.quorum_nodes import QuorumNodes, wait_until


def put(key: str, value: str = "1"):  # type: ignore[no-untyped-def]
    record = ConfigRecord(resource_type=4, resource_name="9", name=key, value=value)
    return lambda image: ControllerResult([(record, 0)], image.offset)


def keys(image) -> set[str]:  # type: ignore[no-untyped-def]
    return set(image.config(4, "9"))


def test_all_nodes_publish_what_the_leader_commits(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        for number in range(20):
            quorum.submit(put(f"k{number}"))
        image = quorum.wait_for_equal_images()
        assert keys(image) == {f"k{number}" for number in range(20)}
        assert len({node.image.features["metadata.version"] for node in quorum.nodes.values()}) == 1
        assert not [node.faults for node in quorum.nodes.values() if node.faults]


def test_what_was_answered_survives_the_leader(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        answered = set()
        for round_ in range(3):
            for number in range(5):
                quorum.submit(put(f"r{round_}-{number}"))
                answered.add(f"r{round_}-{number}")
            killed = quorum.leader()
            killed.kill()
            quorum.submit(put(f"after-{round_}"))
            answered.add(f"after-{round_}")
            assert answered <= keys(quorum.leader().image)
            killed.start()
        assert keys(quorum.wait_for_equal_images()) == answered


def test_a_leader_that_is_cut_off_commits_nothing_and_follows_later(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        quorum.submit(put("before"))
        old = quorum.leader()
        quorum.cut_off(old.node_id)
        lost = old.loop.submit(put("lost"))
        quorum.leader(other_than=old.node_id)
        quorum.submit(put("kept"))
        quorum.cut_off()
        image = quorum.wait_for_equal_images()
        assert lost.exception(20) is not None
        wait_until(lambda: {"before", "kept"} <= keys(old.image), "the old leader does not follow")
        assert "lost" not in keys(image)


def test_all_nodes_start_again_with_what_was_committed(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        for number in range(5):
            quorum.submit(put(f"k{number}"))
        for node in quorum.nodes.values():
            node.kill()
        for node in quorum.nodes.values():
            node.start()
        quorum.submit(put("again"))
        assert keys(quorum.wait_for_equal_images()) == {"again", *(f"k{number}" for number in range(5))}


def test_a_node_starts_with_its_snapshot_alone(tmp_path: Path) -> None:
    """The records after the snapshot are replayed when they are known to be committed, and only then."""
    with QuorumNodes(tmp_path) as quorum:
        quorum.submit(put("before"))
        quorum.wait_for_equal_images()
        node = quorum.leader()
        node.loop.call(lambda: node.quorum.write_snapshot(node.image)).result(10)
        quorum.submit(put("after"))
        quorum.wait_for_equal_images()
        node.kill()
        assert keys(node.open()) == {"before"}
        node.start()
        assert keys(quorum.wait_for_equal_images()) == {"before", "after"}


def test_a_node_that_was_away_for_long_loads_a_snapshot(tmp_path: Path) -> None:
    limits = {
        "metadata_log_max_record_bytes_between_snapshots": "2000",
        "metadata_max_retention_bytes": "1",
        "metadata_log_segment_bytes": "8388608",
    }
    with QuorumNodes(tmp_path, **limits) as quorum:
        quorum.submit(put("first"))
        away = next(node for node in quorum.nodes.values() if not node.loop.is_active)
        quorum.wait_for_equal_images()
        away.kill()
        for node in quorum.nodes.values():
            node.quorum.log.segment_bytes = 1500
        for number in range(100):
            quorum.submit(put(f"k{number}"))
        assert quorum.leader().quorum.log.start_offset > away.quorum.log.end_offset
        away.start()
        image = quorum.wait_for_equal_images()
        assert len(keys(image)) == 101 and keys(away.image) == keys(image)


def test_a_clean_stop_of_the_leader_hands_over(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        quorum.submit(put("a"))
        first = quorum.leader()
        first.stop()
        quorum.submit(put("b"))
        first.start()
        assert keys(quorum.wait_for_equal_images()) == {"a", "b"}
