"""The parts that `kafka-share-groups` and `kafka-streams-groups` have in common: flags, lists of groups, failures."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.client.admin import GroupListing
from kafkapy.errors import ApiError
from kafkapy.tools.group_description import print_table
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments, UsageError


def check_views(arguments: Arguments) -> None:
    """Raises UsageError for a flag that needs `--describe`, or for `--state` without `--describe` and `--list`."""
    if arguments.has("describe"):
        return
    refused = [name for name in ("members", "offsets", "verbose") if arguments.has(name)]
    if arguments.has("state") and not arguments.has("list"):
        refused.append("state")
    if refused:
        shown = ", ".join(refused)
        raise UsageError(f"Option(s) [{shown}] are unavailable given other options on the command line")


def choose_states(arguments: Arguments, known: Sequence[str]) -> list[str]:
    """Returns the states that --state names, in the spelling of `known`; case is ignored.

    Raises UsageError for a state that is not in `known`.
    """
    by_name = {each.lower(): each for each in known}
    words = arguments.values("state")
    wanted = [each.strip().lower() for word in words for each in word.split(",") if word]
    if any(each not in by_name for each in wanted):
        raise UsageError(f"Invalid state list '{','.join(words)}'. Valid states are: {', '.join(known)}")
    return [by_name[each] for each in wanted]


def print_listing(arguments: Arguments, found: Sequence[GroupListing], *, shows_states: bool) -> None:
    """Prints the names of groups, with their states in a table if `shows_states` is set, or as JSON with `--json`."""
    if arguments["json"]:
        print_json([each._asdict() for each in found])
    elif shows_states:
        print_table(
            [("GROUP", 15, lambda group: group.group_id), ("STATE", 0, lambda group: group.state)],
            found,
            begins_with_a_line=False,
        )
    else:
        for each in found:
            print(each.group_id)


class CommandFailed(Exception):
    """A failure whose reason is printed without the name of an exception."""


def report_failure(kind: str, error: ApiError | CommandFailed) -> None:
    """Prints why a command has failed; `kind` is the type of the groups that the command concerns, such as "share"."""
    reason = java_text(error) if isinstance(error, ApiError) else str(error)
    print(f"\nError: Executing {kind} group command failed due to {reason}")
