"""What a tool declares: its flags; and what it gets: the values that the user gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class UsageError(Exception):
    """A command line that cannot be carried out.  The message is Kafka's; the tool's usage follows it."""


class ToolError(Exception):
    """A tool failed: one line to the user, without usage and without a trace."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ValueType(NamedTuple):
    """How the text of an argument becomes a value; `name` is what help calls it.  `parse` raises ValueError."""

    name: str
    parse: Callable[[str], Any]


def _whole_number(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError(text)
        number = int(text)
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(text)
        return number

    return parse


TEXT = ValueType("String", str)
INTEGER = ValueType("Integer", _whole_number(32))
LONG = ValueType("Long", _whole_number(64))
DOUBLE = ValueType("Double", float)


@dataclass(frozen=True)
class Option:
    """One flag of a tool, declared once.  Immutable.

    name: without dashes; `aliases` likewise (one letter: a single dash).
    argument: what its value is, in a word or two; None for a switch, which takes none.
    argument_is_optional: the value may be left out (`--compression-codec`).
    default: the value when the flag is absent; `values` gives it as the only one.
    is_required: the parser refuses a command line without it.
    is_many: one flag takes all words up to the next flag (argparse4j's nargs "+").
    separator: one argument holds several values, split by this character.
    choices: the only values that are taken; also what completion offers.
    group: of several flags with the same group at most one may be given (argparse4j).
    is_ours: Apache Kafka's tool does not have it.
    is_deprecated: still taken, and not offered by completion.
    completes: "file", "directory" or "" for what completion offers as the value.
    """

    name: str
    description: str
    argument: str | None = None
    type: ValueType = TEXT
    default: Any = None
    is_required: bool = False
    argument_is_optional: bool = False
    is_many: bool = False
    separator: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    group: str = ""
    is_ours: bool = False
    is_deprecated: bool = False
    completes: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """As typed, the long form first: `--topic`, `-t`."""
        return tuple(f"-{name}" if len(name) == 1 else f"--{name}" for name in (self.name, *self.aliases))

    @property
    def flag(self) -> str:
        """The long form."""
        return self.flags[0]


class Arguments:
    """What the user gave.  Immutable after parsing.

    `arguments["topic"]` is the value of a flag, or its default; `has` whether the user gave it; `values` all its
    values; `positionals` the words that belong to no flag; `command` the subcommand of a tool that has some.
    """

    def __init__(
        self,
        options: Iterable[Option],
        found: Mapping[str, Sequence[Any]],
        positionals: Sequence[str] = (),
        command: str = "",
    ) -> None:
        self._options = {option.name: option for option in options}
        self._found = found
        self.positionals = tuple(positionals)
        self.command = command

    def has(self, name: str) -> bool:
        """Whether the user gave the flag; KeyError for one that the tool does not declare."""
        return self._options[name].name in self._found

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the flags that the user gave, each once, in order."""
        return tuple(self._found)

    def __getitem__(self, name: str) -> Any:
        """The value: for a switch whether it was given, else the argument, the default or None.  UsageError if a
        flag with one value was given several times."""
        option = self._options[name]
        if option.argument is None:
            return name in self._found
        values = self._found.get(name)
        if not values:
            return option.default
        if len(values) > 1:
            raise UsageError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0]

    def values(self, name: str) -> list[Any]:
        """All values of a flag that may come again; the default as the only one, or none."""
        option = self._options[name]
        found = list(self._found.get(name, ()))
        return found if found or option.default is None else [option.default]

    def require(self, *names: str) -> None:
        """UsageError for the first that the user did not give."""
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def exclude(self, name: str, *others: str) -> None:
        """UsageError if `name` was given together with any of the others."""
        for other in others:
            if self.has(name) and self.has(other):
                raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def require_one_of(self, *names: str) -> None:
        """UsageError unless the user gave exactly one."""
        if sum(map(self.has, names)) != 1:
            shown = ", ".join(f"[{name}]" for name in names)
            raise UsageError(f"Exactly one of the following arguments is required: {shown}")


def parse_key_values(words: Iterable[str], *, accepts_missing: bool = True) -> dict[str, str]:
    """`key=value` words as a mapping, the value may hold `=`; UsageError for a missing value unless it is accepted."""
    pairs: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not value and not accepts_missing:
            raise UsageError(f"Missing value for key {key}")
        pairs[key] = value
    return pairs
