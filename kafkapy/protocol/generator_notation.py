"""Reads message definitions: the notation of `definitions/README.md` into Message, Struct and Field.

Part of the generator: standard library only. Every set of versions here is *effective*: the versions in which the
field, and everything that encloses it, exists.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from kafkapy.named_tuple import NamedTuple

FLEXIBLE_NEVER = 32767
PRIMITIVES = frozenset(
    ["bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "string", "bytes", "records", "uuid"]
)
Versions = frozenset[int]
NO_VERSIONS: Versions = frozenset()


class DefinitionError(Exception):
    """Raised for a message definition that does not follow the notation. The message names file and line."""


class Field:
    """One field of a struct, with the attributes that `definitions/README.md` describes."""

    __slots__ = (
        "default",
        "entity",
        "ignorable",
        "is_array",
        "is_key",
        "name",
        "nullable",
        "rigid",
        "struct",
        "tag",
        "tagged",
        "type",
        "versions",
        "zero_copy",
    )

    name: str
    type: str  # a primitive, or the name of a struct; without the brackets of an array
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int  # -1: none
    tagged: Versions
    default: str | None  # as written; None for the type's usual default
    is_key: bool
    ignorable: bool
    zero_copy: bool
    rigid: bool
    entity: str | None
    struct: "Struct | None"

    @property
    def attribute(self) -> str:
        return snake_case(self.name)


class Struct:
    """A struct of a message: its fields in order, and the versions in which it is used."""

    __slots__ = ("fields", "name", "versions")

    def __init__(self, name: str, versions: Versions) -> None:
        self.name = name
        self.versions = versions
        self.fields: list[Field] = []


class Message:
    """The definition of one request, response, header or record.

    `structs` contains the nested structs; each follows the structs that it contains.
    """

    __slots__ = (
        "behaviours",
        "flexible",
        "key",
        "kind",
        "listeners",
        "module",
        "name",
        "root",
        "served",
        "structs",
        "unstable",
        "versions",
    )

    def __init__(self, name: str, kind: str, key: int | None, versions: Versions) -> None:
        self.name = name
        self.kind = kind
        self.key = key
        self.versions = versions
        self.flexible = NO_VERSIONS
        self.listeners: list[str] = []
        self.module = "kafka-clients"
        self.unstable = False
        self.served: dict[str, Versions] = {}
        self.behaviours: dict[str, int] = {}  # first version by name, of the since lines
        self.root = Struct(name, versions)
        self.structs: dict[str, Struct] = {}

    @property
    def first_flexible(self) -> int:
        return min(self.flexible, default=FLEXIBLE_NEVER)

    def first_versions(self) -> dict[str, int]:
        """Returns the first version of each named behaviour of the message, and of each field that is newer than its
        struct.

        The keys are the names in snake case; a behaviour is named in a `since` line of the definition. Raises
        DefinitionError if a name has two first versions.
        """
        found = {snake_case(name): first for name, first in self.behaviours.items()}
        for struct in (self.root, *self.structs.values()):
            for field in struct.fields:
                first = min(field.versions, default=0)
                if first > min(struct.versions, default=first) and found.setdefault(field.attribute, first) != first:
                    raise DefinitionError(f"{self.name}: {field.name} has two first versions")
        return found


class Definition(NamedTuple):
    """One definition file: its name, its first comment and its messages."""

    name: str
    about: str
    messages: list[Message]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name.replace("KRaft", "Kraft")).lower()


def parse_versions(text: str, allowed: Versions) -> Versions:
    """Returns the versions that `text` names: `3+`, `0-12`, `1`, `0,8` or `none`. Versions that are not in `allowed`
    are left out, unless `allowed` is empty."""
    found: set[int] = set()
    if text == "none":
        return NO_VERSIONS
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(\+|-(\d+))?", part)
        if not match:
            raise DefinitionError(f"not a range of versions: {text!r}")
        first = int(match[1])
        last = max(allowed, default=first) if match[2] == "+" else int(match[3] or first)
        found.update(range(first, last + 1))
    return frozenset(found) if not allowed else frozenset(found) & allowed


def is_versions(word: str) -> bool:
    return re.fullmatch(r"[\d,+-]*\d[\d,+-]*", word) is not None


def parse_definition(path: Path) -> Definition:
    """Reads one `.msg` file and returns its definition. Raises DefinitionError with the number of the faulty line."""
    about = ""
    messages: list[Message] = []
    blocks: list[list[tuple[int, str]]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        about = about or (line[1:].strip() if line.startswith("#") else "")
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            blocks.append([])
        blocks[-1].append((number, line))
    for block in blocks:
        try:
            messages.append(MessageParser(block).parse())
        except DefinitionError as error:
            raise DefinitionError(f"{path}: {error}") from None
    return Definition(path.stem, about, messages)


class MessageParser:
    """The parser that converts the lines of one message into a Message. Use an instance only once."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self.lines = lines

    def parse(self) -> Message:
        number, line = self.lines[0]
        try:
            self.message = self.parse_header(line)
            for number, line in self.lines[1:]:  # noqa: B007 the number is for the error below
                if line.startswith("  served: "):
                    self.parse_served(line.split(": ", 1)[1])
                elif line.startswith("  since "):
                    _, first, name = line.split()
                    if int(first) not in self.message.versions or name in self.message.behaviours:
                        raise DefinitionError("not a version of the message, or a name twice")
                    self.message.behaviours[name] = int(first)
            number = self.parse_fields()
            self.link()
        except (DefinitionError, ValueError, KeyError, IndexError) as error:
            raise DefinitionError(f"line {number}: {error!r} in {line!r}") from None
        return self.message

    def parse_header(self, line: str) -> Message:
        name, _, rest = line.partition(": ")
        kind, *parts = [part.strip() for part in rest.split(", ")]
        kind, _, key = kind.partition(" ")
        attributes = dict(part.partition(" ")[::2] for part in parts)
        versions = parse_versions(attributes.pop("versions"), NO_VERSIONS)
        message = Message(name, kind, int(key) if key else None, versions)
        message.flexible = parse_versions(attributes.pop("flexible", "none"), versions)
        message.listeners = attributes.pop("on", "").split()
        message.module = attributes.pop("in", message.module)
        message.unstable = attributes.pop("unstable", None) is not None
        if attributes:
            raise DefinitionError(f"unknown attributes {sorted(attributes)}")
        return message

    def parse_served(self, text: str) -> None:
        for part in text.split(", "):
            release, _, versions = part.partition(" ")
            self.message.served[release] = parse_versions(versions, self.message.versions)

    def parse_fields(self) -> int:
        """Reads the fields of the message, and returns the number of its last line in the file.

        A stack contains the open struct at each depth of indentation.
        """
        stack: list[Struct] = [self.message.root]
        number = 0
        for number, line in self.lines[1:]:
            if line.startswith(("  served: ", "  since ")):
                continue
            depth = (len(line) - len(line.lstrip())) // 2
            words = line.split()
            if words[0] == "struct":
                versions = parse_versions(words[2], self.message.versions) if words[2:] else self.message.versions
                stack[1:] = [self.add_struct(words[1], versions)]
                continue
            if depth > len(stack):
                raise DefinitionError(f"line {number} is indented too far")
            del stack[max(depth, 1) :]
            field = self.parse_field(words, stack[-1].versions)
            stack[-1].fields.append(field)
            if field.type not in PRIMITIVES and field.type not in self.message.structs and self.has_children(number):
                stack.append(self.add_struct(field.type, field.versions))
        return number

    def has_children(self, number: int) -> bool:
        indents = {n: len(line) - len(line.lstrip()) for n, line in self.lines}
        following = [indent for n, indent in indents.items() if n > number]
        return bool(following) and following[0] > indents[number]

    def add_struct(self, name: str, versions: Versions) -> Struct:
        if name in self.message.structs:
            raise DefinitionError(f"struct {name} is defined twice")
        struct = self.message.structs[name] = Struct(name, versions)
        return struct

    def parse_field(self, words: list[str], enclosing: Versions) -> Field:
        field = Field()
        field.name, kind = words[0], words[1]
        rest = words[2:]
        field.versions = parse_versions(rest.pop(0), enclosing) if rest and is_versions(rest[0]) else enclosing
        field.is_array = kind.startswith("[]")
        field.type = kind.removeprefix("[]").removesuffix("?")
        field.nullable = field.versions if kind.endswith("?") else NO_VERSIONS
        field.tag, field.tagged = -1, NO_VERSIONS
        field.default = field.entity = field.struct = None
        field.is_key = field.ignorable = field.zero_copy = field.rigid = False
        self.parse_attributes(field, rest)
        return field

    def parse_attributes(self, field: Field, words: list[str]) -> None:
        flags = {"key": "is_key", "ignorable": "ignorable", "zerocopy": "zero_copy", "rigid": "rigid"}
        while words:
            word = words.pop(0)
            if word in flags:
                setattr(field, flags[word], True)
            elif word == "null":
                field.nullable = parse_versions(words.pop(0), field.versions)
            elif word == "tag":
                field.tag, field.tagged = int(words.pop(0)), field.versions
                if words[:1] == ["in"]:
                    field.tagged = parse_versions(words[1], field.versions)
                    del words[:2]
            elif word == "=":
                field.default = words.pop(0)
            elif word.startswith("@"):
                field.entity = word[1:]
            else:
                raise DefinitionError(f"unknown attribute {word!r} of field {field.name}")

    def link(self) -> None:
        """Sets the `struct` of every field whose type is a struct, and removes the structs that no field uses.

        Sorts the structs so that each one follows the structs of its own fields.
        """
        ordered: dict[str, Struct] = {}

        def visit(struct: Struct) -> None:
            for field in struct.fields:
                if field.type not in PRIMITIVES:
                    field.struct = self.message.structs[field.type]
                    visit(field.struct)
                    ordered[field.type] = field.struct

        visit(self.message.root)
        self.message.structs = ordered


def read_definitions(directory: Path) -> list[Definition]:
    return [parse_definition(path) for path in sorted(directory.glob("*.msg"))]


def all_messages(definitions: Iterable[Definition]) -> dict[str, Message]:
    return {message.name: message for definition in definitions for message in definition.messages}
