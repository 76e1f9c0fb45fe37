"""`kafkapy metadata-shell` on a snapshot: the output of Apache Kafka 4.3's tool for the same file and commands.

The output was recorded, because the jar of that tool belongs to no peer: `session_kafka.txt` is a shell's output for
the lines of `session.txt`, `tree_kafka.txt` is the output of the command `tree /`. Two things differ here: `find`
prints the paths that a pattern names, where Apache Kafka's prints the pattern, and `local/commitId` names kafkapy.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.metadata.cluster_image import (
    BrokerRegistration,
    ControllerRegistration,
    DelegationToken,
    Endpoint,
    ScramCredential,
)
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.image_writer import snapshot_records
from kafkapy.metadata.topics_image import PartitionImage, TopicImage, TopicsImage
from kafkapy.quorum.snapshot import snapshot_bytes
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.tools.metadata_commands import Shell
from kafkapy.tools.metadata_tree import Provenance, tree_of
from tests.broker_process import BrokerProcess
from tests.tools.tool_host import run_ours

DATA = Path(__file__).with_name("metadata_shell")
EPOCH, OLDEST_MS, NEWEST_MS = 7, 1_690_000_000_123, 1_700_000_000_000
FEATURES = {"metadata.version": 30, "group.version": 1, "share.version": 1, "eligible.leader.replicas.version": 1}


def identifier(number: int) -> bytes:
    return bytes([number]) * 16


def image() -> MetadataImage:
    """Returns metadata with something in every directory of the shell."""
    supported = {"metadata.version": (7, 30), "group.version": (0, 1)}
    brokers = {
        number: BrokerRegistration(
            broker_id=number,
            epoch=900 + number,
            incarnation_id=identifier(0x20 + number),
            endpoints={
                "PLAINTEXT": Endpoint("PLAINTEXT", "127.0.0.1", 9092 + number, 0),
                "INSIDE": Endpoint("INSIDE", "node", 9192 + number, 3),
            },
            features=supported,
            rack=None if number == 1 else f"r{number}",
            fenced=number == 1,
            in_controlled_shutdown=number == 1,
            log_dirs=(identifier(0x99), identifier(0x08)) if number == 1 else (identifier(0x30 + number),),
            cordoned_log_dirs=(identifier(0x99),) if number == 1 else (),
            is_migrating_zk_broker=False,
        )
        for number in (1, 2, 3)
    }
    controllers = {
        1: ControllerRegistration(
            1, identifier(0x41), False, {"CONTROLLER": Endpoint("CONTROLLER", "127.0.0.1", 9093, 1)}, supported
        )
    }
    plain = PartitionImage(
        (3, 1, 2), (identifier(0x33), identifier(0x99), identifier(0x32)), (3, 1), (), (), (), (), 1, 0, 11, 40
    )
    moving = plain._replace(
        elr=(2,), last_known_elr=(3,), adding_replicas=(4,), removing_replicas=(2,), leader_recovery_state=1
    )
    topics = [
        TopicImage("orders", identifier(0x51), dict.fromkeys(range(12), moving)),
        TopicImage("__consumer_offsets", identifier(0xF2), dict.fromkeys(range(2), plain)),
    ]
    return EMPTY_IMAGE._replace(
        features=FEATURES,
        brokers=brokers,
        controllers=controllers,
        topics=TopicsImage({each.name: each for each in topics}, {each.topic_id: each for each in topics}),
        configs={
            (2, "orders"): {"retention.ms": "5", "cleanup.policy": "compact"},
            (4, ""): {"min.insync.replicas": "2"},
            (4, "1"): {"log.retention.ms": "99"},
            (16, "metrics"): {"interval.ms": "100"},
            (32, "g1"): {"consumer.session.timeout.ms": "50000"},
        },
        client_quotas={
            (("client-id", "c1"), ("user", "u1")): {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1.5e9},
            (("ip", "1.2.3.4"),): {"connection_creation_rate": 7.0},
            (("user", "a b"),): {"consumer_byte_rate": 123456789.25, "request_percentage": 0.0001},
        },
        next_producer_id=11000,
        acls={
            identifier(1): AccessControlEntry(2, "t*x", 4, "User:alice", "*", 3, 3),
            identifier(7): AccessControlEntry(4, "kafka-cluster", 3, "User:*", "10.0.0.1", 2, 2),
        },
        scram={
            ("alice", 1): ScramCredential(b"salt1", b"stored", b"server", 4096),
            ("bob", 2): ScramCredential(b"s", b"k\x00\xff", b"v", 8192),
        },
        delegation_tokens={
            "tok1": DelegationToken("User:alice", "User:bob", ("User:c", "User:d"), 1000, 2000, 1500, "tok1")
        },
    )


def write_snapshot(directory: Path) -> str:
    """Writes the snapshot that Apache Kafka's tool read; returns its path."""
    path = directory / f"{1083:020}-{EPOCH:010}.checkpoint"
    path.write_bytes(snapshot_bytes(EPOCH, NEWEST_MS, OLDEST_MS, [], snapshot_records(image())))
    return str(path)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_snapshot(tmp_path_factory.mktemp("snapshot"))


