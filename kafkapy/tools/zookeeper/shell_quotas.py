"""The commands of ZooKeeper's shell about quotas, which are nodes below /zookeeper/quota.

ZooKeeper counts the nodes and bytes below a path that has a quota, and refuses writes above a hard limit. The listener
of kafkapy stores these nodes, but it neither counts nodes and bytes nor refuses writes.
"""

from __future__ import annotations

from kafkapy.decimal_text import is_integer
from kafkapy.tools.zookeeper.client import ZooKeeperClient
from kafkapy.tools.zookeeper.command_words import CommandError, Flags, Words
from kafkapy.tools.zookeeper.connect_string import check_path
from kafkapy.tools.zookeeper.errors import NO_NODE, ZooKeeperRequestError
from kafkapy.tools.zookeeper.shell_commands import ShellCommand
from kafkapy.tools.zookeeper.shell_output import complain

_QUOTA = "/zookeeper/quota"
_LIMITS, _STAT = "zookeeper_limits", "zookeeper_stats"
_NONE = -1
# The flags and the names of the limits in a node's data; capitals are hard limits.
_NAMES = {"n": "count", "b": "bytes", "N": "countHardLimit", "B": "byteHardLimit"}
_WHAT = {"n": "num", "b": "bytes", "N": "num", "B": "bytes"}


def _parse(data: bytes | None) -> dict[str, int]:
    """Returns the numbers by name in a quota node's data, such as
    `count=5,bytes=500=;byteHardLimit=-1;countHardLimit=-1`."""
    pairs = (part.partition("=") for part in (data or b"").decode(errors="replace").replace("=;", ";").split(";"))
    found = {}
    for name, _, value in pairs:
        for each in f"{name}={value}".split(","):
            key, _, text = each.partition("=")
            if is_integer(text):
                found[key] = int(text)
    return found


def _text(limits: dict[str, int]) -> str:
    count, size, hard_size, hard_count = (
        limits.get(name, _NONE) for name in ("count", "bytes", "byteHardLimit", "countHardLimit")
    )
    return f"count={count},bytes={size}=;byteHardLimit={hard_size};countHardLimit={hard_count}"


def _set_quota(client: ZooKeeperClient, words: Words) -> None:
    path = _quota_path(words)
    flag, text = next(iter(words.flags.items()))
    try:
        value = int(text)
    except ValueError:
        raise CommandError("NumberFormatException happens when parsing the option value") from None
    if value <= 0 and flag in "nN":
        raise CommandError(f"the {_WHAT[flag]} quota must be greater than zero")
    if value < 0:
        raise CommandError(f"the {_WHAT[flag]} quota must be greater than or equal to zero")
    if client.exists(path) is None:
        raise CommandError(f"{path} does not exist.")
    parents = [path[:end] for end in range(1, len(path)) if path[end] == "/"]
    parent = next((each for each in parents if client.exists(f"{_QUOTA}{each}/{_LIMITS}") is not None), None)
    if parent is not None:
        raise CommandError(f"{path} has a parent {parent} which has a quota")
    node = f"{_QUOTA}{path}"
    child = _child_with_quota(client, node)
    if child is not None:
        raise CommandError(f"{path} has a child {child.removeprefix(_QUOTA)} which has a quota")
    if client.exists(f"{node}/{_LIMITS}") is None:
        client.ensure(f"{node}/{_LIMITS}", _text({_NAMES[flag]: value}).encode())
        client.ensure(f"{node}/{_STAT}", b"count=0,bytes=0")
    else:
        limits = _parse(client.get(f"{node}/{_LIMITS}")[0])
        client.set(f"{node}/{_LIMITS}", _text({**limits, _NAMES[flag]: value}).encode())
    used = _parse(client.get(f"{node}/{_STAT}")[0]).get("count" if flag in "nN" else "bytes", 0)
    if used > value:
        noun = "count" if flag in "nN" else "bytes"
        print(f"[Warning]: the {noun} quota you create is less than the existing {noun}:{used}")


def _child_with_quota(client: ZooKeeperClient, node: str) -> str | None:
    """Returns the path of a descendant of `node` that has limits of its own; None if there is none.

    `node` is a node below /zookeeper/quota.
    """
    if client.exists(node) is None:
        return None
    found = (each for each in client.walk(node) if each.endswith(f"/{_LIMITS}") and each != f"{node}/{_LIMITS}")
    limits = next(found, None)
    return None if limits is None else limits.rpartition("/")[0]


def _list_quota(client: ZooKeeperClient, words: Words) -> None:
    path = _quota_path(words)
    node = f"{_QUOTA}{path}"
    complain(f"absolute path is {node}/{_LIMITS}")
    try:
        limits = _parse(client.get(f"{node}/{_LIMITS}")[0])
        print(f"Output quota for {path} {_text(limits)}")
        stat = _parse(client.get(f"{node}/{_STAT}")[0])
        print(f"Output stat for {path} count={stat.get('count', 0)},bytes={stat.get('bytes', 0)}")
    except ZooKeeperRequestError as error:
        if error.code != NO_NODE:
            raise
        complain(f"quota for {path} does not exist.")


def _delete_quota(client: ZooKeeperClient, words: Words) -> None:
    path = _quota_path(words)
    node = f"{_QUOTA}{path}"
    if client.exists(f"{node}/{_LIMITS}") is None:
        print(f"Quota does not exist for {path}")
        return
    if words.flags:
        limits = _parse(client.get(f"{node}/{_LIMITS}")[0])
        limits.update({_NAMES[flag]: _NONE for flag in words.flags})
        client.set(f"{node}/{_LIMITS}", _text(limits).encode())
        return
    for name in (_LIMITS, _STAT):
        client.delete(f"{node}/{name}")
    while node != _QUOTA and not client.children(node)[0]:
        client.delete(node)
        node = node.rpartition("/")[0]


def _quota_path(words: Words) -> str:
    path = words.arguments[0]
    check_path(path)
    if path == "/":
        raise CommandError("Path must not end with / character")
    return path


_REQUIRED = "[-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]"
QUOTA_COMMANDS = {
    "delquota": ShellCommand("[-n|-b|-N|-B] path", Flags("nbNB", group="nbNB"), 1, _delete_quota),
    "listquota": ShellCommand("path", Flags(), 1, _list_quota),
    "setquota": ShellCommand(
        "-n|-b|-N|-B val path", Flags("", "nbNB", group="nbNB", needs_group=_REQUIRED), 1, _set_quota
    ),
}
