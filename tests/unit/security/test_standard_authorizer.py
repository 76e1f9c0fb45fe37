"""The authorizer: rules, super users, the audit log, and what happens before the ACLs are loaded."""

from __future__ import annotations

import pytest

from kafkapy.errors import ApiError, ConfigError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.host_address import acl_host
from kafkapy.security.principal import Principal
from kafkapy.security.standard_authorizer import StandardAuthorizer
from kafkapy.types import TRACE

TOPIC = ResourceType.TOPIC
HOST = "10.0.0.1"


def acl(name, operation=Operation.READ, *, principal="User:ada", prefixed=False, deny=False, host="*", kind=TOPIC):
    pattern_type = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return AccessControlEntry(kind, name, pattern_type, principal, host, operation, permission)


def authorizer_with(*entries, is_loaded=True, **configs):
    authorizer = StandardAuthorizer()
    authorizer.configure({name.replace("_", "."): value for name, value in configs.items()})
    authorizer.load({bytes([number] * 16): entry for number, entry in enumerate(entries)})
    if is_loaded:
        authorizer.set_loaded()
    return authorizer


def requester(principal="User:ada", host=HOST):
    kind, _, name = principal.partition(":")
    return Requester(Principal(kind, name), host, "PLAINTEXT", ApiKey.METADATA)


def allows(authorizer, operation, name, *, principal="User:ada", host=HOST, kind=TOPIC):
    return authorizer.authorize(requester(principal, host), [Action(operation, kind, name)]) == [True]


def test_without_an_acl_nothing_is_allowed():
    assert not allows(authorizer_with(), Operation.READ, "t")


def test_everything_without_an_acl_is_allowed_if_configured():
    authorizer = authorizer_with(
        acl("t", principal="User:bob"), acl("p-", prefixed=True), allow_everyone_if_no_acl_found=" TRUE "
    )
    assert allows(authorizer, Operation.WRITE, "other")
    assert not allows(authorizer, Operation.READ, "t")
    assert not allows(authorizer, Operation.WRITE, "p-x")
    assert allows(authorizer, Operation.READ, "t", kind=ResourceType.GROUP)


@pytest.mark.parametrize("given", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_some_operations_imply_describe(given):
    authorizer = authorizer_with(acl("t", given))
    assert allows(authorizer, Operation.DESCRIBE, "t")
    assert not allows(authorizer, Operation.DESCRIBE_CONFIGS, "t")


def test_altering_configs_implies_describing_them_only():
    authorizer = authorizer_with(acl("t", Operation.ALTER_CONFIGS))
    assert allows(authorizer, Operation.DESCRIBE_CONFIGS, "t")
    assert not allows(authorizer, Operation.DESCRIBE, "t")


def test_a_denial_implies_nothing_and_precedes_every_permission():
    authorizer = authorizer_with(acl("t", Operation.ALL), acl("*", deny=True, principal="User:*"))
    assert allows(authorizer, Operation.DESCRIBE, "t")
    assert not allows(authorizer, Operation.READ, "t")


def test_prefixes_wildcards_and_hosts():
    authorizer = authorizer_with(
        acl("log-", prefixed=True),
        acl("*", Operation.WRITE, principal="User:*", host="10.0.0.2"),
        acl("log", Operation.DELETE),
    )
    assert allows(authorizer, Operation.READ, "log-1")
    assert allows(authorizer, Operation.READ, "log-")
    assert not allows(authorizer, Operation.READ, "log")
    assert not allows(authorizer, Operation.READ, "xlog-")
    assert not allows(authorizer, Operation.DELETE, "log-1")
    assert not allows(authorizer, Operation.WRITE, "x")
    assert allows(authorizer, Operation.WRITE, "x", host="10.0.0.2")


def test_super_users_need_no_acl_even_before_the_acls_are_loaded():
    authorizer = authorizer_with(acl("t", deny=True), is_loaded=False, super_users=" User:root ; User:ada;")
    assert allows(authorizer, Operation.READ, "t")
    assert authorizer.authorize_by_type(requester(), Operation.WRITE, TOPIC)
    with pytest.raises(ApiError) as raised:
        allows(authorizer, Operation.READ, "t", principal="User:bob")
    assert raised.value.error is Error.UNKNOWN_SERVER_ERROR
    authorizer.set_loaded()
    assert not allows(authorizer, Operation.READ, "t", principal="User:bob")


def test_a_super_user_without_a_type_is_refused():
    with pytest.raises(ConfigError, match=r"super\.users=User:a;bob: .*principalType:principalName but got bob"):
        authorizer_with(super_users="User:a;bob")


def test_every_change_has_a_generation():
    authorizer = authorizer_with(acl("t"))
    first = authorizer.generation
    authorizer.load({b"1" * 16: acl("t"), b"2" * 16: acl("u")})
    second = authorizer.generation
    assert second > first
    assert allows(authorizer, Operation.READ, "u")
    authorizer.load({})
    assert authorizer.generation > second
    assert not allows(authorizer, Operation.READ, "u")
    assert len(authorizer.index) == 0


def test_ipv6_hosts_are_written_as_java_writes_them():
    assert acl_host("::1") == "0:0:0:0:0:0:0:1"
    assert acl_host("2001:db8::a0:1") == "2001:db8:0:0:0:0:a0:1"
    assert acl_host("::ffff:10.0.0.1") == "10.0.0.1"
    assert acl_host("fe80::1%eth0") == "fe80:0:0:0:0:0:0:1%eth0"
    authorizer = authorizer_with(acl("t", host="0:0:0:0:0:0:0:1"))
    assert allows(authorizer, Operation.READ, "t", host="::1")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([acl("t", Operation.WRITE)], True),
        ([acl("t", Operation.ALL)], True),
        ([acl("t")], False),
        ([acl("t", Operation.WRITE, host="10.0.0.9")], False),
        ([acl("t", Operation.WRITE), acl("t", Operation.WRITE, deny=True)], False),
        ([acl("t", Operation.WRITE), acl("t", Operation.WRITE, deny=True, prefixed=True)], False),
        ([acl("t", Operation.WRITE, prefixed=True), acl("t", Operation.WRITE, deny=True)], True),
        ([acl("*", Operation.WRITE), acl("t", Operation.WRITE, deny=True)], True),
        ([acl("t", Operation.WRITE), acl("*", Operation.ALL, deny=True, principal="User:*")], False),
    ],
)
def test_a_question_by_type_looks_for_a_name_that_no_denial_covers(entries, expected):
    assert authorizer_with(*entries).authorize_by_type(requester(), Operation.WRITE, TOPIC) is expected


