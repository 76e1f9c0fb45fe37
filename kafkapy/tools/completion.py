"""`kafkapy completion bash|zsh|fish`: a script for the shell, made of the tools' own declarations.

It completes tools, subcommands, flags and the values that are known beforehand, for `kafkapy TOOL` and for the names of
Apache Kafka's scripts.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from kafkapy.tools.declaration import ARGPARSE_HELP, Tool
from kafkapy.tools.option import Option

SHELLS = ("bash", "zsh", "fish")
USAGE = f"""usage: kafkapy completion {{{",".join(SHELLS)}}}

Prints a completion script. To have it in every shell:

  bash:  kafkapy completion bash > ~/.local/share/bash-completion/completions/kafkapy
  zsh:   kafkapy completion zsh > "${{fpath[1]}}/_kafkapy"
  fish:  kafkapy completion fish > ~/.config/fish/completions/kafkapy.fish"""


class _Place(NamedTuple):
    """Where flags may stand: behind a tool's name and perhaps a subcommand."""

    tool: str
    command: str
    options: tuple[Option, ...]


def main(arguments: Sequence[str], tools: Mapping[str, tuple[str, str]], scripts: Mapping[str, str]) -> int:
    """Prints the script for a shell. `tools`: name -> (module, description); `scripts`: Kafka's script -> tool."""
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        print(USAGE, file=sys.stderr)
        return 1
    declared = [module.TOOL for name in tools if hasattr(module := import_module(tools[name][0]), "TOOL")]
    descriptions = {name: description for name, (_, description) in tools.items()}
    places = list(_places(declared))
    make = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments[0]]
    print("\n".join(make(declared, places, descriptions, scripts)))
    return 0


def _places(tools: Iterable[Tool]) -> Iterator[_Place]:
    for tool in tools:
        if tool.commands:
            for command in tool.commands:
                yield _Place(tool.name, command.name, (*command.options, ARGPARSE_HELP))
        else:
            yield _Place(tool.name, "", tool.all_options)


def _offered(options: Iterable[Option]) -> list[Option]:
    return [option for option in options if not option.is_deprecated]


