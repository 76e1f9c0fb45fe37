"""The tool `zookeeper-security-migration` of Apache Kafka 0.9 to 3.9: sets or removes the ACLs of Kafka's znodes."""

from __future__ import annotations

import sys

from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.zookeeper.brokers import connected
from kafkapy.tools.zookeeper.client import ZOOKEEPER_SESSION_TIMEOUT_MS, ZooKeeperClient
from kafkapy.tools.zookeeper.errors import NO_AUTH, NO_NODE, ZooKeeperRequestError
from kafkapy.zookeeper.acl import ALL, ANYONE, OPEN_ACL, READ, Acl, AclEntry, Identity

# The nodes that are migrated with all their descendants, and the one that every consumer may write.
ROOTS = (
    *("/admin", "/brokers", "/cluster", "/config", "/controller", "/controller_epoch", "/delegation_token", "/feature"),
    *("/isr_change_notification", "/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended"),
    *("/kafka-acl-extended-changes", "/latest_producer_id_block", "/log_dir_event_notification", "/migration"),
)
OPEN_ROOT = "/consumers"
# Nodes with secrets, which only their creator may read.
_SECRET = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_CREATOR = AclEntry(ALL, Identity("auth", ""))


def acl_of(path: str, *, is_secure: bool) -> Acl:
    """Returns the ACL that Kafka gives the node at `path`.

    If `is_secure` is False, or for /consumers, everybody may do everything. Otherwise the node's creator may do
    everything, and everybody else may read the node unless it contains secrets.
    """
    if not is_secure or path == OPEN_ROOT:
        return OPEN_ACL
    if any(path == each or path.startswith(f"{each}/") for each in _SECRET):
        return (_CREATOR,)
    return _CREATOR, AclEntry(READ, ANYONE)


def run(arguments: Arguments) -> None:
    """Sets the ACLs of Kafka's nodes.

    Prints how many nodes have kept their ACLs because this client may not change them. Raises ToolError if a path is
    missing and --enable.path.check is given, or if a request fails, and UsageError for invalid flags.
    """
    arguments.require("zookeeper.acl")
    if arguments["zookeeper.acl"] not in ("secure", "unsecure"):
        raise UsageError(f"zookeeper.acl is {arguments['zookeeper.acl']}; it must be secure or unsecure")
    is_secure = arguments["zookeeper.acl"] == "secure"
    if is_secure and not arguments.has("digest"):
        raise UsageError("zookeeper.acl secure needs the identity that owns the nodes: --digest user:password")
    client = connected(arguments["zookeeper.connect"], arguments["zookeeper.connection.timeout"] / 1000)
    try:
        if arguments.has("digest"):
            client.authenticate("digest", arguments["digest"].encode())
        present = [root for root in (OPEN_ROOT, *ROOTS) if client.exists(root) is not None]
        if arguments.has("enable.path.check"):
            missing = [root for root in (OPEN_ROOT, *ROOTS) if root not in present]
            if missing:
                raise ToolError(f"These paths do not exist: {', '.join(missing)}. No ACL was changed.")
        paths = [path for root in present for path in ([root] if root == OPEN_ROOT else client.walk(root))]
        refused = [path for path in paths if not _set(client, path, acl_of(path, is_secure=is_secure))]
    except ZooKeeperRequestError as error:
        raise ToolError(str(error)) from None
    finally:
        client.close()
    if refused:
        shown = ", ".join(refused[:5]) + (" ..." if len(refused) > 5 else "")
        print(
            f"{len(refused)} nodes kept their ACLs, because this client may not change them: {shown}", file=sys.stderr
        )


def _set(client: ZooKeeperClient, path: str, acl: Acl) -> bool:
    """Sets the ACL of a node; returns False if the client has no right to do so, otherwise True.

    The result for a node that no longer exists is True.
    """
    try:
        client.set_acl(path, acl)
    except ZooKeeperRequestError as error:
        if error.code not in (NO_AUTH, NO_NODE):
            raise
        return error.code == NO_NODE
    return True


TOOL = Tool(
    name="zookeeper-security-migration",
    description="ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of setting "
    "up ZooKeeper authentication.",
    run=run,
    options=(
        Option(
            "zookeeper.acl",
            "Indicates whether to make the Kafka znodes in ZooKeeper secure or unsecure. The options are 'secure' and "
            "'unsecure'",
            "secure|unsecure",
        ),
        Option("zookeeper.connect", "The address of ZooKeeper, as host:port/path.", "hosts", default="localhost:2181"),
        Option(
            "zookeeper.session.timeout", "Ignored.", "ms", INTEGER, ZOOKEEPER_SESSION_TIMEOUT_MS, is_deprecated=True
        ),
        Option(
            "zookeeper.connection.timeout",
            "The time to wait for a connection.",
            "ms",
            INTEGER,
            ZOOKEEPER_SESSION_TIMEOUT_MS,
        ),
        Option("enable.path.check", "Check whether all paths exist before anything is changed."),
        Option(
            "digest",
            "The identity that owns the nodes, of the scheme digest. Kafka's tool takes it from a JAAS file.",
            "user:password",
            is_ours=True,
        ),
    ),
    examples=(
        Example("Secure the nodes", "--zookeeper.connect localhost:2181 --zookeeper.acl secure --digest kafka:secret"),
    ),
    not_here=(("zk-tls-config-file", "this tool does not use TLS"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
