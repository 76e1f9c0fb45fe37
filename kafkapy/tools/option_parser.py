"""The parser of the tools that use joptsimple in Apache Kafka; `argument_parser` parses the arguments of all others.

Flags are written `--opt value`, `--opt=value`, `-opt value`, `-o value` or `-ovalue`, in any order and repeatedly; `--`
ends the flags. Long flags cannot be abbreviated, as in Kafka's tools. A required argument may begin with a dash:
`--offset -1` works. A switch takes no value; a value given with `=` is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafkapy.tools.option import TEXT, Arguments, Option, UnknownOption, UsageError


class OptionParser:
    """Parses the command lines of one tool. The object does not change after its construction."""

    def __init__(
        self, options: Iterable[Option], fill_in: Callable[[dict[str, list[Any]]], None] | None = None
    ) -> None:
        """Creates a parser of the flags `options`.

        `fill_in(found)` is called before required flags are checked. It may change `found`, which maps the name of each
        flag that was given to the list of its values.
        """
        self._options = tuple(options)
        self._fill_in = fill_in
        self._by_name = {name: option for option in self._options for name in (option.name, *option.aliases)}

    def parse(self, words: Sequence[str]) -> Arguments:
        """Returns the arguments in `words`, the command line after the name of the tool.

        Raises UsageError, with joptsimple's text, for unknown flags, for missing or invalid values, and for missing
        required flags; these may be missing if --help or --version is given.
        """
        rest = list(reversed(words))
        found: dict[str, list[Any]] = {}
        positionals: list[str] = []
        while rest:
            word = rest.pop()
            if word == "--":
                positionals += reversed(rest)
                break
            if word.startswith("--"):
                self._parse_long(word[2:], rest, found)
            elif word.startswith("-") and len(word) > 1:
                self._parse_short(word[1:], rest, found)
            else:
                positionals.append(word)
        if self._fill_in is not None:
            self._fill_in(found)
        if "help" not in found and "version" not in found:
            self._check_required(found)
        return Arguments(self._options, found, positionals)

    def _parse_long(self, word: str, rest: list[str], found: dict[str, list[Any]]) -> None:
        name, _, value = word.partition("=")
        self._add(self._option(name), value, rest, found)

    def _parse_short(self, word: str, rest: list[str], found: dict[str, list[Any]]) -> None:
        """Parses `-topic x`, `-t x`, `-tx`, or several switches of one letter in one word.

        `word` is the word without its dash. `rest` has the words after it in reverse order; the value of a flag may be
        taken from its end. Adds the values to `found`, by the name of the flag.
        """
        name, _, value = word.partition("=")
        if name in self._by_name:
            self._add(self._by_name[name], value, rest, found)
            return
        for index, letter in enumerate(word):
            option = self._option(letter)
            if option.argument is not None:
                self._add(option, word[index + 1 :], rest, found)
                return
            self._add(option, "", rest, found)

    def _option(self, name: str) -> Option:
        option = self._by_name.get(name)
        if option is None:
            raise UnknownOption(name)
        return option

    def _add(self, option: Option, value: str, rest: list[str], found: dict[str, list[Any]]) -> None:
        values = found.setdefault(option.name, [])
        if option.argument is None:
            return
        if not value:
            if option.argument_is_optional and (not rest or not _is_value(option, rest[-1])):
                return
            if not rest:
                raise UsageError(f"Option {option.name} requires an argument")
            value = rest.pop()
        for text in value.split(option.separator) if option.separator else (value,):
            values.append(_typed(option, text))

    def _check_required(self, found: dict[str, list[Any]]) -> None:
        missing = [option.name for option in self._options if option.is_required and option.name not in found]
        if missing:
            raise UsageError(f"Missing required option(s) [{', '.join(missing)}]")


def _is_value(option: Option, word: str) -> bool:
    """Returns whether a word is the value of an option whose value may be left out: it does not look like a flag, or is
    a negative number and the option takes a number."""
    if not word.startswith("-") or len(word) == 1:
        return True
    try:
        return option.type is not TEXT and option.type.parse(word) is not None
    except ValueError:
        return False


def _typed(option: Option, text: str) -> Any:
    try:
        return option.type.parse(text)
    except ValueError:
        raise UsageError(f"Cannot parse argument '{text}' of option {option.name}") from None
