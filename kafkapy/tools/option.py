"""The flags that a tool declares, and the values that the user gave for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kafkapy.decimal_text import is_number
from kafkapy.named_tuple import NamedTuple


class UsageError(Exception):
    """An invalid command line.

    If Apache Kafka's tool refuses the same command line, the message has the text that Apache Kafka's tool prints. The
    usage, or a reference to `--help`, is printed after the message.
    """


class UnknownOption(UsageError):
    """A flag that the tool does not have; `name` is the flag without dashes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not a recognized option")
        self.name = name


class ToolError(Exception):
    """A failure of a tool, which is printed as one line without usage or traceback."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ValueType(NamedTuple):
    """The type of an argument: its name in `--help`, and the function that parses its text.

    The function raises ValueError for an invalid text.
    """

    name: str
    parse: Callable[[str], Any]


def _whole_number(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not is_number(digits):
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
    """One flag of a tool. The object does not change after its construction.

    name, aliases: the flag and its other names, without dashes; a name of one letter is typed with a single dash.
    argument: the placeholder of its value in `--help`; None for a switch, which takes no value.
    argument_is_optional: whether the value may be left out (`--compression-codec`).
    default: the value if the flag is absent; `values` then returns it as the only value.
    is_required: whether the parser refuses a command line without the flag.
    is_many: whether the flag takes all words up to the next flag (argparse4j's nargs "+").
    separator: the character that divides several values in one argument; empty if an argument is one value.
    choices: the values that completion offers; argparse4j's parser accepts no others.
    group: the name of a set of flags of which at most one may be given (argparse4j).
    is_ours: whether Apache Kafka's tool lacks the flag.
    is_deprecated: whether completion leaves out the flag, which is still accepted.
    completes: the kind of value that completion offers: "file", "directory", "broker-key", "topic-key", "job", "topic",
        "group" or ""; the options that completion.NAMES_BY_OPTION lists need none.
    has_default_cluster: whether the servers of the user's default cluster replace an absent `bootstrap-server`.
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
    has_default_cluster: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag and its aliases as typed, the long form first: `--topic`, `-t`."""
        return tuple(f"-{name}" if len(name) == 1 else f"--{name}" for name in (self.name, *self.aliases))

    @property
    def flag(self) -> str:
        """The long form of the flag, as it is typed: `--topic`."""
        return self.flags[0]

    @property
    def default_text(self) -> str:
        """Returns the default as `--help`, the manual pages and the documentation print it; "" if there is none."""
        if isinstance(self.default, Enum):
            return self.default.name
        if isinstance(self.default, str):
            return repr(self.default)[1:-1]
        return "" if self.default is None else str(self.default)


class Arguments:
    """The parsed command line. The object does not change after its construction.

    `arguments["topic"]` is the value of a flag or its default; `has` returns whether the user gave the flag; `values`
    returns all its values; `positionals` are the words that belong to no flag; `command` is the name of the subcommand.
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
        """Returns whether the user gave the flag. Raises KeyError for a flag that the tool does not declare."""
        return self._options[name].name in self._found

    def declares(self, name: str) -> bool:
        """Returns whether the tool, or the subcommand, has this flag."""
        return name in self._options

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the flags that the user gave, each once, in order."""
        return tuple(self._found)

    def __getitem__(self, name: str) -> Any:
        """Returns the value of a flag or, if the flag was not given, its default. A flag without a default has the
        default None.

        For a switch, returns whether the switch was given. Raises UsageError if a flag with one value was given several
        times.
        """
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
        """Returns all values of a flag that may be repeated; if it was not given, a list of its default, or [] without
        a default."""
        option = self._options[name]
        found = list(self._found.get(name, ()))
        return found if found or option.default is None else [option.default]

    def require(self, *names: str) -> None:
        """Raises UsageError unless the user has given all flags in `names`; the message names the first flag that is
        missing."""
        for name in names:
            if not self.has(name):
                raise UsageError(f'Missing required argument "[{name}]"')

    def exclude(self, name: str, *others: str) -> None:
        """Raises UsageError if the flag `name` was given together with any of the flags in `others`."""
        for other in others:
            if self.has(name) and self.has(other):
                raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def require_one_of(self, *names: str) -> None:
        """Raises UsageError unless the user gave exactly one of the flags."""
        if sum(map(self.has, names)) != 1:
            shown = ", ".join(f"[{name}]" for name in names)
            raise UsageError(f"Exactly one of the following arguments is required: {shown}")


def unknown_keys(given: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """Yields a warning for each given key that is not known, with the nearest known key."""
    from difflib import get_close_matches  # needed for an error only

    for key in given:
        if key not in known:
            near = get_close_matches(key, known, 1, cutoff=0.8)
            suggestion = f"; did you mean {near[0]}?" if near else "."
            yield f"The property {key} is unknown and is ignored{suggestion}"


def parse_key_values(words: Iterable[str], *, accepts_missing: bool = True) -> dict[str, str]:
    """Returns `key=value` words as a dict; a word without a value has the value "".

    Raises UsageError for a word without a value if `accepts_missing` is False.
    """
    pairs: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not value and not accepts_missing:
            raise UsageError(f"Missing value for key {key}")
        pairs[key] = value
    return pairs