def test_a_session_has_the_output_of_apache_kafkas_shell(snapshot: str) -> None:
    done = run_ours("metadata-shell", "--snapshot", snapshot, input=(DATA / "session.txt").read_text())
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == (DATA / "session_kafka.txt").read_text().splitlines()


def test_the_tree_is_apache_kafkas(snapshot: str) -> None:
    done = run_ours("metadata-shell", "--snapshot", snapshot, "tree", "/")
    theirs = (DATA / "tree_kafka.txt").read_text().splitlines()
    ours = done.out.splitlines()
    at = ours.index("  commitId:") + 1
    assert ours[at].strip().startswith("kafkapy-")
    assert (done.code, [*ours[:at], *ours[at + 1 :]]) == (0, [*theirs[:at], *theirs[at + 1 :]])


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("find", "/image/scram/SCRAM-SHA-512"), "/image/scram/SCRAM-SHA-512\n/image/scram/SCRAM-SHA-512/bob\n"),
        (("ls", "nope"), "ls: nope: no such file or directory.\n"),
        (("pwd",), "invalid choice: 'pwd' (choose from 'cat', 'find', 'ls', 'tree')\n"),
        (("cat",), "too few arguments\n"),
    ],
)
def test_commands_as_arguments(snapshot: str, words: tuple[str, ...], out: str) -> None:
    assert run_ours("metadata-shell", "-s", snapshot, *words)[:2] == (0, out)


def shell_of(metadata: MetadataImage, width: int = 0) -> tuple[Shell, list[str]]:
    lines: list[str] = []
    return Shell(tree_of(metadata, Provenance(1, 1, 1), {}), lines.append, width), lines


def test_a_pattern_names_the_paths_that_find_prints() -> None:
    shell, lines = shell_of(image())
    shell.run_line("find /image/p*")
    assert lines == ["/image/producerIds", "/image/producerIds/nextProducerId", "/image/provenance"]


def test_default_entities_have_names_and_contents() -> None:
    """Apache Kafka's shell names both entities "" and ends when `find` reaches them."""
    quotas = {(("user", None),): {"request_percentage": 50.5}, (("client-id", None),): {"producer_byte_rate": 2.0}}
    shell, lines = shell_of(EMPTY_IMAGE._replace(client_quotas=quotas))
    shell.run_line("tree /image/clientQuotas")
    assert lines == [
        "clientId(<default>):",
        "  producer_byte_rate:",
        "    2.0",
        "user(<default>):",
        "  request_percentage:",
        "    50.5",
    ]


def test_a_terminal_gets_columns() -> None:
    shell, lines = shell_of(image(), width=40)
    shell.run_line("ls /image/topics/byName/orders")
    assert lines == ["0  10  2  4  6  8  id", "1  11  3  5  7  9  name"]


def test_completion_offers_commands_and_paths() -> None:
    shell, _ = shell_of(image())
    shell.run_line("cd image")
    assert shell.completions("h", "h") == ["help ", "history "]
    assert shell.completions("ls top", "top") == ["topics/"]
    assert shell.completions("cat features/meta", "features/meta") == ["features/metadataVersion "]
    assert shell.completions("cat nope/x", "nope/x") == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--snapshot", "{tmp}/nope", "ls"), "No such file or directory: {tmp}/nope"),
        (("--snapshot", "{tmp}", "ls"), "{tmp} is a directory: use --directory"),
        (("--snapshot", "{tmp}/text", "ls"), "{tmp}/text is neither a snapshot nor a segment of the metadata log"),
        (("--directory", "{tmp}", "ls"), "There is no metadata log in {tmp}"),
    ],
)
def test_a_file_that_is_no_metadata_log_is_one_line(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    (tmp_path / "text").write_text("no batches\n" * 20)
    done = run_ours("metadata-shell", *(each.format(tmp=tmp_path) for each in words))
    assert (done.code, done.err) == (1, reason.format(tmp=tmp_path) + "\n")


def test_the_directory_of_a_live_node(broker: BrokerProcess) -> None:
    done = run_ours("metadata-shell", "--directory", str(broker.data), "ls", "/image/cluster/brokers", "/local")
    assert (done.code, done.out, done.err) == (0, "brokers:\n1\n\nlocal:\ncommitId\nversion\n", "")
    done = run_ours("metadata-shell", "--directory", str(broker.data), "cat", "/image/cluster/brokers/1")
    assert done.out.startswith("BrokerRegistration(id=1, ")
    assert ", fenced=false, inControlledShutdown=false, " in done.out
