"""Changes of the voter set on the leader (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, kraft.version.

One change is in progress at a time. A new voter set is used as soon as it is appended to the log, before it is
committed.
"""

from __future__ import annotations

from typing import Any

from kafkapy.errors import Error
from kafkapy.quorum.raft.effects import KRaftVersionResult, Respond
from kafkapy.quorum.raft.elections import is_our_cluster
from kafkapy.quorum.raft.leader import Leader, PendingChange
from kafkapy.quorum.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVoterResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from kafkapy.quorum.raft.node import RaftNode
from kafkapy.quorum.raft.serving import leader_error
from kafkapy.quorum.voters import KRAFT_VERSION_DYNAMIC, KRAFT_VERSION_STATIC, ReplicaKey, Voter, VoterSet
from kafkapy.types import ZERO_UUID, uuid_to_string

Refusal = tuple[Error, str | None]
_ACCEPTED: Refusal = (Error.NONE, None)


def _shown(key: ReplicaKey) -> str:
    """Returns a voter as Apache Kafka's error messages write it: `ReplicaKey(id=1, directoryId=...)`."""
    directory = uuid_to_string(key.directory_id) if any(key.directory_id) else "<undefined>"
    return f"ReplicaKey(id={key.node_id}, directoryId={directory})"


def _shown_voters(voters: VoterSet) -> str:
    return f"[{', '.join(_shown(voter.key) for voter in voters)}]"


