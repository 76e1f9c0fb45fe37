"""The decisions of Kafka's StandardAuthorizer, by a look at every ACL."""

from __future__ import annotations

from kafkapy.security.acl import Operation, PatternType, Permission

IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def concerns(acl, resource_type, name):
    """Returns whether an ACL is about a resource, for any principal."""
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def applies(acl, principal, host, operation):
    """Returns whether an ACL about a resource decides about this request."""
    operations = {Operation.ALL, operation}
    if acl.permission_type == Permission.ALLOW:
        operations |= IMPLYING.get(operation, set())
    return acl.principal in (principal, "User:*") and acl.host in (host, "*") and acl.operation in operations


def is_allowed(acls, principal, host, operation, resource_type, name, *, allows_without_acl=False):
    """Returns the decision about one action of a principal that is no super user."""
    about = [acl for acl in acls if concerns(acl, resource_type, name)]
    deciding = [acl for acl in about if applies(acl, principal, host, operation)]
    if any(acl.permission_type == Permission.DENY for acl in deciding):
        return False
    if deciding:
        return True
    return allows_without_acl and not about


def is_some_name_allowed(acls, principal, host, operation, resource_type, names):
    """Returns whether one of the names is allowed, when no operation implies another one."""
    of_type = [
        acl
        for acl in acls
        if acl.resource_type == resource_type
        and acl.principal in (principal, "User:*")
        and acl.host in (host, "*")
        and acl.operation in (Operation.ALL, operation)
    ]
    for name in names:
        deciding = [acl for acl in of_type if concerns(acl, resource_type, name)]
        if deciding and all(acl.permission_type == Permission.ALLOW for acl in deciding):
            return True
    return False
