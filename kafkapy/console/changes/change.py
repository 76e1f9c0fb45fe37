"""The declaration of a change that a user can make to a cluster in the console: its form and its plan.

The plan describes the effect of the change. It is made twice: for the page on which the user reviews the change, and
again when the change is applied.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.problem import Problem
from kafkapy.named_tuple import NamedTuple

Fields = Mapping[str, str]


class Field(NamedTuple):
    """A field of a form: a selection if it has `choices`, a text area if `lines` is more than 1, else a line of text.

    The user cannot edit the value if `is_fixed`.
    """

    name: str
    label: str
    hint: str = ""
    choices: tuple[str, ...] = ()
    lines: int = 1
    is_fixed: bool = False
    is_required: bool = False


class Plan(NamedTuple):
    """The effect of a change before it is applied.

    summary: a sentence on what will happen.
    commands: the words of the tool commands that do the same, each without the program and the connection.
    file: the content of the file FILE that a command reads, or "".
    apply: carries the change out and returns a sentence on the outcome. May raise ApiError.
    target: the path of the page to show afterwards, without the part that names the cluster.
    columns, rows: a table that compares the present state with the new one.
    confirm: the text that the user has to type; "" if a click is enough.
    audited: the texts that the audit topic gets instead of those in fields of the form, because these have passwords.
    """

    summary: str
    commands: tuple[tuple[str, ...], ...]
    apply: Callable[[], str]
    target: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    confirm: str = ""
    file: str = ""
    audited: Fields = {}

    def command_lines(self, servers: str) -> list[str]:
        """Returns the commands as lines for a shell; `servers` are the brokers to connect to."""
        lines = [shlex.join(["kafkapy", each[0], "--bootstrap-server", servers, *each[1:]]) for each in self.commands]
        return [f"echo {shlex.quote(self.file)} > FILE", *lines] if self.file else lines


class Change(NamedTuple):
    """A change that users can make: its name in the URL, its title, its form, and the function that plans it.

    `plan` raises Problem, ApiError or ValueError if the change cannot be made.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    plan: Callable[[ClusterView, Fields], Plan]
    is_dangerous: bool = False


def required(fields: Fields, name: str) -> str:
    """Returns the value of the form field `name` without surrounding spaces. Raises Problem if the value is empty."""
    text = fields.get(name, "").strip()
    if not text:
        raise Problem(400, f"The field {name} is empty.")
    return text


def whole_number(fields: Fields, name: str, low: int, high: int, default: int | None = None) -> int:
    """Returns the value of the form field `name` as a whole number from `low` to `high`.

    Returns `default` if the field is empty. Raises Problem for another text, for a number out of range, and for an
    empty field without `default`.
    """
    text = fields.get(name, "").strip()
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19 and low <= int(text) <= high):
        raise Problem(400, f"{name} is a whole number from {low} to {high}, not {text[:40]!r}.")
    return int(text)


def key_values(text: str) -> dict[str, str]:
    """Returns the keys and values of a text of lines `key=value`. Raises Problem for any other line."""
    found = {}
    for line in filter(str.strip, text.splitlines()):
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise Problem(400, f"{line[:80]!r} is not key=value.")
        found[key.strip()] = value.strip()
    return found