def _refusal_by_state(node: RaftNode, leader: Leader, change: str) -> Refusal:
    """Returns the error and message of the response if the leader accepts no change of voters at present, for example
    because another change is in progress. Returns a pair with Error.NONE if it accepts a change.

    The checks are made in Kafka's order. `change` is a word for the change, such as "adding", to be used in the
    message.
    """
    if leader.pending is not None:
        return (
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    if leader.high_watermark < 0:
        return (
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter changes",
        )
    if node.log.kraft_version() == KRAFT_VERSION_STATIC:
        return (
            Error.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {change} voter because the kraft.version feature is {KRAFT_VERSION_STATIC}",
        )
    if node.log.voters_offset() >= leader.high_watermark:
        return (
            Error.REQUEST_TIMED_OUT,
            f"Request timed out waiting for voters to commit the latest voter change at "
            f"Optional[{node.log.voters_offset()}] with HWM {leader.high_watermark}",
        )
    return _ACCEPTED


def _has_default_listener(node: RaftNode, voter: Voter) -> bool:
    return node.voter_destination(voter) is not None


def _leader_for(node: RaftNode, cluster_id: str | None) -> tuple[Leader | None, Refusal]:
    if not is_our_cluster(node, cluster_id):
        message = f'The given id "{cluster_id}" doesn\'t match the cluster id "{node.config.cluster_id}"'
        return None, (Error.INCONSISTENT_CLUSTER_ID, message)
    error = leader_error(node, node.state.epoch)
    return node.state if isinstance(node.state, Leader) and error == Error.NONE else None, (error, None)


# -- AddRaftVoter


def handle_add(node: RaftNode, request: AddVoterRequest, token: Any) -> None:
    """Begins to add a voter: asks the new voter for its kraft.version range; `handle_api_versions_response` continues.

    Adds the effect Respond with `token` at once if the request is refused.
    """
    leader, refusal = _leader_for(node, request.cluster_id)
    voter = request.voter
    if leader is not None:
        if voter.node_id < 0 or voter.directory_id == ZERO_UUID:
            refusal = (Error.INVALID_REQUEST, "Add voter request didn't include a valid voter")
        elif not _has_default_listener(node, voter):
            refusal = (
                Error.INVALID_REQUEST,
                f"Add voter request didn't include the endpoint (Endpoints(endpoints={_java_map(voter)})) for the "
                f"default listener ListenerName({node.config.listener_name})",
            )
        else:
            refusal = _begin_add(node, leader, request, token)
    if refusal[0] != Error.NONE:
        node.effects.append(Respond(token, ChangeVoterResponse(*refusal)))


def _java_map(voter: Voter) -> str:
    """Returns the endpoints of a voter as Apache Kafka's error messages write them, in the form of a Java map:
    `{ListenerName(CONTROLLER)=host/<unresolved>:9093}`.
    """
    texts = (f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in voter.listeners)
    return "{" + ", ".join(texts) + "}"


def _begin_add(node: RaftNode, leader: Leader, request: AddVoterRequest, token: Any) -> Refusal:
    refusal = _refusal_by_state(node, leader, "adding")
    if refusal[0] != Error.NONE:
        return refusal
    voter = request.voter
    if voter.node_id in node.voters.ids:
        return (
            Error.DUPLICATE_VOTER,
            f"The voter id for {_shown(voter.key)} is already part of the set of voters {_shown_voters(node.voters)}.",
        )
    destination = node.voter_destination(voter)
    if destination is None or node.connections.ready_ms(voter.node_id, node.now_ms) > node.now_ms:
        return Error.REQUEST_TIMED_OUT, f"New voter {_shown(voter.key)} is not ready to receive requests"
    pending = PendingChange("add", token, node.now_ms + node.config.request_timeout_ms, voter)
    pending.ack_when_committed = request.ack_when_committed
    leader.pending = pending
    node.send(destination, ApiVersionsRequest())
    return _ACCEPTED


def handle_api_versions_response(node: RaftNode, node_id: int, response: ApiVersionsResponse) -> bool:
    """Continues to add a voter: appends the new voter set, or refuses the change. Returns False if the new voter
    responded with an error, so that the connection waits before the next request."""
    leader = node.state
    if not isinstance(leader, Leader):
        return True
    pending = leader.pending
    if pending is None or pending.voter is None or pending.offset >= 0 or pending.voter.node_id != node_id:
        return True
    voter = pending.voter
    level = node.log.kraft_version()
    updated = voter._replace(min_kraft_version=response.min_kraft_version, max_kraft_version=response.max_kraft_version)
    if response.error != Error.NONE:
        message = f"Aborted add voter operation for since API_VERSIONS returned an error {response.error.name}"
        node.finish_change(leader, Error.REQUEST_TIMED_OUT, message)
        return False
    if not updated.supports(level):
        message = (
            f"Aborted add voter operation for {_shown(voter.key)} since the kraft.version range "
            f"(min: {updated.min_kraft_version}, max: {updated.max_kraft_version} doesn't support the finalized "
            f"version {level}"
        )
        node.finish_change(leader, Error.INVALID_REQUEST, message)
    elif not leader.is_caught_up(voter.key, node.now_ms):
        message = f"Aborted add voter operation for {_shown(voter.key)} since it is lagging behind"
        node.finish_change(leader, Error.REQUEST_TIMED_OUT, message)
    else:
        pending.offset = node.append_control([node.voters.with_voter(updated)])
        if not pending.ack_when_committed:
            pending.is_answered = True
            node.effects.append(Respond(pending.token, ChangeVoterResponse(Error.NONE)))
    return True


def api_versions_failed(node: RaftNode, node_id: int) -> None:
    """Refuses to add a voter that cannot be reached."""
    leader = node.state
    if isinstance(leader, Leader) and leader.pending is not None:
        pending = leader.pending
        if pending.voter is not None and pending.offset < 0 and pending.voter.node_id == node_id:
            message = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
            node.finish_change(leader, Error.REQUEST_TIMED_OUT, message)


# -- RemoveRaftVoter


def handle_remove(node: RaftNode, request: RemoveVoterRequest, token: Any) -> None:
    """Appends the voter set without the voter that the request names. The effect Respond with `token` is added after
    the commit, or at once if the request is refused."""
    leader, refusal = _leader_for(node, request.cluster_id)
    if leader is not None:
        if request.voter.node_id < 0 or request.voter.directory_id == ZERO_UUID:
            refusal = (Error.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        else:
            refusal = _refusal_by_state(node, leader, "removing")
    if leader is not None and refusal[0] == Error.NONE:
        voter = node.voters.get(request.voter.node_id)
        if voter is None or voter.key != request.voter or len(node.voters) == 1:
            refusal = (
                Error.VOTER_NOT_FOUND,
                f"Cannot remove voter {_shown(request.voter)} from the set of voters {_shown_voters(node.voters)}",
            )
        else:
            pending = PendingChange("remove", token, node.now_ms + node.config.request_timeout_ms)
            leader.pending = pending
            pending.offset = node.append_control([node.voters.without(voter.node_id)])
            return
    node.effects.append(Respond(token, ChangeVoterResponse(*refusal)))


# -- UpdateRaftVoter


def handle_update(node: RaftNode, request: UpdateVoterRequest) -> ChangeVoterResponse:
    """Stores the listeners and the kraft.version range of a voter: in the log, or in memory for kraft.version 0."""
    return ChangeVoterResponse(_update(node, request), None, *node.leader_fields())


def _update(node: RaftNode, request: UpdateVoterRequest) -> Error:
    if not is_our_cluster(node, request.cluster_id):
        return Error.INCONSISTENT_CLUSTER_ID
    error = leader_error(node, request.epoch)
    leader, voter = node.state, request.voter
    if error != Error.NONE or not isinstance(leader, Leader):
        return error
    if voter.node_id < 0 or voter.directory_id == ZERO_UUID or not _has_default_listener(node, voter):
        return Error.INVALID_REQUEST
    if not 0 <= voter.min_kraft_version <= voter.max_kraft_version:
        return Error.INVALID_REQUEST
    level = node.log.kraft_version()
    error = _refusal_by_state(node, leader, "updating")[0]
    if error not in (Error.NONE, Error.UNSUPPORTED_VERSION):
        return error
    if not voter.supports(level):
        return Error.INVALID_REQUEST
    if level == KRAFT_VERSION_STATIC:
        if leader.unsaved_voters is None:
            return Error.REQUEST_TIMED_OUT
        if voter.node_id not in leader.unsaved_voters.ids:
            return Error.VOTER_NOT_FOUND
        leader.unsaved_voters = leader.unsaved_voters.with_voter(voter)
    else:
        if not node.voters.is_voter(voter.key):
            return Error.VOTER_NOT_FOUND
        node.append_control([node.voters.with_voter(voter)])
    leader.note_fetching_voter(voter.key, node.now_ms, node.check_quorum_timeout_ms)
    return Error.NONE


# -- kraft.version


def upgrade_refusal(node: RaftNode) -> str | None:
    """Returns the reason why this node cannot increase kraft.version to 1 now; None if it can."""
    leader = node.state
    if not isinstance(leader, Leader):
        return "This node does not lead the metadata quorum."
    return _upgrade_refusal(leader, node.log.kraft_version(), KRAFT_VERSION_DYNAMIC)[1]


def upgrade_kraft_version(node: RaftNode, level: int, token: Any) -> None:
    """Increases kraft.version to `level`, which must be 1: appends the new version together with the voters, if every
    voter supports the version and has a directory id. The effect KRaftVersionResult with `token` is added at once if
    the request is refused or changes nothing, and otherwise after the commit.
    """
    leader = node.state
    current = node.log.kraft_version()
    if not isinstance(leader, Leader):
        node.effects.append(KRaftVersionResult(token, Error.NOT_LEADER_OR_FOLLOWER, None))
        return
    refusal = _upgrade_refusal(leader, current, level)
    if level != current and refusal[0] == Error.NONE:
        assert leader.unsaved_voters is not None
        pending = PendingChange("upgrade", token, node.now_ms + node.config.request_timeout_ms)
        leader.pending = pending
        voters, leader.unsaved_voters = leader.unsaved_voters, None
        pending.offset = node.append_control([level, voters])
        return
    node.effects.append(KRaftVersionResult(token, *refusal))


def _upgrade_refusal(leader: Leader, current: int, level: int) -> Refusal:
    if level == current:
        return _ACCEPTED
    if level < current:
        return (
            Error.INVALID_UPDATE_VERSION,
            f"Invalid upgrade of kraft.version from version {current} to {level} because the new version is a "
            "downgrade",
        )
    if leader.pending is not None or leader.unsaved_voters is None or level != KRAFT_VERSION_DYNAMIC:
        return Error.INVALID_UPDATE_VERSION, f"Invalid upgrade of kraft.version from version {current} to {level}"
    voters = leader.unsaved_voters
    if not voters.supports(level) or any(voter.directory_id == ZERO_UUID for voter in voters):
        return (
            Error.INVALID_UPDATE_VERSION,
            f"Invalid upgrade of kraft.version to {level} because not all of the voters support it",
        )
    return _ACCEPTED
