"""Access control lists of znodes, with the schemes world, ip, digest and auth."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Callable, Collection, Sequence

from kafkapy.named_tuple import NamedTuple
from kafkapy.zookeeper.errors import OperationError, ZooKeeperError

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
ALL = READ | WRITE | CREATE | DELETE | ADMIN


class Identity(NamedTuple):
    """A scheme and an id, such as "ip" and an address: the identity of a client, or of an ACL's entry."""

    scheme: str
    id: str


class AclEntry(NamedTuple):
    """An entry of an ACL: an identity, and its permissions as a sum of bits (READ, WRITE, CREATE, DELETE, ADMIN)."""

    permissions: int
    identity: Identity


Acl = tuple[AclEntry, ...]

ANYONE = Identity("world", "anyone")
OPEN_ACL: Acl = (AclEntry(ALL, ANYONE),)
READ_ONLY_ACL: Acl = (AclEntry(READ, ANYONE),)
SUPER = "super"
SASL = "sasl"


def digest_id(credentials: bytes) -> str:
    """Returns the id in the scheme digest for the credentials `user:password`.

    It is the user, a colon, and the SHA-1 digest of the credentials in base64.
    """
    user = credentials.partition(b":")[0].decode(errors="replace")
    return f"{user}:{base64.b64encode(hashlib.sha1(credentials).digest()).decode()}"


def _is_digest(text: str) -> bool:
    return text.count(":") == 1 and not text.endswith(":")


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_in_network(text: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False


def _is_subject(text: str) -> bool:
    """Returns whether the text has the form of a certificate's subject: `CN=alice,O=Test`."""
    return all(part.partition("=")[0].strip() for part in text.split(",")) and "=" in text.partition(",")[0]


# Scheme -> whether an id is valid in an ACL.
_VALID_IDS: dict[str, Callable[[str], bool]] = {
    "digest": _is_digest,
    "ip": _is_network,
    "x509": _is_subject,
    "sasl": bool,
}
# The schemes of a listener without TLS and SASL.
PLAIN_SCHEMES = frozenset(("digest", "ip"))


def check_permission(acl: Acl, permission: int, identities: Collection[Identity]) -> None:
    """Raises OperationError NO_AUTH unless the ACL grants one of the identities at least one bit of `permission`.

    An empty ACL, and an identity of the scheme super, permit everything.
    """
    for entry in acl:
        if entry.permissions & permission and _names_one_of(entry.identity, identities):
            return
    if not acl or any(identity.scheme == SUPER for identity in identities):
        return
    raise OperationError(ZooKeeperError.NO_AUTH)


def may_read(acl: Acl, identities: Collection[Identity]) -> bool:
    try:
        check_permission(acl, READ, identities)
    except OperationError:
        return False
    return True


def _names_one_of(named: Identity, identities: Collection[Identity]) -> bool:
    if named == ANYONE or named in identities:
        return True
    return named.scheme == "ip" and any(
        identity.scheme == "ip" and _is_in_network(named.id, identity.id) for identity in identities
    )


def resolved_acl(
    requested: Sequence[AclEntry] | None, identities: Collection[Identity], schemes: Collection[str]
) -> Acl:
    """Returns the ACL to store if a client with `identities` requests the ACL `requested`; removes duplicates.

    An entry with the scheme auth is replaced by an entry for each identity that the client has proved. Raises
    OperationError INVALID_ACL for an invalid or empty ACL, and for an entry whose scheme is neither world nor auth nor
    in `schemes`.
    """
    entries: dict[AclEntry, None] = {}
    for entry in requested or ():
        identity = entry.identity
        if identity.scheme == "auth":
            own = [each for each in identities if each.scheme not in ("ip", "world")]
            if not own:
                raise OperationError(ZooKeeperError.INVALID_ACL)
            entries.update(dict.fromkeys(AclEntry(entry.permissions, each) for each in own))
            continue
        is_valid = identity.scheme in schemes and _VALID_IDS[identity.scheme](identity.id)
        if identity != ANYONE and not is_valid:
            raise OperationError(ZooKeeperError.INVALID_ACL)
        entries[entry] = None
    if not entries:
        raise OperationError(ZooKeeperError.INVALID_ACL)
    return OPEN_ACL if tuple(entries) == OPEN_ACL else tuple(entries)


def without_digests(acl: Acl) -> Acl:
    """Returns the ACL with the digests of passwords replaced by x, for clients without the permission ADMIN."""

    def hidden(identity: Identity) -> Identity:
        if identity.scheme != "digest":
            return identity
        return Identity(identity.scheme, f"{identity.id.partition(':')[0]}:x")

    return tuple(AclEntry(entry.permissions, hidden(entry.identity)) for entry in acl)
