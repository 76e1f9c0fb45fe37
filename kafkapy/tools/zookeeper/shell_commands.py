"""The commands of ZooKeeper's shell that need a session, except for those about quotas.

Each function carries out one command with the words of its line. It may raise CommandError, ZooKeeperRequestError, and
ValueError for a path that is not valid.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path

from kafkapy import __version__
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.zookeeper import client as zookeeper
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from kafkapy.tools.zookeeper.command_words import CommandError, Flags, Words, number
from kafkapy.tools.zookeeper.connect_string import check_path
from kafkapy.tools.zookeeper.errors import AUTH_FAILED, INVALID_ACL, ZooKeeperRequestError
from kafkapy.tools.zookeeper.shell_output import complain, list_text, parse_acl, print_acl, print_data, print_stat
from kafkapy.zookeeper.acl import OPEN_ACL
from kafkapy.zookeeper.node import LARGEST_TTL_MS

# The release of ZooKeeper whose shell this one corresponds to.
ZOOKEEPER_RELEASE = "3.9"
_MODES = {"PERSISTENT": zookeeper.PERSISTENT, "PERSISTENT_RECURSIVE": zookeeper.PERSISTENT_RECURSIVE}


class ShellCommand(NamedTuple):
    """A command of the shell.

    `usage` describes the words after the command's name, and `explains` has lines about flags, which are printed after
    the usage. `run` is called with the client and the words of the command line. `deprecated` is the form of the
    command with a second argument that older releases had, such as "ls path [watch]"; it is "" if there was no such
    form.
    """

    usage: str
    flags: Flags
    least_arguments: int
    run: Callable[[ZooKeeperClient, Words], None]
    explains: str = ""
    deprecated: str = ""


def _path(words: Words) -> str:
    """Returns the first argument, a path. Raises ValueError if it is not a valid path."""
    check_path(words.arguments[0])
    return words.arguments[0]


def _version(words: Words) -> int:
    return number(words.flags["v"], "v") if "v" in words.flags else -1


def _watches(words: Words) -> bool:
    """Returns whether the command sets a watch: by the flag -w, or by a second argument as in releases before 3.5."""
    return "w" in words.flags or len(words.arguments) > 1


def _create(client: ZooKeeperClient, words: Words) -> None:
    flags = words.flags
    if "c" in flags and ("e" in flags or "s" in flags):
        raise CommandError("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
    ttl_ms = _ttl(words)
    mode = zookeeper.EPHEMERAL * ("e" in flags) + zookeeper.SEQUENTIAL * ("s" in flags)
    if "c" in flags:
        mode = zookeeper.CONTAINER
    elif "t" in flags:
        mode = zookeeper.TTL_SEQUENTIAL if "s" in flags else zookeeper.TTL
    path = words.arguments[0]
    check_path(path + "1" if "s" in flags else path)
    data = words.arguments[1].encode() if len(words.arguments) > 1 else None
    acl = parse_acl(words.arguments[2]) if len(words.arguments) > 2 else OPEN_ACL
    try:
        if not acl:
            raise ZooKeeperRequestError(INVALID_ACL, None)
        complain(f"Created {client.create(path, data, acl, mode, ttl_ms)}")
    except ZooKeeperRequestError as error:
        if error.code == INVALID_ACL:
            complain(str(error))
        raise


def _ttl(words: Words) -> int:
    if "t" not in words.flags:
        return 0
    try:
        ttl_ms = int(words.flags["t"])
    except ValueError:
        raise CommandError("-t argument must be a long value") from None
    if "e" in words.flags:
        raise CommandError("TTLs cannot be used with Ephemeral znodes")
    if "c" in words.flags:
        raise CommandError("TTLs cannot be used with Container znodes")
    if not 0 < ttl_ms <= LARGEST_TTL_MS:
        raise CommandError(f"ttl must be positive and cannot be larger than: {LARGEST_TTL_MS}")
    return ttl_ms


def _delete(client: ZooKeeperClient, words: Words) -> None:
    client.delete(_path(words), _version(words))


def _delete_all(client: ZooKeeperClient, words: Words) -> None:
    if "b" in words.flags:
        number(words.flags["b"], "b")  # nodes are deleted one after the other
    if not client.delete_all(_path(words)):
        complain("Failed to delete some node(s) in the subtree!")


def _get(client: ZooKeeperClient, words: Words) -> None:
    data, stat = client.get(_path(words), _watches(words))
    print_data(data, as_base64="b" in words.flags, as_hexdump="x" in words.flags)
    if "s" in words.flags:
        print_stat(stat)


def _set(client: ZooKeeperClient, words: Words) -> None:
    text = words.arguments[1]
    try:
        data = base64.b64decode(text, validate=True) if "b" in words.flags else text.encode()
    except binascii.Error as error:
        raise CommandError(f"{text} is not base64: {error}") from None
    stat = client.set(_path(words), data, _version(words))
    if "s" in words.flags:
        print_stat(stat)


def _stat(client: ZooKeeperClient, words: Words) -> None:
    path = _path(words)
    stat = client.exists(path, _watches(words))
    if stat is None:
        raise CommandError(f"Node does not exist: {path}")
    print_stat(stat)


def _ls(client: ZooKeeperClient, words: Words) -> None:
    path = _path(words)
    if "R" in words.flags:
        for each in sorted(client.walk(path), key=lambda node: node.split("/")):
            print(each)
        return
    names, stat = client.children(path, _watches(words))
    print(list_text(sorted(names)))
    if "s" in words.flags:
        print_stat(stat)


def _get_acl(client: ZooKeeperClient, words: Words) -> None:
    acl, stat = client.get_acl(_path(words))
    print_acl(acl)
    if "s" in words.flags:
        print_stat(stat)


def _set_acl(client: ZooKeeperClient, words: Words) -> None:
    path, acl = _path(words), parse_acl(words.arguments[1])
    if not acl:
        raise ZooKeeperRequestError(INVALID_ACL, None)
    for each in client.walk(path) if "R" in words.flags else [path]:
        stat = client.set_acl(each, acl, _version(words))
        if "s" in words.flags:
            print_stat(stat)


def _add_auth(client: ZooKeeperClient, words: Words) -> None:
    credentials = words.arguments[1].encode() if len(words.arguments) > 1 else b""
    try:
        client.authenticate(words.arguments[0], credentials)
    except ZooKeeperRequestError as error:
        if error.code != AUTH_FAILED:  # otherwise an event is printed
            raise


def _add_watch(client: ZooKeeperClient, words: Words) -> None:
    mode = words.flags.get("m", "PERSISTENT_RECURSIVE")
    if mode not in _MODES:
        raise CommandError(f"addWatch {COMMANDS['addWatch'].usage}")
    client.add_watch(_path(words), _MODES[mode])


def _remove_watches(client: ZooKeeperClient, words: Words) -> None:
    kind = zookeeper.ANY_WATCHES
    if "c" in words.flags:
        kind = zookeeper.CHILD_WATCHES
    elif "d" in words.flags:
        kind = zookeeper.DATA_WATCHES
    client.remove_watches(_path(words), kind)


def _get_ephemerals(client: ZooKeeperClient, words: Words) -> None:
    path = words.arguments[0] if words.arguments else "/"
    check_path(path)
    print(list_text(client.ephemerals(path)))


def _get_all_children_number(client: ZooKeeperClient, words: Words) -> None:
    print(client.all_children_number(_path(words)))


def _sync(client: ZooKeeperClient, words: Words) -> None:
    client.sync(_path(words))
    print("Sync is OK")


def _close(client: ZooKeeperClient, words: Words) -> None:
    client.close()


def _who_am_i(client: ZooKeeperClient, words: Words) -> None:
    print("Auth scheme: User")
    for scheme, name in client.who_am_i():
        print(f"{scheme}: {name}")


def _print_version(client: ZooKeeperClient, words: Words) -> None:
    print(f"ZooKeeper CLI version: {ZOOKEEPER_RELEASE} (kafkapy {__version__})")


def _config(client: ZooKeeperClient, words: Words) -> None:
    data, stat = client.get_config("w" in words.flags)
    text = (data or b"").decode(errors="replace")
    print(_client_config(text) if "c" in words.flags else text)
    if "s" in words.flags:
        print_stat(stat)


def _client_config(text: str) -> str:
    """Returns the line `VERSION ADDRESS,ADDRESS` for `text`, the ensemble's configuration.

    The addresses are those at which the servers accept clients.
    """
    lines = dict(line.partition("=")[::2] for line in text.splitlines())
    addresses = [value.rpartition(";")[2] for key, value in lines.items() if key.startswith("server.")]
    return f"{lines.get('version', '')} {','.join(addresses)}"


def _reconfig(client: ZooKeeperClient, words: Words) -> None:
    joining, leaving = words.flags.get("a"), words.flags.get("r")
    members = words.flags.get("m")
    if "f" in words.flags:
        members = ",".join(Path(words.flags["f"]).read_text().split())
    if members is not None and (joining is not None or leaving is not None):
        raise CommandError(
            "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes "
            "is not allowed)"
        )
    if members is None and joining is None and leaving is None:
        raise CommandError(f"reconfig {COMMANDS['reconfig'].usage}")
    data, stat = client.reconfigure(joining, leaving, members, _version(words))
    print(f"Committed new configuration:\n{(data or b'').decode(errors='replace')}")
    if "s" in words.flags:
        print_stat(stat)


_GET_FLAGS = """
 -b   Output data in base64 format
 -s   Print znode stats additionally
 -w   Watch for changes on the znode
 -x   Output data in hexdump format
