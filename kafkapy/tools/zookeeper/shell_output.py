"""The output of ZooKeeper's shell: nodes, their statistics and their ACLs; the texts of ACLs are parsed here, too."""

from __future__ import annotations

import base64
import sys
from datetime import datetime

from kafkapy.tools.zookeeper.replies import Stat
from kafkapy.zookeeper.acl import ADMIN, CREATE, DELETE, READ, WRITE, AclEntry, Identity

# In the order in which the shell prints them.
_PERMISSIONS = {"c": CREATE, "d": DELETE, "r": READ, "w": WRITE, "a": ADMIN}
_ROW_BYTES = 16
_RULE = "+--------+-------------------------------------------------+----------------+"


def complain(text: str) -> None:
    """Prints a line to standard error, after what was printed to standard output."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


def print_stat(stat: Stat) -> None:
    print(f"cZxid = 0x{stat.czxid:x}")
    print(f"ctime = {_date(stat.ctime_ms)}")
    print(f"mZxid = 0x{stat.mzxid:x}")
    print(f"mtime = {_date(stat.mtime_ms)}")
    print(f"pZxid = 0x{stat.pzxid:x}")
    print(f"cversion = {stat.children_version}")
    print(f"dataVersion = {stat.version}")
    print(f"aclVersion = {stat.acl_version}")
    print(f"ephemeralOwner = 0x{stat.ephemeral_owner & (1 << 64) - 1:x}")
    print(f"dataLength = {stat.data_length}")
    print(f"numChildren = {stat.children_count}")


def _date(milliseconds: int) -> str:
    """Returns a date as `java.util.Date` prints it, in local time."""
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%a %b %d %H:%M:%S %Z %Y")


def print_data(data: bytes | None, *, as_base64: bool = False, as_hexdump: bool = False) -> None:
    shown = b"null" if data is None else data
    if as_base64:
        print(base64.b64encode(shown).decode())
    elif as_hexdump:
        print(_hexdump(shown))
    else:
        print(shown.decode(errors="replace"))


def _hexdump(data: bytes) -> str:
    if not data:
        return ""
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        _RULE,
    ]
    for start in range(0, len(data), _ROW_BYTES):
        row = data[start : start + _ROW_BYTES]
        digits = " ".join(f"{byte:02x}" for byte in row)
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"|{start:08x}| {digits:<47} |{text:<16}|")
    return "\n".join([*lines, _RULE])


def list_text(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def print_acl(acl: list[AclEntry]) -> None:
    for permissions, identity in acl:
        letters = "".join(letter for letter, bit in _PERMISSIONS.items() if permissions & bit)
        print(f"'{identity.scheme},'{identity.id}\n: {letters}")


def parse_acl(text: str) -> list[AclEntry]:
    """Returns the entries of an ACL in the form `scheme:id:permissions,...`.

    Prints a line for each entry that is invalid, and leaves it out.
    """
    entries = []
    for entry in text.split(","):
        scheme, colon, rest = entry.partition(":")
        name, second, letters = rest.rpartition(":")
        if not colon or not second:
            complain(f"{entry} does not have the form scheme:id:perm")
            continue
        for letter in letters:
            if letter not in _PERMISSIONS:
                complain(f"Unknown perm type: {letter}")
        permissions = sum(_PERMISSIONS[letter] for letter in dict.fromkeys(letters) if letter in _PERMISSIONS)
        entries.append(AclEntry(permissions, Identity(scheme, name)))
    return entries
