"""The flags of the tool `kafka-acls`, and the parsing of their values."""

from __future__ import annotations

from kafkapy.security.acl import Operation, PatternType
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, ZOOKEEPER
from kafkapy.tools.option import Option, ValueType

_PATTERNS_OF_FILTERS = "ANY and MATCH are for --list and --remove"


def _pattern_type(text: str) -> PatternType:
    found = PatternType.__members__.get(text.upper(), PatternType.UNKNOWN)
    if found is PatternType.UNKNOWN:
        raise ValueError(text)
    return found


def operation_of(text: str) -> Operation:
    """Returns the operation that tools call `text`, such as `Read` or `DescribeConfigs`, in any case.

    Returns UNKNOWN for an unknown name.
    """
    wanted = text.strip().lower()
    return next((each for each in Operation if operation_name(each).lower() == wanted), Operation.UNKNOWN)


def operation_name(operation: Operation) -> str:
    """Returns the name of an operation in tools: DESCRIBE_CONFIGS is `DescribeConfigs`."""
    return "".join(word.capitalize() for word in operation.name.split("_"))


_OPERATIONS = tuple(operation_name(each) for each in Operation if each >= Operation.ALL)
LISTED_AS_JSON = Option("json", "With --list: print the ACLs as JSON.", is_ours=True)
PATTERN_TYPE = ValueType("String", _pattern_type)
OPTIONS = (
    BOOTSTRAP_SERVER,
    ZOOKEEPER,
    Option(
        "bootstrap-controller",
        "The controllers to connect to instead.",
        "controller to connect to",
    ),
    Option(
        "command-config",
        "A file with the admin client's configuration, one key=value per line.",
        "command-config",
        completes="file",
    ),
    Option("cluster", "The ACLs apply to the cluster, for example for Create, ClusterAction and IdempotentWrite."),
    Option("topic", "A topic that the ACLs apply to; * is every topic. May be repeated.", "topic"),
    Option("group", "A consumer group that the ACLs apply to; * is every group. May be repeated.", "group"),
    Option(
        "transactional-id", "A transactional id that the ACLs apply to; * is every id. May be repeated.",
        "transactional-id",
    ),
    Option(
        "delegation-token", "A delegation token that the ACLs apply to; * is every token. May be repeated.",
        "delegation-token",
    ),
    Option(
        "resource-pattern-type",
        "How a name is understood: LITERAL is one resource, PREFIXED all resources whose name begins with it; "
        f"{_PATTERNS_OF_FILTERS}.",
        "ANY|MATCH|LITERAL|PREFIXED",
        PATTERN_TYPE,
        default=PatternType.LITERAL,
    ),
    Option("add", "Add ACLs."),
    Option("remove", "Remove ACLs."),
    Option("list", "List the ACLs of the named resources, or all ACLs."),
    Option(
        "operation",
        f"An operation that the ACLs allow or deny: {', '.join(_OPERATIONS)}. May be repeated.",
        "String",
        default="ALL",
        choices=_OPERATIONS,
    ),
    Option(
        "allow-principal",
        "A principal to allow, such as User:alice; User:* is everybody. May be repeated.",
        "allow-principal",
    ),
    Option("deny-principal", "A principal to deny, even if other ACLs allow it. May be repeated.", "deny-principal"),
    Option("principal", "With --list: a principal whose ACLs are listed. May be repeated.", "principal"),
    Option("allow-host", "An IP address from which --allow-principal has access; by default any.", "allow-host"),
    Option("deny-host", "An IP address from which --deny-principal has no access; by default any.", "deny-host"),
    Option(
        "producer",
        "The ACLs of a producer: Write, Describe and Create on --topic, Write and Describe on --transactional-id.",
    ),
    Option("consumer", "The ACLs of a consumer: Read and Describe on --topic, Read on --group."),
    Option("idempotent", "With --producer: also IdempotentWrite on the cluster."),
    Option("force", "Remove ACLs without a question."),
    Option("user-principal", "A user that the ACLs apply to, as a resource. May be repeated.", "user-principal"),
    LISTED_AS_JSON,
)  # fmt: skip
