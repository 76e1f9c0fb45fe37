"""The tool `kafka-delegation-tokens`: creates, renews, expires and describes delegation tokens."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping

from kafkapy.client.admin import Admin, DelegationToken
from kafkapy.errors import ApiError
from kafkapy.security.principal import parse_principal
from kafkapy.tools.bootstrap import SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

_ACTIONS = ("create", "renew", "expire", "describe")
# Action -> the flags that it needs, and those that it refuses, each in the order in which Apache Kafka checks them.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_REFUSED: Mapping[str, tuple[str, ...]] = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renew-time-period", "max-life-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}
_TIME = JavaDateFormat("yyyy-MM-dd'T'HH:mm")
_HEADINGS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def run(arguments: Arguments) -> int:
    """Carries out the action that the flags name, such as --create. Returns the exit code, 0."""
    action = check_arguments(arguments)
    properties = admin_properties(arguments)
    try:
        with Admin(properties) as admin:
            _RUNS[action](admin, arguments)
    except ApiError as error:
        raise ToolError(java_text(error)) from None
    return 0


def create(admin: Admin, arguments: Arguments) -> None:
    """Creates a token and prints it."""
    # Unlike Apache Kafka's tool, refuse wrong principals before anything is printed.
    renewers, owners = (_principals(arguments, f"{role}-principal") for role in ("renewer", "owner"))
    lifetime_ms = arguments["max-life-time-period"]
    is_json = arguments["json"]
    if not is_json:
        print(f"Calling create token operation with renewers :{_list(renewers)} , max-life-time-period :{lifetime_ms}")
    created = admin.create_delegation_token(
        owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=lifetime_ms
    )
    if is_json:
        print_json(_as_json(created))
        return
    print(f"Created delegation token with tokenId : {created.token_id}")
    print()
    _print_tokens([created])


def renew(admin: Admin, arguments: Arguments) -> None:
    """Renews a token and prints its new time of expiry."""
    hmac, period_ms = arguments["hmac"], arguments["renew-time-period"]
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    expiry_ms = admin.renew_delegation_token(_decoded(hmac), renew_period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_TIME.format(expiry_ms)}")


def expire(admin: Admin, arguments: Arguments) -> None:
    """Expires a token and prints its new time of expiry."""
    hmac, period_ms = arguments["hmac"], arguments["expiry-time-period"]
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    expiry_ms = admin.expire_delegation_token(_decoded(hmac), expiry_period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_TIME.format(expiry_ms)}")


def describe(admin: Admin, arguments: Arguments) -> None:
    """Prints the tokens of the named owners. If no owner is named, it prints no token, as Apache Kafka's tool does."""
    owners = _principals(arguments, "owner-principal")
    if arguments["json"]:
        print_json([_as_json(each) for each in admin.describe_delegation_tokens(owners)])
        return
    if owners:
        print(f"Calling describe token operation for owners: {_list(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_tokens(owners)
    print(f"Total number of tokens : {len(tokens)}")
    _print_tokens(tokens)


_RUNS = {"create": create, "renew": renew, "expire": expire, "describe": describe}


def _print_tokens(tokens: Iterable[DelegationToken]) -> None:
    print(_row(*_HEADINGS))
    for each in tokens:
        hmac = b64encode(each.hmac).decode()
        times = map(_TIME.format, (each.issue_timestamp, each.expiry_timestamp, each.max_timestamp))
        print()
        print(_row(each.token_id, hmac, each.owner, each.requester, _list(each.renewers), *times))


def _row(*values: str) -> str:
    return "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}".format(*values)


def _as_json(token: DelegationToken) -> dict[str, object]:
    return {
        "token_id": token.token_id,
        "hmac": b64encode(token.hmac).decode(),
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issue_timestamp": token.issue_timestamp,
        "expiry_timestamp": token.expiry_timestamp,
        "max_timestamp": token.max_timestamp,
    }


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def _principals(arguments: Arguments, flag: str) -> list[str]:
    """Returns the principals that a flag names. Raises ToolError for a text that is not `TYPE:NAME`."""
    try:
        return [str(parse_principal(text.strip())) for text in arguments.values(flag) if text]
    except ValueError as error:
        raise ToolError(str(error)) from None


def _decoded(hmac: str) -> bytes:
    try:
        return b64decode(hmac, validate=True)
    except binascii.Error as error:
        raise ToolError(f"--hmac is not base64: {error}") from None


def check_arguments(arguments: Arguments) -> str:
    """Returns the name of the action's flag, such as "create".

    Raises UsageError, with Kafka's text, for flags that contradict each other or are missing.
    """
    actions = [each for each in _ACTIONS if arguments.has(each)]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    (action,) = actions
    arguments.require("bootstrap-server", "command-config", *_NEEDED[action])
    arguments.exclude(action, *_REFUSED[action])
    return action


TOOL = Tool(
    name="delegation-tokens",
    description="This tool helps to create, renew, expire, or describe delegation tokens.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "String"),
        Option(
            "command-config",
            "A file with the client's configuration, one key=value per line; by default the profile. The client must "
            "authenticate, and not by a token.",
            "String",
            completes="file",
        ),
        Option("create", "Create a token."),
        Option("renew", "Renew a token: it expires after --renew-time-period."),
        Option("expire", "Make a token expire after --expiry-time-period."),
        Option("describe", "Print the tokens that --owner-principal owns or may renew."),
        Option(
            "owner-principal",
            "With --create: the owner of the token, if it is not the client. With --describe: a principal whose tokens "
            "are printed; may be repeated.",
            "String",
        ),
        Option(
            "renewer-principal",
            "With --create: a principal that may renew the token, such as User:alice. May be repeated.",
            "String",
        ),
        Option(
            "max-life-time-period",
            "With --create: the token's longest life in milliseconds; -1 is delegation.token.max.lifetime.ms of the "
            "broker.",
            "Long",
            LONG,
        ),
        Option(
            "renew-time-period",
            "With --renew: milliseconds until the token expires; -1 is delegation.token.expiry.time.ms of the broker.",
            "Long",
            LONG,
        ),
        Option(
            "expiry-time-period",
            "With --expire: milliseconds until the token expires; -1 ends the token at once.",
            "Long",
            LONG,
        ),
        Option("hmac", "With --renew and --expire: the HMAC of the token, in base64.", "String"),
        Option("json", "With --create and --describe: print the tokens as JSON.", is_ours=True),
    ),
    examples=(
        Example(
            "A token that bob may renew",
            "--bootstrap-server localhost:9092 --command-config client.properties --create --max-life-time-period -1 "
            "--renewer-principal User:bob",
        ),
        Example(
            "The tokens of alice",
            "--bootstrap-server localhost:9092 --command-config client.properties --describe "
            "--owner-principal User:alice",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
