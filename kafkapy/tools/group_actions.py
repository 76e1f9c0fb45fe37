"""The base class of the tools for groups: the choice of the action, and the flags that all of them have."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kafkapy.client.admin import Admin
from kafkapy.tools.option import LONG, Arguments, Option


class GroupActions(ABC):
    """The actions of a tool for groups of one kind. Not thread-safe."""

    def __init__(self, admin: Admin, arguments: Arguments) -> None:
        self._admin = admin
        self._arguments = arguments
        self._timeout: float = arguments["timeout"] / 1000

    def run(self) -> None:
        """Carries out the action that the arguments name."""
        actions = {
            "list": self.list_groups,
            "describe": self.describe,
            "delete": self.delete,
            "reset-offsets": self.reset_offsets,
            "delete-offsets": self.delete_offsets,
        }
        next(action for name, action in actions.items() if self._arguments.has(name))()

    @abstractmethod
    def list_groups(self) -> None:
        """Carries out `--list`: prints the groups."""

    @abstractmethod
    def describe(self) -> None:
        """Carries out `--describe`: prints the offsets, members or states of groups."""

    @abstractmethod
    def delete(self) -> None:
        """Carries out `--delete`: deletes groups."""

    @abstractmethod
    def reset_offsets(self) -> None:
        """Carries out `--reset-offsets`: plans new offsets of groups, and sets them with --execute."""

    @abstractmethod
    def delete_offsets(self) -> None:
        """Carries out `--delete-offsets`: deletes the offsets of a group."""


TIMEOUT = Option("timeout", "The longest time of a request in ms.", "timeout (ms)", LONG, default=30000)
STATE = Option(
    "state",
    "With --describe the state of the group; with --list the states of all, or those in these states: --list "
    "--state stable,empty",
    "",
    argument_is_optional=True,
)
TO_DATETIME = Option(
    "to-datetime", "Reset offsets to offset from datetime. Format: 'YYYY-MM-DDThh:mm:ss.sss'", "datetime"
)
TO_EARLIEST = Option("to-earliest", "Reset offsets to earliest offset.")
TO_LATEST = Option("to-latest", "Reset offsets to latest offset.")
# The flags that select the offsets of --reset-offsets; share groups have only three of them.
RESET_OPTIONS = (
    Option("to-offset", "Reset offsets to a specific offset.", "offset", LONG),
    Option("from-file", "Reset offsets to values defined in CSV file.", "path to CSV file", completes="file"),
    TO_DATETIME,
    Option(
        "by-duration",
        "Reset offsets to offset by duration from current timestamp. Format: 'PnDTnHnMnS'",
        "duration",
    ),
    TO_EARLIEST,
    TO_LATEST,
    Option("to-current", "Reset offsets to current offset."),
    Option(
        "shift-by",
        "Reset offsets shifting current offset by 'n', where 'n' can be positive or negative.",
        "number-of-offsets",
        LONG,
    ),
)
