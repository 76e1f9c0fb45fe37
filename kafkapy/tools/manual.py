"""The command `kafkapy man`: prints or installs manual pages, made from the declarations of the tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kafkapy import __version__
from kafkapy.tools.declaration import Tool
from kafkapy.tools.declared_tools import declared_tools
from kafkapy.tools.option import Option

USAGE = """usage: kafkapy man [TOOL]
       kafkapy man --install [DIRECTORY]

Prints the manual page of a tool, or that of kafkapy, in the format of man(7): `kafkapy man topics | man -l -`.
--install writes the pages of all tools to DIRECTORY, or to the user's directory for manual pages."""
SECTION = "1"


def main(arguments: Sequence[str], tools: Mapping[str, tuple[str, str]], scripts: Mapping[str, str]) -> int:
    """Prints or installs pages; returns the exit code.

    `tools` maps each tool's name to its module and description, and `scripts` maps Kafka's scripts to tools.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if len(arguments) > (2 if arguments[:1] == ["--install"] else 1):
        print(USAGE, file=sys.stderr)
        return 1
    declared = {tool.name: tool for tool in declared_tools(tools)}
    if arguments[:1] == ["--install"]:
        pages = {"kafkapy": overview(tools)}
        pages |= {f"kafkapy-{name}": page(tool, tools[name][1], scripts) for name, tool in declared.items()}
        return install(pages, Path(arguments[1]) if len(arguments) > 1 else user_directory())
    if not arguments or arguments[0] == "kafkapy":
        print(overview(tools), end="")
        return 0
    if arguments[0] not in declared:
        print(f"kafkapy man: there is no page of {arguments[0]}; `kafkapy --help` lists the tools", file=sys.stderr)
        return 1
    print(page(declared[arguments[0]], tools[arguments[0]][1], scripts), end="")
    return 0


def user_directory() -> Path:
    """Returns the directory in which man looks for pages of this user."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "man" / f"man{SECTION}"


def install(pages: Mapping[str, str], directory: Path) -> int:
    """Writes the text of each page to a file in `directory`, and prints the directory.

    `pages` maps the name of each page to its text. Returns the exit code: 1 if a file cannot be written, otherwise 0.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (directory / f"{name}.{SECTION}").write_text(text)
    except OSError as error:
        print(f"kafkapy man: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    print(f"{directory}: {len(pages)} pages")
    return 0


def overview(tools: Mapping[str, tuple[str, str]]) -> str:
    """Returns the manual page of kafkapy, which lists the tools.

    `tools` maps each tool's name to its module and description.
    """
    lines = [
        *_head("kafkapy", "a broker compatible with Apache Kafka, and its tools"),
        ".SH SYNOPSIS",
        r".B kafkapy\fR [\fB\-\-profile\fR \fINAME\fR] \fITOOL\fR [\fIARGUMENT\fR ...]",
        ".SH TOOLS",
    ]
    for name, (_, description) in tools.items():
        lines += [".TP", rf"\fBkafkapy-{_text(name)}\fR({SECTION})", _line(description)]
    lines += [
        ".SH ENVIRONMENT",
        *_entry("KAFKAPY_BOOTSTRAP_SERVERS", "The brokers of a command line that names none."),
        *_entry("KAFKAPY_PROFILE", "The profile of a command line that names no brokers, as --profile."),
        *_entry("KAFKAPY_TRACE", "If it is set, unexpected errors are printed with a traceback."),
        ".SH FILES",
        *_entry(
            "~/.config/kafkapy/profiles/NAME.properties",
            "Profiles: configuration files of clients, with bootstrap.servers. The profile default is used if nothing "
            "else names a cluster.",
        ),
    ]
    return "\n".join(lines) + "\n"


def page(tool: Tool, summary: str, scripts: Mapping[str, str]) -> str:
    """Returns the manual page of a tool as roff text.

    `summary` is the tool's purpose in a few words, and `scripts` maps the names of Kafka's scripts to tools.
    """
    lines = [*_head(f"kafkapy-{tool.name}", summary), ".SH SYNOPSIS"]
    for command in tool.commands:
        lines += [rf"\fBkafkapy {_text(tool.name)} {_text(command.name)}\fR {_synopsis(command.options)}", ".br"]
    if not tool.commands:
        lines += [rf"\fBkafkapy {_text(tool.name)}\fR {_synopsis(tool.options)}", ".br"]
    names = [name for name, target in scripts.items() if target == tool.name]
    lines += [rf"\fB{_text(name)}.sh\fR ..." for name in names]
    lines += [".SH DESCRIPTION", *_paragraphs(tool.description)]
    if tool.options:
        lines += [".SH OPTIONS", *_options(tool.options)]
    for command in tool.commands:
        lines += [f'.SH "COMMAND {_text(command.name.upper())}"', *_paragraphs(command.description)]
        lines += _options(command.options)
    if tool.examples:
        lines.append(".SH EXAMPLES")
        for example in tool.examples:
            lines += [".PP", f"{_line(example.purpose)}:", ".PP", ".nf", ".RS"]
            lines += [_line(f"kafkapy {tool.name} {example.words}"), ".RE", ".fi"]
    lines += [".SH SEE ALSO", rf"\fBkafkapy\fR({SECTION})"]
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH "{_text(name.upper())}" "{SECTION}" "" "kafkapy {__version__}" "kafkapy"'
    yield ".SH NAME"
    yield rf"{_text(name)} \- {_text(summary)}"


def _synopsis(options: Iterable[Option]) -> str:
    """Returns the options for a manual page's synopsis: the required ones, and a placeholder for all others."""
    required = [rf"\fB{_text(each.flag)}\fR {_placeholder(each)}".rstrip() for each in options if each.is_required]
    return " ".join([*required, r"[\fIOPTION\fR ...]"])


def _options(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        if option.is_deprecated:
            continue
        yield ".TP"
        yield ", ".join(rf"\fB{_text(flag)}\fR" for flag in option.flags) + f" {_placeholder(option)}".rstrip()
        description = option.description
        if option.choices and option.argument is not None:
            description += f" Accepted are {', '.join(option.choices)}."
        if option.default_text:
            description += f" The default is {option.default_text}."
        paragraphs = list(_paragraphs(description))
        yield from paragraphs[1:]  # the first begins with .PP, which would end the entry


def _placeholder(option: Option) -> str:
    if option.argument is None:
        return ""
    text = rf"\fI{_text(option.argument or 'value')}\fR"
    return f"[{text}]" if option.argument_is_optional else text


def _entry(name: str, meaning: str) -> list[str]:
    return [".TP", rf"\fB{_text(name)}\fR", _line(meaning)]


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n")):
        yield ".PP" if not paragraph.startswith("\t") else ".br"
        yield _line(paragraph.strip())


def _line(text: str) -> str:
    """Returns a line of text for roff, in which a leading dot or apostrophe does not begin a command of roff."""
    escaped = _text(text)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _text(text: str) -> str:
    """Returns a text in which the characters that roff interprets or changes are escaped."""
    plain = text.replace("\\", r"\e").replace("\t", " ").replace("\n", " ")
    return (
        plain.replace("-", r"\-")
        .replace("'", r"\(aq")
        .replace("`", r"\(ga")
        .replace("^", r"\(ha")
        .replace("~", r"\(ti")
    )
