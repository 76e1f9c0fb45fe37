"""Checks of authorization: ACLs that allow everything, hosts that no client has, super users that do not exist."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kafkapy.config import BrokerConfig
from kafkapy.errors import ProtocolViolation
from kafkapy.metadata.image import MetadataImage
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import CLUSTER_NAME, WILDCARD, Operation, Permission, ResourceType
from kafkapy.security.host_address import acl_host
from kafkapy.security.principal import ANONYMOUS, USER_TYPE, parse_principal
from kafkapy.security.standard_authorizer import DEFAULT_KEY, SUPER_USERS_KEY, WILDCARD_PRINCIPAL, parse_super_users
from kafkapy.tools.diagnosis.finding import GOOD, NOTE, WARNING, Finding, Findings
from kafkapy.tools.metadata_log import read_directory
from kafkapy.tools.option import ToolError

SUBJECT = "access"
SHOWN_ACLS = 5
# The mechanisms whose users are in the metadata or in the configuration.
_LISTED_MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_SASL_PROTOCOLS = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
_JAAS_USER = re.compile(r"\buser_([^\s=\"]+)\s*=|\busername\s*=\s*\"?([^\s\"]+)")


def check_access(config: BrokerConfig) -> Findings:
    """Yields findings on the authorizer's configuration and on the ACLs in the metadata log."""
    stored = read_metadata(config.metadata_log_dir)
    acls = [] if stored is None else list(stored.acls.values())
    if not config.authorizer_class_name:
        if acls:
            text = f"the metadata contain {len(acls)} ACLs, which have no effect without an authorizer"
            yield Finding(WARNING, SUBJECT, text, "set authorizer.class.name, or remove the ACLs")
        return
    found = [*_defaults(config, acls), *_acls(acls), *_super_users(config, stored)]
    yield from found or [Finding(GOOD, SUBJECT, f"no problems found in {len(acls)} ACLs and the super users")]


def read_metadata(metadata_log_dir: str) -> MetadataImage | None:
    """Returns the metadata in a log directory; None if they cannot be read.

    The end of the log may contain records that the cluster has not committed yet.
    """
    try:
        history = read_directory(metadata_log_dir)
        return history.image_at(history.end_offset)
    except (OSError, ValueError, ProtocolViolation, ToolError):
        return None


def _defaults(config: BrokerConfig, acls: Sequence[AccessControlEntry]) -> Findings:
    if config.originals.get(DEFAULT_KEY, "").strip().lower() == "true":
        text = "everybody may do everything with a resource that no ACL names"
        yield Finding(WARNING, SUBJECT, text, f"remove {DEFAULT_KEY}=true")
    elif not config.originals.get(SUPER_USERS_KEY, "").strip() and not acls:
        text = f"nobody may do anything: there are neither ACLs nor {SUPER_USERS_KEY}"
        yield Finding(WARNING, SUBJECT, text, f"set {SUPER_USERS_KEY} to the principals of nodes and administrators")


def _acls(acls: Sequence[AccessControlEntry]) -> Findings:
    wide = [each for each in acls if _allows_everything(each)]
    for entry in wide[:SHOWN_ACLS]:
        kind = ResourceType(entry.resource_type).name
        resources = (
            "everything with the cluster" if entry.resource_name == CLUSTER_NAME else f"everything with every {kind}"
        )
        text = f"an ACL allows everybody {resources}"
        yield Finding(WARNING, SUBJECT, text, "remove it with kafka-acls, and allow what certain principals need")
    hosts = sorted({each.host for each in acls if each.host != WILDCARD and not _is_host(each.host)})
    for host in hosts[:SHOWN_ACLS]:
        text = f"an ACL is for the host {host!r}, which no client has"
        yield Finding(WARNING, SUBJECT, text, f"hosts are * or IP addresses such as 10.0.0.1 or {acl_host('::1')}")


def _allows_everything(entry: AccessControlEntry) -> bool:
    return (
        entry.permission_type == Permission.ALLOW
        and entry.principal == WILDCARD_PRINCIPAL
        and entry.host == WILDCARD
        and entry.operation == Operation.ALL
        and (entry.resource_name == WILDCARD or entry.resource_type == ResourceType.CLUSTER)
    )


def _is_host(host: str) -> bool:
    """Returns whether the host of an ACL can be equal to the address of a client.

    Both are compared as texts, and the text of a client's address has the form that `acl_host` returns.
    """
    if ":" in host:
        return acl_host(host) == host and host.count(":") >= 7
    numbers = host.split(".")
    return len(numbers) == 4 and all(each.isdigit() and str(int(each)) == each and int(each) < 256 for each in numbers)


def _super_users(config: BrokerConfig, stored: MetadataImage | None) -> Findings:
    known = _known_users(config, stored)
    for text in sorted(parse_super_users(config.originals.get(SUPER_USERS_KEY, ""))):
        principal = parse_principal(text)
        if principal == ANONYMOUS:
            yield Finding(
                WARNING, SUBJECT, f"the super user {text} is every client that does not authenticate",
                "remove it from super.users, and let nodes and administrators authenticate",
            )  # fmt: skip
        elif text == WILDCARD_PRINCIPAL:
            yield Finding(WARNING, SUBJECT, f"the super user {text} is nobody: * has no meaning in {SUPER_USERS_KEY}")
        elif principal.type != USER_TYPE:
            yield Finding(NOTE, SUBJECT, f"the super user {text} has a type that kafkapy gives to no client")
        elif known is not None and principal.name not in known:
            yield Finding(
                WARNING, SUBJECT, f"the super user {text} does not exist: no listener knows the user",
                "correct the name, or create the user: kafka-configs --entity-type users",
            )  # fmt: skip


def _known_users(config: BrokerConfig, stored: MetadataImage | None) -> set[str] | None:
    """Returns the names of all users: those with SCRAM credentials in `stored`, and those in JAAS configurations.

    Returns None if the list may be incomplete: a listener accepts certificates or tokens, whose users are not listed
    anywhere, or `stored` is None.
    """
    authenticating = [listener for listener in config.listeners if listener.security_protocol != "PLAINTEXT"]
    if stored is None or not {listener.security_protocol for listener in authenticating} <= _SASL_PROTOCOLS:
        return None
    mechanisms = {
        name for listener in authenticating for name in config.for_listener(listener.name, "sasl.enabled.mechanisms")
    }
    jaas = [text for name, text in config.originals.items() if name.endswith("sasl.jaas.config")]
    if not mechanisms <= _LISTED_MECHANISMS or ("PLAIN" in mechanisms and not jaas):
        return None
    return {name for name, _ in stored.scram} | {
        one or other for text in jaas for one, other in _JAAS_USER.findall(text)
    }
