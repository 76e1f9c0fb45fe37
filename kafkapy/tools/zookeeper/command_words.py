"""The words of one command of the shell: quotes, and flags as in Apache Commons CLI, which ZooKeeper's shell uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from kafkapy.decimal_text import is_number
from kafkapy.named_tuple import NamedTuple

_WORD = re.compile(r"""\s*("[^"]*"|'[^']*'|[^"'\s]\S*)""")
_EXCEPTION = "org.apache.commons.cli."
_NUMBER = re.compile(r"-\d+(\.\d*)?")


class CommandError(Exception):
    """A command that fails; the shell prints the message.

    `exit_code` is the status with which the shell exits if this command was the last one.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Words(NamedTuple):
    """The flags of a command, with their values ("" for a switch), and its words that belong to no flag."""

    flags: Mapping[str, str]
    arguments: list[str]


class Flags(NamedTuple):
    """The flags, one letter each, that a command accepts.

    `switches` have no value, and `valued` are followed by a value. At most one of the flags in `group` may be given. If
    `needs_group` is not "", exactly one of them must be given, and `needs_group` is the name of the group in the error
    message.
    """

    switches: str = ""
    valued: str = ""
    group: str = ""
    needs_group: str = ""


def split(line: str) -> list[str]:
    """Returns the words of a line. Blanks separate the words; a word in quotes may contain blanks."""
    words = [match[1] for match in _WORD.finditer(line)]
    return [word[1:-1] if len(word) > 1 and word[0] in "\"'" and word[0] == word[-1] else word for word in words]


def parse_words(words: Collection[str], accepted: Flags) -> Words:
    """Returns the flags with their values, and the other words; "--" ends the flags, and a negative number is no flag.

    Raises CommandError, with the text of Apache Commons CLI, for flags that `accepted` does not permit.
    """
    flags: dict[str, str] = {}
    arguments: list[str] = []
    rest = list(reversed(list(words)))
    while rest:
        word = rest.pop()
        if word == "--":
            arguments += reversed(rest)
            break
        if len(word) < 2 or word[0] != "-" or _NUMBER.fullmatch(word):
            arguments.append(word)
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter not in accepted.switches + accepted.valued:
                raise CommandError(f"{_EXCEPTION}UnrecognizedOptionException: Unrecognized option: {word}")
            _check_group(letter, flags, accepted)
            flags[letter] = ""
            if letter in accepted.valued:
                flags[letter] = word[position + 1 :] or _value(letter, rest)
                break
    if accepted.needs_group and not any(letter in flags for letter in accepted.group):
        raise CommandError(f"{_EXCEPTION}MissingOptionException: Missing required option: {accepted.needs_group}")
    return Words(flags, arguments)


def _check_group(letter: str, flags: Mapping[str, str], accepted: Flags) -> None:
    other = next((each for each in flags if each in accepted.group), letter)
    if letter in accepted.group and other != letter:
        raise CommandError(
            f"{_EXCEPTION}AlreadySelectedException: The option '{letter}' was specified but an option from this group "
            f"has already been selected: '{other}'"
        )


def _value(letter: str, rest: list[str]) -> str:
    if not rest or (rest[-1].startswith("-") and not _NUMBER.fullmatch(rest[-1])):
        raise CommandError(f"{_EXCEPTION}MissingArgumentException: Missing argument for option: {letter}")
    return rest.pop()


def number(text: str, flag: str) -> int:
    """Returns the number in `text`, which is the value of the flag `flag`. Raises CommandError if it is no number."""
    digits = text.removeprefix("-")
    if not is_number(digits):
        raise CommandError(f"-{flag} takes a number, not {text!r}")
    return int(text)
