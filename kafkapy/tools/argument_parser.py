"""The parser of the tools that use argparse4j in Apache Kafka: the performance tools, and the tools with subcommands.

argparse4j is a Java library modelled on Python's argparse. The parser here uses argparse, and reports errors with the
texts of argparse4j.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kafkapy.tools.option import Arguments, Option, UsageError


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises UsageError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class ArgumentParser:
    """Parses the command lines of one tool or subcommand; flags may be abbreviated. The object does not change after
    its construction.
    """

    def __init__(
        self,
        options: Sequence[Option],
        groups: Sequence[str] = (),
        fill_in: Callable[[dict[str, list[Any]]], None] | None = None,
    ) -> None:
        """Creates a parser of the flags `options`.

        A command line may have at most one of the options with the same `Option.group`, and must have exactly one of
        them if `groups` contains the name of the group. `fill_in(found)` is called before required flags are checked.
        It may add flags to `found`, which maps the name of each flag that was given to the list of its values.
        """
        self._options = tuple(options)
        self._groups = tuple(groups)
        self._fill_in = fill_in

    def parse(self, words: Sequence[str], command: str = "") -> Arguments:
        """Parses the words of a command line after the name of the tool and of the subcommand.

        `command` is the name of the subcommand, which the result contains; "" if there is none. Raises UsageError, with
        argparse4j's text, if the words are not valid.
        """
        parser = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
        for option in self._options:
            parser.add_argument(*option.flags, dest=option.name, **_declaration(option))
        known, unknown = parser.parse_known_args(list(words))
        if unknown:
            raise UsageError(f"unrecognized arguments: '{' '.join(unknown)}'")
        found = {name: _flat(value) for name, value in vars(known).items()}
        if self._fill_in is not None:
            self._fill_in(found)
        if "help" not in found and "version" not in found:
            self._check(found)
        return Arguments(self._options, found, (), command)

    def _check(self, found: dict[str, list[Any]]) -> None:
        for option in self._options:
            if option.is_required and option.name not in found:
                raise UsageError(f"argument {'/'.join(option.flags)} is required")
        for group in dict.fromkeys(option.group for option in self._options if option.group):
            members = [option for option in self._options if option.group == group]
            given = [option for name in found for option in members if option.name == name]
            if len(given) > 1:
                first, second = ("/".join(option.flags) for option in given[:2])
                raise UsageError(f"argument {second}: not allowed with argument {first}")
            if not given and group in self._groups:
                raise UsageError(f"one of the arguments {' '.join('/'.join(o.flags) for o in members)} is required")


def _declaration(option: Option) -> dict[str, Any]:
    """Returns the keyword arguments that argparse's add_argument needs for an option."""
    if option.argument is None:
        return {"action": "store_const", "const": True}
    declaration: dict[str, Any] = {"action": "append", "type": _conversion(option)}
    if option.is_many:
        declaration["nargs"] = "+"
    elif option.argument_is_optional:
        declaration["nargs"] = "?"
    return declaration


def _conversion(option: Option) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        if option.choices and text not in option.choices:
            offered = ",".join(option.choices)
            raise argparse.ArgumentTypeError(f"invalid choice: '{text}' (choose from {{{offered}}})")
        try:
            return option.type.parse(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"could not convert '{text}' to {option.type.name} (For input string: \"{text}\")"
            ) from None

    return convert


def _flat(value: Any) -> list[Any]:
    """Returns all values of a flag as one list; each occurrence of the flag may have several."""
    if value is True:
        return []
    return [each for part in value for each in (part if isinstance(part, list) else [part]) if each is not None]
