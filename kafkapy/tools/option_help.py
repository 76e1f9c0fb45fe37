"""The text of `--help` and of usage errors, in the layouts of joptsimple and argparse4j."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Sequence

from kafkapy.tools.declaration import Command, Grammar, Tool
from kafkapy.tools.option import Option, UnknownOption, UsageError

WIDTH = 80
ARGPARSE_WIDTH = 75
_GAP = "  "
_INDENT = "  "


def help_page(tool: Tool, program: str, command: Command | None = None) -> str:
    """Returns the text of `--help` for the tool or for its subcommand `command`: purpose, flags and examples."""
    if tool.grammar is Grammar.JOPTSIMPLE:
        text = f"{tool.description}\n{option_table(tool.all_options)}"
    else:
        text = _argparse_page(tool, program, command)
    return text + _examples(tool, program, command)


def usage_error(tool: Tool, program: str, message: str, command: Command | None = None) -> str:
    """Returns the text that Apache Kafka's tool prints for a refused command line: the error and the usage."""
    if tool.usage_line:
        return tool.usage_line.format(message) + "\n"
    if tool.grammar is Grammar.JOPTSIMPLE:
        return f"{message}\n{option_table(tool.all_options)}"
    name = tool.kafka_name or program
    return f"{_argparse_usage(tool, name, command)}{name}: error: {message}\n"


def short_usage_error(tool: Tool, program: str, error: UsageError) -> str:
    """Returns the error and a reference to `--help`, with the nearest flag for an unknown one."""
    suggestion = ""
    if isinstance(error, UnknownOption):
        names = [option.name for option in tool.all_options if not option.is_deprecated]
        near = difflib.get_close_matches(error.name, names, 1)
        suggestion = f"Did you mean --{near[0]}? " if near else ""
    return f"{str(error).rstrip()}\n{suggestion}See `{program} --help`.\n"


def option_table(options: Iterable[Option]) -> str:
    """Returns joptsimple's table of flags and descriptions, sorted by name."""
    options = sorted(options, key=lambda option: option.name)
    head = "Option (* = required)" if any(option.is_required for option in options) else "Option"
    rows = [(head, "Description"), ("-" * len(head), "-" * len("Description"))]
    rows += [(_shown(option), _described(option)) for option in options]
    left = min((WIDTH - len(_GAP)) // 2, max(len(flag) for flag, _ in rows))
    right = WIDTH - len(_GAP) - left
    lines = []
    for flag, description in rows:
        flags, descriptions = _wrapped(flag, left), _wrapped(description, right)
        height = max(len(flags), len(descriptions))
        flags += [""] * (height - len(flags))
        descriptions += [""] * (height - len(descriptions))
        lines += [f"{a:<{left}}{_GAP}{b:<{right}}" for a, b in zip(flags, descriptions, strict=True)]
    return "\n".join(lines) + "\n"


def _shown(option: Option) -> str:
    text = ", ".join(sorted(option.flags, key=len))
    if option.argument is not None:
        argument = f"{option.type.name}: {option.argument}" if option.argument else option.type.name
        text += f" [{argument}]" if option.argument_is_optional else f" <{argument}>"
    return f"* {text}" if option.is_required else text


def _described(option: Option) -> str:
    if option.default is None:
        return option.description
    return f"{option.description} (default: {option.default_text})"


def _wrapped(text: str, width: int) -> list[str]:
    """Wraps a text at `width`; all lines but the first of each paragraph are indented."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, width, subsequent_indent=_INDENT, break_on_hyphens=False) or [""]
    return lines


def _argparse_usage(tool: Tool, name: str, command: Command | None) -> str:
    """Returns the wrapped usage; after a long program name the flags begin on a line of their own."""
    if command is not None:
        name = f"{name} {command.name}"
    parts = ["[-h]"]
    if tool.commands and command is None:
        parts += ["{" + ",".join(each.name for each in tool.commands) + "}", "..."]
    options = command.options if command is not None else tool.options
    required_groups = command.required_groups if command is not None else tool.required_groups
    parts += [_usage_of(option) for option in options if not option.group]
    for group in dict.fromkeys(option.group for option in options if option.group):
        members = [option.flag + _metavar(option) for option in options if option.group == group]
        opening, closing = "()" if group in required_groups else "[]"
        members[0], members[-1] = opening + members[0], members[-1] + closing
        parts += [f"{member} |" for member in members[:-1]] + members[-1:]
    head = f"usage: {name} "
    indent, lines = (len(head), [head.rstrip()]) if len(head) <= 30 else (7, [head.rstrip(), " " * 6])
    for part in parts:
        if len(lines[-1]) + 1 + len(part) > ARGPARSE_WIDTH and lines[-1].strip():
            lines.append(" " * (indent - 1))
        lines[-1] += f" {part}"
    return "\n".join(lines) + "\n"


def _usage_of(option: Option) -> str:
    part = option.flag + _metavar(option)
    return part if option.is_required else f"[{part}]"


def _metavar(option: Option) -> str:
    if option.argument is None:
        return ""
    return f" {option.argument}" + (f" [{option.argument} ...]" if option.is_many else "")


def _argparse_page(tool: Tool, program: str, command: Command | None) -> str:
    name = tool.kafka_name or program
    description = command.description if command is not None else tool.description
    lines = [_argparse_usage(tool, name, command), *textwrap.wrap(description, ARGPARSE_WIDTH), ""]
    options: Sequence[Option] = command.options if command is not None else tool.options
    if tool.commands and command is None:
        lines.append("positional arguments:")
        lines.append("  {" + ",".join(each.name for each in tool.commands) + "}")
        for each in tool.commands:
            lines += _entry(f"  {each.name}", each.description)
        lines.append("")
    lines.append("optional arguments:")
    lines += _entry("-h, --help", "show this help message and exit")
    for option in options:
        lines += _entry(", ".join(flag + _metavar(option) for flag in option.flags), _described(option))
    return "\n".join(lines) + "\n"


def _entry(flags: str, description: str) -> list[str]:
    """Returns the lines of a flag and its description, which begins at column 25.

    After a long flag the description begins on the next line.
    """
    start = f"  {flags}"
    lines = textwrap.wrap(description.replace("\n", " "), ARGPARSE_WIDTH - 25) or [""]
    if len(start) <= 23:
        return [f"{start:<25}{lines[0]}", *(f"{'':25}{line}" for line in lines[1:])]
    return [start, *(f"{'':25}{line}" for line in lines)]


def _examples(tool: Tool, program: str, command: Command | None) -> str:
    prefix = f"{command.name} " if command is not None else ""
    examples = [example for example in tool.examples if example.words.startswith(prefix)]
    if not examples:
        return ""
    lines = ["", "Examples", ""]
    for example in examples:
        lines += [f"  {example.purpose}:", f"    {program} {example.words}".rstrip(), ""]
    return "\n".join(lines)
