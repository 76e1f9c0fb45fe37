"""Requests to the quorum that no correct node sends: kafkapy and Apache Kafka 4.3 answer alike."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.quorum.raft import messages as raft
from kafkapy.quorum.raft_client import outgoing
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter
from kafkapy.types import OffsetAndEpoch
from tests.api_client import ask
from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import CONTROLLER, Flavour
from tests.cluster.quorum_tools import directory_id_of

OTHER = bytes(range(1, 17))
UNREACHABLE = ControllerListener("CONTROLLER", "127.0.0.1", 1)
SNAPSHOT_OF_NOBODY = OffsetAndEpoch(1, 1)


class Quorum:
    """The only voter of a dynamic quorum, which is a controller, and its current epoch."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        node = cluster[1]
        self.own = ReplicaKey(1, directory_id_of(node))
        self.listener = ControllerListener("CONTROLLER", "127.0.0.1", node.controller_port)
        self.socket = socket.create_connection(("127.0.0.1", node.controller_port), 20)
        self.epoch = self.ask(self.fetch(epoch=0)).epoch

    def ask(self, request: raft.Request) -> Any:
        """Returns the response as the machine of a node gets it."""
        translated = outgoing(request)
        wire = response_class(translated.api_key)
        version = wire.HIGHEST_VERSION
        response = ask(self.socket, translated.api_key, version, translated.build(version), wire)
        return translated.read(response, "CONTROLLER")

    def shown(self, response: Any) -> Any:
        """Returns a response without what differs between two clusters."""
        if isinstance(response, raft.ChangeVoterResponse):
            text = re.sub(r"directoryId=[\w-]{22}", "directoryId=ID", response.message or "")
            return response.error, re.sub(r"\d{4,5}", "PORT", text).replace(self.cluster.cluster_id, "CLUSTER")
        granted = response.granted if isinstance(response, raft.VoteResponse) else None
        diverging = response.diverging is not None if isinstance(response, raft.FetchResponse) else None
        return response.error, response.leader_id, response.epoch - self.epoch, granted, diverging

    def vote(self, epoch: int = 0, **fields: Any) -> raft.VoteRequest:
        """Returns a request of voter 9 for the vote of this node in an epoch, counted from the current one."""
        request = raft.VoteRequest(
            self.cluster.cluster_id, self.own, ReplicaKey(9, OTHER), self.epoch + epoch, self.epoch, 1 << 40, False
        )
        return request._replace(**fields)

    def fetch(self, **fields: Any) -> raft.FetchRequest:
        epoch = getattr(self, "epoch", 0)
        request = raft.FetchRequest(self.cluster.cluster_id, ReplicaKey(9, OTHER), epoch, 0, 0, -1, 0, 1 << 20)
        return request._replace(**fields)

    def snapshot(self, **fields: Any) -> raft.FetchSnapshotRequest:
        request = raft.FetchSnapshotRequest(
            self.cluster.cluster_id, ReplicaKey(9, OTHER), self.epoch, SNAPSHOT_OF_NOBODY, 0, 1 << 20
        )
        return request._replace(**fields)

    def add(self, cluster_id: str | None = None, **fields: Any) -> raft.AddVoterRequest:
        voter = Voter(9, OTHER, (UNREACHABLE,))._replace(**fields)
        return raft.AddVoterRequest(cluster_id or self.cluster.cluster_id, 5000, voter)

    def update(self, epoch: int = 0, **fields: Any) -> raft.UpdateVoterRequest:
        voter = Voter(9, OTHER, (UNREACHABLE,), 0, 1)._replace(**fields)
        return raft.UpdateVoterRequest(self.cluster.cluster_id, self.epoch + epoch, voter)

    def remove(self, key: ReplicaKey) -> raft.RemoveVoterRequest:
        return raft.RemoveVoterRequest(self.cluster.cluster_id, key)


