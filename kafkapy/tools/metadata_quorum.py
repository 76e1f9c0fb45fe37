"""The tool `kafka-metadata-quorum`: prints the state of the metadata quorum, adds and removes its voters."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from pathlib import Path

from kafkapy.client.admin import Admin, QuorumDescription, QuorumReplica, VoterEndpoint
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.broker_file import read_broker_file
from kafkapy.config.client_table import ADMIN_ROWS
from kafkapy.errors import ApiError
from kafkapy.storage.meta_properties import read_meta_properties
from kafkapy.tools.bootstrap import JSON, admin_properties
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.types import uuid_to_string

_CONNECTION = "connection"
_COLUMNS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
_ID_BYTES = 16


def run(arguments: Arguments) -> int:
    """Carries out the subcommand; returns the exit code, 0."""
    path = arguments["command-config"]
    if path is not None and not Path(path).exists():
        raise ToolError(f"Properties file {path} does not exists!")
    if arguments.command == "describe":
        _check_describe(arguments)
        with Admin(admin_properties(arguments)) as admin:
            _describe(admin, arguments)
        return 0
    try:
        if arguments.command == "add-controller":
            _add_controller(arguments)
        else:
            _remove_controller(arguments)
    except ApiError as error:
        raise ToolError(java_text(error)) from error
    return 0


def _check_describe(arguments: Arguments) -> None:
    if arguments["status"] and arguments["replication"]:
        raise ToolError("Only one of --status or --replication should be specified with describe sub-command")
    if arguments["human-readable"] and arguments["status"]:
        raise ToolError("The option --human-readable is only supported along with --replication")
    if not arguments["status"] and not arguments["replication"]:
        raise ToolError("One of --status or --replication must be specified with describe sub-command")


def _describe(admin: Admin, arguments: Arguments) -> None:
    cluster_id = admin.describe_cluster().cluster_id or ""
    quorum = admin.describe_metadata_quorum()
    if arguments["json"]:
        shown = {
            "cluster_id": cluster_id,
            "leader": quorum.leader,
            "leader_epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
            "voters": [_replica_json(each) for each in quorum.voters],
            "observers": [_replica_json(each) for each in quorum.observers],
        }
        print_json(shown)
    elif arguments["status"]:
        print("\n".join(status_lines(cluster_id, quorum)))
    else:
        wall_ms = int(time.time() * 1000) if arguments["human-readable"] else None
        print("\n".join(replication_lines(quorum, wall_ms)))


def _replica_json(replica: QuorumReplica) -> dict[str, object]:
    return {**replica._asdict(), "directory_id": uuid_to_string(replica.directory_id)}


def status_lines(cluster_id: str, quorum: QuorumDescription) -> list[str]:
    """Returns the output of `describe --status`."""
    leader = _leader(quorum)
    followers = [each for each in quorum.voters if each.node_id != leader.node_id]
    slowest = min(followers, key=lambda each: each.log_end_offset, default=leader)
    if leader.node_id == slowest.node_id:
        lag_ms = 0
    elif leader.last_caught_up_timestamp < 0 or slowest.last_caught_up_timestamp < 0:
        lag_ms = -1
    else:
        lag_ms = leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp
    return [
        f"ClusterId:              {cluster_id}",
        f"LeaderId:               {quorum.leader}",
        f"LeaderEpoch:            {quorum.leader_epoch}",
        f"HighWatermark:          {quorum.high_watermark}",
        f"MaxFollowerLag:         {leader.log_end_offset - slowest.log_end_offset}",
        f"MaxFollowerLagTimeMs:   {max(lag_ms, -1)}",
        f"CurrentVoters:          {_replicas(quorum.voters, quorum)}",
        f"CurrentObservers:       {_replicas(quorum.observers, quorum)}",
    ]


def _leader(quorum: QuorumDescription) -> QuorumReplica:
    """Returns the leader of the quorum. Raises ToolError if it is neither among the voters nor among the observers."""
    for each in (*quorum.voters, *quorum.observers):
        if each.node_id == quorum.leader:
            return each
    raise ToolError("Leader is not in the voters or observers of the quorum")


def _replicas(replicas: tuple[QuorumReplica, ...], quorum: QuorumDescription) -> str:
    """Returns replicas, with the addresses of their listeners in `quorum`, as JSON with a blank after each comma."""
    shown = []
    for each in sorted(replicas, key=lambda each: each.node_id):
        entry: dict[str, object] = {"id": each.node_id, "directoryId": _directory(each)}
        listeners = quorum.listeners.get(each.node_id, {})
        if listeners:
            entry["endpoints"] = [f"{name}://{host}:{port}" for name, (host, port) in listeners.items()]
        shown.append(entry)
    return json.dumps(shown)


def _directory(replica: QuorumReplica) -> str | None:
    return uuid_to_string(replica.directory_id) if any(replica.directory_id) else None


def replication_lines(quorum: QuorumDescription, wall_ms: int | None = None) -> list[str]:
    """Returns the output of `describe --replication`.

    The times of replicas are shown as ages at `wall_ms` (ms since 1970) or, if it is None, as ms since 1970.
    """
    leader = _leader(quorum)
    rows: list[tuple[str, ...]] = [_COLUMNS]
    rows.append(_row(leader, leader, "Leader", wall_ms))
    rows += [_row(each, leader, "Follower", wall_ms) for each in quorum.voters if each.node_id != leader.node_id]
    rows += [_row(each, leader, "Observer", wall_ms) for each in quorum.observers]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["\t".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) + "\t" for row in rows]


def _row(replica: QuorumReplica, leader: QuorumReplica, status: str, wall_ms: int | None) -> tuple[str, ...]:
    return (
        str(replica.node_id),
        uuid_to_string(replica.directory_id),
        str(replica.log_end_offset),
        str(leader.log_end_offset - replica.log_end_offset),
        _time(replica.last_fetch_timestamp, wall_ms),
        _time(replica.last_caught_up_timestamp, wall_ms),
        status,
    )


def _time(timestamp: int, wall_ms: int | None) -> str:
    if wall_ms is None:
        return str(timestamp)
    return "unknown" if timestamp < 0 else f"{wall_ms - timestamp} ms ago"


def _add_controller(arguments: Arguments) -> None:
    path = arguments["command-config"]
    if path is None:
        raise ToolError(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    config = BrokerConfig(read_broker_file(path))
    if not config.is_controller:
        raise ToolError(
            "process.roles did not contain 'controller' in configuration file. Is this a valid controller "
            "configuration file?"
        )
    properties = read_meta_properties(config.metadata_log_dir)
    if properties is None or properties.directory_id is None:
        raise ToolError(f"Unable to read meta.properties from {config.metadata_log_dir}")
    endpoints = [VoterEndpoint(each.name, each.host, each.port) for each in config.advertised_controller_listeners]
    shown = ", ".join(f"{each.listener}://{each.host}:{each.port}" for each in endpoints)
    directory = uuid_to_string(properties.directory_id)
    what = f"controller {config.node_id} with directory id {directory} and endpoints: {shown}"
    if arguments["dry-run"]:
        print(f"DRY RUN of adding {what}")
        return
    with Admin(_connection(arguments, config)) as admin:
        admin.add_raft_voter(config.node_id, properties.directory_id, endpoints)
    print(f"Added {what}")


def _connection(arguments: Arguments, config: BrokerConfig) -> dict[str, object]:
    """Returns the properties of an admin client for add-controller.

    They are the keys of the controller's configuration `config` that are also keys of an admin client, as in Apache
    Kafka, and the servers of the command line.
    """
    properties = {name: text for name, text in config.originals.items() if name in ADMIN_ROWS}
    return admin_properties(arguments, given=properties)


def _remove_controller(arguments: Arguments) -> None:
    voter: int = arguments["controller-id"]
    if voter < 0:
        raise ToolError(f"Invalid negative --controller-id: {voter}")
    directory_id = _directory_id(arguments["controller-directory-id"])
    what = f"KRaft controller {voter} with directory id {uuid_to_string(directory_id)}"
    if arguments["dry-run"]:
        print(f"DRY RUN of removing  {what}")
        return
    with Admin(admin_properties(arguments)) as admin:
        admin.remove_raft_voter(voter, directory_id)
    print(f"Removed  {what}")


def _directory_id(text: str) -> bytes:
    """Returns the 16 bytes of the directory id that `text` has in base64.

    Raises ToolError, with Kafka's text, if `text` is not base64 or has another number of bytes.
    """
    try:
        if len(text) > 24:
            raise ValueError(f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID")
        try:
            decoded = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except Base64Error as error:
            raise ValueError(str(error)) from error
        if len(decoded) != _ID_BYTES:
            raise ValueError(
                f"Input string `{text}` decoded as {len(decoded)} bytes, which is not equal to the expected "
                f"{_ID_BYTES} bytes of a base64-encoded UUID"
            )
    except ValueError as error:
        raise ToolError(f"Failed to parse --controller-directory-id: {error}") from error
    return decoded


_DRY_RUN = Option("dry-run", "True if we should print what would be done, but not do it.")
TOOL = Tool(
    name="metadata-quorum",
    description="This tool describes kraft metadata quorum status.",
    run=run,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-metadata-quorum",
    required_groups=(_CONNECTION,),
    options=(
        Option(
            "bootstrap-server",
            "A comma-separated list of host:port pairs to use for establishing the connection to the Kafka cluster.",
            "BOOTSTRAP_SERVER",
            group=_CONNECTION,
        ),
        Option(
            "bootstrap-controller",
            "A comma-separated list of host:port pairs to use for establishing the connection to the Kafka "
            "controllers.",
            "BOOTSTRAP_CONTROLLER",
            group=_CONNECTION,
        ),
        Option(
            "command-config",
            "Property file containing configs to be passed to Admin Client. For add-controller, the file is used to "
            "specify the controller properties as well.",
            "COMMAND_CONFIG",
            completes="file",
        ),
    ),
    commands=(
        Command(
            "describe",
            "Describe the metadata quorum info",
            (
                Option(
                    "status",
                    "A short summary of the quorum status and the other provides detailed information about the "
                    "status of replication.",
                ),
                Option("replication", "Detailed information about the status of replication"),
                Option("human-readable", "Human-readable output"),
                JSON,
            ),
        ),
        Command(
            "add-controller", "Add a controller to the KRaft controller cluster", (_DRY_RUN,), accepts_profile=False
        ),
        Command(
            "remove-controller",
            "Remove a controller from the KRaft controller cluster",
            (
                Option(
                    "controller-id",
                    "The id of the controller to remove.",
                    "CONTROLLER_ID",
                    INTEGER,
                    aliases=("i",),
                    is_required=True,
                ),
                Option(
                    "controller-directory-id",
                    "The directory ID of the controller to remove.",
                    "CONTROLLER_DIRECTORY_ID",
                    aliases=("d",),
                    is_required=True,
                ),
                _DRY_RUN,
            ),
        ),
    ),
    examples=(
        Example("The leader and the voters", "--bootstrap-server localhost:9092 describe --status"),
        Example("How far each replica has copied the log", "--bootstrap-server localhost:9092 describe --replication"),
        Example(
            "Make a controller a voter",
            "--command-config server.properties --bootstrap-controller localhost:9093 add-controller",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