def audit_lines(caplog, authorizer, action, *, principal="User:ada"):
    caplog.clear()
    caplog.set_level(TRACE, "kafka.authorizer.logger")
    authorizer.authorize(requester(principal), [action])
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_the_audit_log_names_request_and_rule(caplog):
    authorizer = authorizer_with(acl("t", Operation.WRITE), super_users="User:root")
    action = Action(Operation.DESCRIBE, TOPIC, "t")
    text = (
        "Principal = User:{} is {} operation = DESCRIBE from host = 10.0.0.1 on resource = Topic:LITERAL:t for request "
        "= Metadata with resourceRefCount = 1 based on rule {}"
    )
    rule = (
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=t, patternType=LITERAL, principal=User:ada, "
        "host=*, operation=WRITE, permissionType=ALLOW])"
    )
    assert audit_lines(caplog, authorizer, action) == [("DEBUG", text.format("ada", "Allowed", rule))]
    denied = text.format("bob", "Denied", "DefaultDeny")
    assert audit_lines(caplog, authorizer, action, principal="User:bob") == [("INFO", denied)]
    allowed = text.format("root", "Allowed", "SuperUser")
    assert audit_lines(caplog, authorizer, action, principal="User:root") == [("DEBUG", allowed)]


@pytest.mark.parametrize("principal", ["User:ada", "User:bob"])
def test_quiet_checks_are_logged_at_trace(caplog, principal):
    action = Action(Operation.READ, TOPIC, "t", log_if_allowed=False, log_if_denied=False)
    ((level, _),) = audit_lines(caplog, authorizer_with(acl("t")), action, principal=principal)
    assert level == "TRACE"


def test_answers_are_counted():
    authorizer = authorizer_with(acl("t"))
    authorizer.authorize(requester(), [Action(Operation.READ, TOPIC, "t"), Action(Operation.WRITE, TOPIC, "t")])
    assert (authorizer.requests, authorizer.denied) == (2, 1)


def test_unknown_codes_of_a_later_release_are_unknown():
    assert Operation(99) is Operation.UNKNOWN
    assert ResourceType(-3) is ResourceType.UNKNOWN