REQUESTS: dict[str, Callable[[Quorum], raft.Request]] = {
    "vote of another cluster": lambda quorum: quorum.vote(cluster_id="other"),
    "vote without a cluster": lambda quorum: quorum.vote(cluster_id=None),
    "vote of an unknown candidate": lambda quorum: quorum.vote(),
    "vote that another node should have got": lambda quorum: quorum.vote(voter=ReplicaKey(2, OTHER)),
    "vote that another directory should have got": lambda quorum: quorum.vote(voter=ReplicaKey(1, OTHER)),
    "vote in a former epoch": lambda quorum: quorum.vote(-1, last_epoch=0),
    "vote in epoch -1": lambda quorum: quorum.vote(-1 - quorum.epoch, last_epoch=0),
    "vote of a log that is newer than its epoch": lambda quorum: quorum.vote(last_epoch=quorum.epoch + 1),
    "vote with a negative end": lambda quorum: quorum.vote(end_offset=-1),
    "vote of no candidate": lambda quorum: quorum.vote(candidate=ReplicaKey(-1)),
    "pre-vote of a log that is newer than its epoch": lambda quorum: quorum.vote(
        last_epoch=quorum.epoch + 1, pre_vote=True
    ),
    "pre-vote of an unknown candidate": lambda quorum: quorum.vote(pre_vote=True),
    "leader of a former epoch": lambda quorum: raft.BeginQuorumEpochRequest(
        quorum.cluster.cluster_id, quorum.own, 9, quorum.epoch - 1, (UNREACHABLE,)
    ),
    "end of a former epoch": lambda quorum: raft.EndQuorumEpochRequest(
        quorum.cluster.cluster_id, 9, quorum.epoch - 1, (), (UNREACHABLE,)
    ),
    "fetch of another cluster": lambda quorum: quorum.fetch(cluster_id="other"),
    "fetch from the future": lambda quorum: quorum.fetch(epoch=quorum.epoch + 5),
    "fetch from the past": lambda quorum: quorum.fetch(epoch=quorum.epoch - 1),
    "fetch with a negative offset": lambda quorum: quorum.fetch(offset=-1),
    "fetch with a negative wait": lambda quorum: quorum.fetch(max_wait_ms=-1),
    "fetch of a record that is newer than the epoch": lambda quorum: quorum.fetch(
        offset=1, last_epoch=quorum.epoch + 1
    ),
    "fetch beyond the end": lambda quorum: quorum.fetch(offset=1 << 40, last_epoch=quorum.epoch),
    "fetch after an unknown epoch": lambda quorum: quorum.fetch(offset=1, last_epoch=0),
    "voter of another cluster": lambda quorum: quorum.add("other"),
    "voter without a directory": lambda quorum: quorum.add(directory_id=bytes(16)),
    "voter without a listener": lambda quorum: quorum.add(listeners=(UNREACHABLE._replace(name="OTHER"),)),
    "voter with the id of another": lambda quorum: quorum.add(node_id=1),
    "voter that cannot be reached": lambda quorum: quorum.add(),
    "removal of an unknown voter": lambda quorum: quorum.remove(ReplicaKey(9, OTHER)),
    "removal of the only voter": lambda quorum: quorum.remove(quorum.own),
    "removal without a directory": lambda quorum: quorum.remove(ReplicaKey(1)),
    "update of an unknown voter": lambda quorum: quorum.update(),
    "update in a future epoch": lambda quorum: quorum.update(1),
    "update with an impossible range": lambda quorum: quorum.update(min_kraft_version=1, max_kraft_version=0),
    "update without a directory": lambda quorum: quorum.update(directory_id=bytes(16)),
}


@pytest.fixture(scope="module")
def quorums(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Quorum]]:
    """Yields a quorum of kafkapy and a quorum of Apache Kafka."""
    directory: Path = tmp_path_factory.mktemp("quorums")
    clusters = [
        Cluster(directory / flavour.name, [Spec(flavour, CONTROLLER)], voters=Voters.STANDALONE)
        for flavour in (Flavour.KAFKAPY, Flavour.KAFKA_43)
    ]
    with clusters[0], clusters[1]:
        yield [Quorum(cluster) for cluster in clusters]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_no_correct_node_sends(quorums: list[Quorum], name: str) -> None:
    ours, theirs = (quorum.shown(quorum.ask(REQUESTS[name](quorum))) for quorum in quorums)
    assert ours == theirs


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, Error.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": OffsetAndEpoch(0, 0)}, Error.SNAPSHOT_NOT_FOUND),
        ({"epoch": 0}, Error.FENCED_LEADER_EPOCH),
        ({"cluster_id": "other"}, Error.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_a_snapshot_that_is_not_served(quorums: list[Quorum], fields: dict[str, Any], error: Error) -> None:
    """Apache Kafka 4.3 fails to encode the errors of a partition (NullPointerException), and responds with
    UNKNOWN_SERVER_ERROR."""
    ours, theirs = (quorum.ask(quorum.snapshot(**fields)).error for quorum in quorums)
    assert ours is error
    assert theirs in (error, Error.UNKNOWN_SERVER_ERROR)


def test_a_vote_from_the_future_raises_the_epoch_and_the_only_voter_leads_again(quorums: list[Quorum]) -> None:
    answers = []
    for quorum in quorums:
        answers.append(quorum.shown(quorum.ask(quorum.vote(1000, last_epoch=0, end_offset=0))))

        def leads(quorum: Quorum = quorum) -> bool:
            found = quorum.ask(quorum.fetch(epoch=quorum.epoch + 1001))
            return (found.leader_id, found.epoch) == (1, quorum.epoch + 1001)

        quorum.cluster.wait_for("leader after the future", leads)
    assert answers[0] == answers[1]


def test_another_topic_is_refused_for_the_whole_request(quorums: list[Quorum]) -> None:
    codes = []
    for quorum in quorums:
        message = outgoing(quorum.vote()).build(2)
        message.topics[0].topic_name = "other"
        response = ask(quorum.socket, ApiKey.VOTE, 2, message, response_class(ApiKey.VOTE))
        codes.append((response.error_code, response.topics))
    assert codes[0] == codes[1]