"""
_SET_FLAGS = """
 -b         Supply data in base64 format
 -s         Print znode stats additionally
 -v <arg>   Set with an expected version
"""
_SERVER = "serverID=host:port1:port2;port3[,...]*"
# The flags of reconfig, which are words in ZooKeeper's shell, by the letters that stand for them here.
LONG_FLAGS = {"-add": "-a", "-remove": "-r", "-members": "-m", "-file": "-f"}

COMMANDS: dict[str, ShellCommand] = {
    "addWatch": ShellCommand(
        "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
        Flags(valued="m"),
        1,
        _add_watch,
    ),
    "addauth": ShellCommand("scheme auth", Flags(), 1, _add_auth),
    "close": ShellCommand("", Flags(), 0, _close),
    "config": ShellCommand("[-c] [-w] [-s]", Flags("cws"), 0, _config),
    "create": ShellCommand("[-s] [-e] [-c] [-t ttl] path [data] [acl]", Flags("sec", "t"), 1, _create),
    "delete": ShellCommand("[-v version] path", Flags(valued="v"), 1, _delete, deprecated="delete path [version]"),
    "deleteall": ShellCommand("path [-b batch size]", Flags(valued="b"), 1, _delete_all),
    "get": ShellCommand("[-s] [-w] [-b] [-x] path", Flags("swbx"), 1, _get, _GET_FLAGS, "get path [watch]"),
    "getAcl": ShellCommand("[-s] path", Flags("s"), 1, _get_acl),
    "getAllChildrenNumber": ShellCommand("path", Flags(), 1, _get_all_children_number),
    "getEphemerals": ShellCommand("path", Flags(), 0, _get_ephemerals),
    "ls": ShellCommand("[-s] [-w] [-R] path", Flags("swR"), 1, _ls, deprecated="ls path [watch]"),
    "reconfig": ShellCommand(
        f"[-s] [-v version] [[-file path] | [-members {_SERVER}]] | [-add serverId=host:port1:port2;port3[,...]]* "
        "[-remove serverId[,...]*]",
        Flags("s", "varmf"),
        0,
        _reconfig,
    ),
    "removewatches": ShellCommand("path [-c|-d|-a] [-l]", Flags("cdal", group="cda"), 1, _remove_watches),
    "set": ShellCommand("path data [-s] [-v version] [-b]", Flags("sb", "v"), 2, _set, _SET_FLAGS),
    "setAcl": ShellCommand("[-s] [-v version] [-R] path acl", Flags("sR", "v"), 2, _set_acl),
    "stat": ShellCommand("[-w] path", Flags("w"), 1, _stat, deprecated="stat path [watch]"),
    "sync": ShellCommand("path", Flags(), 1, _sync),
    "version": ShellCommand("", Flags(), 0, _print_version),
    "whoami": ShellCommand("", Flags(), 0, _who_am_i),
}