def _bash(
    tools: Sequence[Tool], places: Sequence[_Place], descriptions: Mapping[str, str], scripts: Mapping[str, str]
) -> Iterator[str]:
    yield "# bash completion of kafkapy, made by `kafkapy completion bash`"
    yield "_kafkapy() {"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} name=${1##*/} tool command= flags="
    yield "  name=${name%.sh}"
    yield "  case $name in"
    for script, tool in scripts.items():
        yield f"    {script}) tool={tool}; command=${{COMP_WORDS[1]}} ;;"
    yield "    *)"
    yield '      if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'        COMPREPLY=($(compgen -W "{" ".join(descriptions)}" -- "$word")); return'
    yield "      fi"
    yield "      tool=${COMP_WORDS[1]}; command=${COMP_WORDS[2]} ;;"
    yield "  esac"
    yield "  case $tool/$before in"
    for tool_name, option in sorted({(place.tool, option) for place in places for option in place.options}, key=repr):
        pattern = " | ".join(f"{tool_name}/{flag}" for flag in option.flags)
        if option.choices:
            yield f'    {pattern}) COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); return ;;'
        elif option.completes:
            yield f'    {pattern}) COMPREPLY=($(compgen -f -- "$word")); return ;;'
        elif option.argument is not None and not option.argument_is_optional:
            yield f"    {pattern}) return ;;"
    yield "  esac"
    yield "  case $tool/$command in"
    for place in places:
        flags = " ".join(flag for option in _offered(place.options) for flag in option.flags if flag.startswith("--"))
        yield f'    {place.tool}/{place.command or "*"}) flags="{flags}" ;;'
    for each in tools:
        if each.commands:
            yield f'    {each.name}/*) flags="{" ".join(command.name for command in each.commands)}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$flags" -- "$word"))'
    yield "}"
    names = ["kafkapy", *(f"{script}{end}" for script in scripts for end in ("", ".sh"))]
    yield f"complete -o default -F _kafkapy {' '.join(names)}"


def _zsh(
    tools: Sequence[Tool], places: Sequence[_Place], descriptions: Mapping[str, str], scripts: Mapping[str, str]
) -> Iterator[str]:
    names = ["kafkapy", *(f"{script}{end}" for script in scripts for end in ("", ".sh"))]
    yield f"#compdef {' '.join(names)}"
    yield "# zsh completion of kafkapy, made by `kafkapy completion zsh`"
    yield "_kafkapy() {"
    yield "  local tool command name=${${words[1]:t}%.sh}"
    yield "  case $name in"
    for script, tool in scripts.items():
        yield f"    {script}) tool={tool}; command=$words[2] ;;"
    yield "    *)"
    yield "      if (( CURRENT == 2 )); then"
    yield "        local -a tools=("
    for name, description in descriptions.items():
        yield f"          {shlex.quote(f'{name}:{description}')}"
    yield "        )"
    yield "        _describe tool tools; return"
    yield "      fi"
    yield "      tool=$words[2]; command=$words[3]; shift words; (( CURRENT-- )) ;;"
    yield "  esac"
    yield "  case $tool/$command in"
    for place in places:
        yield f"    {place.tool}/{place.command or '*'})"
        yield "      _arguments \\"
        for option in _offered(place.options):
            for flag in option.flags:
                yield f"        {shlex.quote(_zsh_flag(flag, option))} \\"
        yield "        && return ;;"
    for each in tools:
        if each.commands:
            yield f"    {each.name}/*) compadd {' '.join(command.name for command in each.commands)} ;;"
    yield "  esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _kafkapy ]; then _kafkapy "$@"; else compdef _kafkapy ' + " ".join(names) + "; fi"


def _zsh_flag(flag: str, option: Option) -> str:
    meaning = option.description.split("\n")[0].replace("[", "(").replace("]", ")").replace(":", " ")
    text = f"*{flag}[{meaning}]"
    if option.argument is None:
        return text
    action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.completes else " "
    return f"{text}:{(option.argument or 'value').replace(':', ' ')}:{action}"


def _fish(
    tools: Sequence[Tool], places: Sequence[_Place], descriptions: Mapping[str, str], scripts: Mapping[str, str]
) -> Iterator[str]:
    yield "# fish completion of kafkapy, made by `kafkapy completion fish`"
    yield "complete -c kafkapy -f"
    for name, description in descriptions.items():
        yield f"complete -c kafkapy -n __fish_use_subcommand -a {name} -d {_fish_text(description)}"
    for each in tools:
        for command in each.commands:
            shown = _fish_text(command.description)
            yield f"complete -c kafkapy -n '__fish_seen_subcommand_from {each.name}' -a {command.name} -d {shown}"
    by_tool = {tool: script for script, tool in scripts.items()}
    for place in places:
        condition = f"__fish_seen_subcommand_from {place.tool}"
        if place.command:
            condition += f"; and __fish_seen_subcommand_from {place.command}"
        programs = [f"-c kafkapy -n '{condition}'"]
        if place.tool in by_tool:
            inner = f" -n '__fish_seen_subcommand_from {place.command}'" if place.command else ""
            programs += [f"-c {by_tool[place.tool]}{end}{inner}" for end in ("", ".sh")]
        for option in _offered(place.options):
            for program in programs:
                yield f"complete {program} {_fish_flag(option)}"


def _fish_flag(option: Option) -> str:
    words = [f"-l {name}" if len(name) > 1 else f"-s {name}" for name in (option.name, *option.aliases)]
    if option.argument is not None:
        if option.choices:
            words.append(f"-x -a {_fish_text(' '.join(option.choices))}")
        else:
            words.append("-r -F" if option.completes else "-x")
    return " ".join([*words, f"-d {_fish_text(option.description)}"])


def _fish_text(text: str) -> str:
    line = text.split("\n")[0].replace("\\", "\\\\").replace("'", "\\'")
    return f"'{line}'"
