"""The command `kafkapy completion bash|zsh|fish`: prints or installs a completion script.

The script is generated from the options of the tools. It completes tools, subcommands, flags, and values that are
known when it is generated, for `kafkapy TOOL` and for the names of Apache Kafka's scripts. For the names of topics and
groups it calls `kafkapy completion names`, which requests them from the broker.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kafkapy.config.table import STATIC_ROWS, TOPIC_ROWS
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import ARGPARSE_HELP, Tool
from kafkapy.tools.declared_tools import SHELLS, declared_tools
from kafkapy.tools.job_catalog import job_paths
from kafkapy.tools.option import Option

FILE_NAMES = {"bash": "kafkapy", "zsh": "_kafkapy", "fish": "kafkapy.fish"}
# The kinds of names that the broker is asked for, and the options that have them as values.
NAMES = ("topic", "group")
NAMES_BY_OPTION = {
    **dict.fromkeys(("topic", "input-topic", "input-topics", "output-topic"), "topic"),
    **dict.fromkeys(("group", "group-id", "consumer-group"), "group"),
}
USAGE = f"""usage: kafkapy completion {{{",".join(SHELLS)}}} [--install [DIRECTORY]]

Prints a completion script for kafkapy and for the names of Apache Kafka's scripts. --install writes it to DIRECTORY, or
to the user's directory of the shell, which it creates, and prints what it has written:

  bash:  kafkapy completion bash --install    (bash loads the file if the package bash-completion is installed)
  zsh:   kafkapy completion zsh --install     (prints the line that ~/.zshrc needs)
  fish:  kafkapy completion fish --install"""


class _Place(NamedTuple):
    """The beginning of a command line, and what shell completion offers after it.

    The command line begins with the name of the tool `tool` and of its subcommand `command`, which is "" if there is
    none. After them completion offers the flags in `options` and words of the kind `completes`, such as "topic"; ""
    stands for no words.
    """

    tool: str
    command: str
    options: tuple[Option, ...]
    completes: str


class _Subject(NamedTuple):
    """The content of a completion script.

    `places` are the beginnings of command lines after which flags and words are offered. `descriptions` has the purpose
    of each tool by its name, and `scripts` the tool of each of Apache Kafka's scripts. `words` are the values that are
    offered for each kind of `Option.completes`.
    """

    tools: Sequence[Tool]
    places: Sequence[_Place]
    descriptions: Mapping[str, str]
    scripts: Mapping[str, str]
    words: Mapping[str, Sequence[str]]

    @property
    def programs(self) -> list[str]:
        """The names of all programs that the script completes."""
        return ["kafkapy", *(f"{script}{end}" for script in self.scripts for end in ("", ".sh"))]


def main(arguments: Sequence[str], tools: Mapping[str, tuple[str, str]], scripts: Mapping[str, str]) -> int:
    """Prints or installs the completion script for a shell; returns the exit code.

    `tools` maps each tool's name to its module and description, and `scripts` maps Kafka's scripts to tools.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if arguments[:1] == ["names"]:
        from kafkapy.tools.completion_names import print_names  # needs the client

        return print_names(arguments[1:])
    is_installed = arguments[1:2] == ["--install"]
    if not arguments or arguments[0] not in SHELLS or len(arguments) > (3 if is_installed else 1):
        print(USAGE, file=sys.stderr)
        return 1
    shell = arguments[0]
    declared = declared_tools(tools)
    subject = _Subject(
        declared,
        list(_places(declared)),
        {name: description for name, (_, description) in tools.items()},
        scripts,
        {
            "broker-key": [f"{key}=" for key in STATIC_ROWS],
            "topic-key": [f"{key}=" for key in TOPIC_ROWS],
            "job": list(job_paths()),
            "tool": list(tools),
        },
    )
    make: Callable[[_Subject], Iterator[str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    text = "\n".join(make(subject)) + "\n"
    if is_installed:
        return install(shell, text, subject.programs[1:], Path(arguments[2]) if len(arguments) > 2 else None)
    print(text, end="")
    return 0


def user_directory(shell: str) -> Path:
    """Returns the directory in which a shell looks for the completion scripts of this user."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    if shell == "bash":
        return Path(os.environ.get("BASH_COMPLETION_USER_DIR") or data / "bash-completion") / "completions"
    if shell == "zsh":
        return data / "zsh" / "site-functions"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fish" / "completions"


def install(shell: str, text: str, scripts: Iterable[str], directory: Path | None) -> int:
    """Writes the script into `directory`; if `directory` is None, into the directory in which the shell looks for
    scripts.

    For bash and fish it also writes symbolic links, by which the shell finds the script for the names of Apache Kafka's
    scripts. Returns the exit code: 1 if a file could not be written, or if the name of a link belongs to another file.
    """
    is_default = directory is None
    directory = user_directory(shell) if directory is None else directory
    target = directory / FILE_NAMES[shell]
    # zsh reads the names of all programs from the first line of the one file.
    links = [] if shell == "zsh" else [target.with_name(script + target.suffix) for script in scripts]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        occupied = [link for link in links if link.exists() and not link.is_symlink()]
        for link in links:
            if link not in occupied:
                link.unlink(missing_ok=True)
                link.symlink_to(target.name)
    except OSError as error:
        print(f"kafkapy completion: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    print(target)
    if shell == "zsh" and is_default:
        print(f"Add this line to ~/.zshrc, before compinit: fpath=({shlex.quote(str(directory))} $fpath)")
    for link in occupied:
        print(f"kafkapy completion: {link} exists already and was left unchanged", file=sys.stderr)
    return 1 if occupied else 0


def _places(tools: Iterable[Tool]) -> Iterator[_Place]:
    for tool in tools:
        if tool.commands:
            yield _Place(tool.name, "", (*tool.options, ARGPARSE_HELP), "")
            for command in tool.commands:
                yield _Place(tool.name, command.name, (*command.options, ARGPARSE_HELP), command.completes)
        else:
            yield _Place(tool.name, "", tool.all_options, tool.completes)


def _kind(option: Option) -> str:
    """Returns the kind of words that completion offers as the value of an option; "" if it offers none.

    The kind is `Option.completes`, if that is not empty. Otherwise it is "topic" or "group" for the options in
    NAMES_BY_OPTION, whose values are names of topics or groups on the broker.
    """
    return option.completes or (NAMES_BY_OPTION.get(option.name, "") if option.argument is not None else "")


def _offered(options: Iterable[Option]) -> list[Option]:
    """Returns the options that completion offers: those that are not deprecated."""
    return [option for option in options if not option.is_deprecated]


def _variable(kind: str) -> str:
    """Returns the name of the shell variable that holds the words of a kind of `Option.completes`."""
    return f"_kafkapy_{kind.replace('-', '_')}s"


def _bash(subject: _Subject) -> Iterator[str]:
    yield "# bash completion of kafkapy, made by `kafkapy completion bash`"
    for kind, words in subject.words.items():
        yield f'{_variable(kind)}="{" ".join(words)}"'
    # The function's argument is the kind of names; the words typed so far may name the brokers.
    yield "_kafkapy_names() {"
    yield '  local program=kafkapy; [ "${COMP_WORDS[0]##*/}" != kafkapy ] || program=${COMP_WORDS[0]/#\\~/$HOME}'
    yield '  "$program" completion names "$1" -- "${COMP_WORDS[@]}" 2>/dev/null </dev/null'
    yield "}"
    yield "_kafkapy() {"
    yield "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} name=${1##*/}"
    yield "  local tool first=1 command= commands= flags= index"
    # bash divides `--flag=value` at the equals sign.
    yield '  [ "$word" != = ] || word='
    yield '  [ "$before" != = ] || [ "$COMP_CWORD" -lt 2 ] || before=${COMP_WORDS[COMP_CWORD-2]}'
    yield "  case ${name%.sh} in"
    for script, tool in subject.scripts.items():
        yield f"    {script}) tool={tool} ;;"
    yield "    *)"
    yield '      if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'        COMPREPLY=($(compgen -W "{" ".join(subject.descriptions)}" -- "$word")); return'
    yield "      fi"
    yield "      tool=${COMP_WORDS[1]} first=2 ;;"
    yield "  esac"
    yield "  case $tool in"
    for each in subject.tools:
        if each.commands:
            yield f'    {each.name}) commands="{" ".join(command.name for command in each.commands)}" ;;'
    yield "  esac"
    yield "  for ((index = first; index < COMP_CWORD; index++)); do"
    yield '    case " $commands " in *" ${COMP_WORDS[index]} "*) command=${COMP_WORDS[index]}; break ;; esac'
    yield "  done"
    yield "  case $tool/$before in"
    pairs = {(place.tool, option) for place in subject.places for option in place.options}
    for tool_name, option in sorted(pairs, key=repr):
        action = _bash_values(option)
        if action:
            yield f"    {' | '.join(f'{tool_name}/{flag}' for flag in option.flags)}) {action} return ;;"
    yield "  esac"
    yield "  case $tool/$command in"
    for place in subject.places:
        flags = " ".join(flag for option in _offered(place.options) for flag in option.flags if flag.startswith("--"))
        if place.completes:
            yield f"    {place.tool}/{place.command})"
            yield f'      case $word in -*) flags="{flags}" ;; *) {_bash_words(place.completes)} return ;; esac ;;'
        else:
            names = "$commands " if not place.command else ""
            yield f'    {place.tool}/{place.command}) flags="{names}{flags}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$flags" -- "$word"))'
    yield "}"
    yield f"complete -o default -F _kafkapy {' '.join(subject.programs)}"


def _bash_values(option: Option) -> str:
    """Returns the bash statements that complete the value of an option.

    Returns "" if completion offers no values for the option, and the option takes no value or may be given without one.
    """
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word"));'
    if _kind(option):
        return _bash_words(_kind(option))
    return "" if option.argument is None or option.argument_is_optional else ":;"


def _bash_words(kind: str) -> str:
    if kind in ("file", "directory"):
        return f'COMPREPLY=($(compgen {"-f" if kind == "file" else "-d"} -- "$word"));'
    source = f"$(_kafkapy_names {kind})" if kind in NAMES else f"${_variable(kind)}"
    words = f'COMPREPLY=($(compgen -W "{source}" -- "$word"));'
    # The value follows the equals sign of a key without a blank.
    return f"{words} compopt -o nospace 2>/dev/null;" if kind.endswith("-key") else words


def _zsh(subject: _Subject) -> Iterator[str]:
    yield f"#compdef {' '.join(subject.programs)}"
    yield "# zsh completion of kafkapy, made by `kafkapy completion zsh`"
    for kind, words in subject.words.items():
        yield f"{_variable(kind)}=({' '.join(words)})"
    yield "_kafkapy_names() {"
    yield "  local program=kafkapy; [ ${typed[1]:t} != kafkapy ] || program=${~typed[1]}"
    yield '  compadd -- ${(f)"$($program completion names $1 -- $typed 2>/dev/null </dev/null)"}'
    yield "}"
    yield "_kafkapy() {"
    yield "  local -a typed=($words)"
    yield "  local tool command= name=${${words[1]:t}%.sh} each"
    yield "  local -a commands"
    yield "  case $name in"
    for script, tool in subject.scripts.items():
        yield f"    {script}) tool={tool} ;;"
    yield "    *)"
    yield "      if (( CURRENT == 2 )); then"
    yield "        local -a tools=("
    for name, description in subject.descriptions.items():
        yield f"          {shlex.quote(f'{name}:{description}')}"
    yield "        )"
    yield "        _describe tool tools; return"
    yield "      fi"
    yield "      tool=$words[2]; shift words; (( CURRENT-- )) ;;"
    yield "  esac"
    yield "  case $tool in"
    for each in subject.tools:
        if each.commands:
            yield f"    {each.name}) commands=({' '.join(command.name for command in each.commands)}) ;;"
    yield "  esac"
    yield "  for each in ${words[2,CURRENT-1]}; do"
    yield "    if (( ${commands[(Ie)$each]} )); then command=$each; break; fi"
    yield "  done"
    # The subcommand is no operand of the command that _arguments completes.
    yield '  if [ -n "$command" ]; then words=("${(@)words:#$command}"); (( CURRENT-- )); fi'
    yield "  case $tool/$command in"
    for place in subject.places:
        yield f"    {place.tool}/{place.command})"
        yield "      _arguments \\"
        for option in _offered(place.options):
            for flag in option.flags:
                yield f"        {shlex.quote(_zsh_flag(flag, option))} \\"
        if place.completes:
            yield f"        {shlex.quote(f'*:{place.completes}:{_zsh_words(place.completes)}')} \\"
        elif not place.command:
            yield "        '*:command:{compadd -a commands}' \\"
        yield "        && return ;;"
    yield "  esac"
    yield "}"
    programs = " ".join(subject.programs)
    yield f'if [ "$funcstack[1]" = _kafkapy ]; then _kafkapy "$@"; else compdef _kafkapy {programs}; fi'


def _zsh_flag(flag: str, option: Option) -> str:
    meaning = option.description.split("\n")[0].replace("[", "(").replace("]", ")").replace(":", " ")
    text = f"*{flag}[{meaning}]"
    if option.argument is None:
        return text
    action = f"({' '.join(option.choices)})" if option.choices else _zsh_words(_kind(option))
    return f"{text}:{(option.argument or 'value').replace(':', ' ')}:{action}"


def _zsh_words(kind: str) -> str:
    if kind in ("file", "directory", ""):
        return {"file": "_files", "directory": "_files -/", "": " "}[kind]
    if kind in NAMES:
        return f"{{_kafkapy_names {kind}}}"
    ending = '-S "" ' if kind.endswith("-key") else ""
    return f"{{compadd {ending}-a {_variable(kind)}}}"


def _fish(subject: _Subject) -> Iterator[str]:
    yield "# fish completion of kafkapy, made by `kafkapy completion fish`"
    for kind, words in subject.words.items():
        yield f"set -g {_variable(kind)} {' '.join(words)}"
    yield "function _kafkapy_names"
    yield "  set -l typed (commandline -opc)"
    yield "  set -l program kafkapy; string match -q '*kafkapy' -- $typed[1]; and set program $typed[1]"
    yield "  $program completion names $argv[1] -- $typed 2>/dev/null </dev/null"
    yield "end"
    yield "complete -c kafkapy -f"
    for name, description in subject.descriptions.items():
        yield f"complete -c kafkapy -n __fish_use_subcommand -a {name} -d {_fish_text(description)}"
    scripts_by_tool = {tool: script for script, tool in subject.scripts.items()}
    for each in subject.tools:
        names = " ".join(command.name for command in each.commands)
        for command in each.commands:
            end = f"-a {command.name} -d {_fish_text(command.description)}"
            seen = f"__fish_seen_subcommand_from {each.name}; and not __fish_seen_subcommand_from {names}"
            yield f"complete -c kafkapy -n '{seen}' {end}"
            if each.name in scripts_by_tool:
                for ending in ("", ".sh"):
                    script = f"{scripts_by_tool[each.name]}{ending}"
                    yield f"complete -c {script} -f -n 'not __fish_seen_subcommand_from {names}' {end}"
    for place in subject.places:
        condition = f"__fish_seen_subcommand_from {place.tool}"
        if place.command:
            condition += f"; and __fish_seen_subcommand_from {place.command}"
        programs = [f"-c kafkapy -n '{condition}'"]
        if place.tool in scripts_by_tool:
            inner = f" -n '__fish_seen_subcommand_from {place.command}'" if place.command else ""
            programs += [f"-c {scripts_by_tool[place.tool]}{end}{inner}" for end in ("", ".sh")]
        for program in programs:
            for option in _offered(place.options):
                yield f"complete {program} {_fish_flag(option)}"
            if place.completes:
                yield f"complete {program} {_fish_words(place.completes)}"


def _fish_flag(option: Option) -> str:
    words = [f"-l {name}" if len(name) > 1 else f"-s {name}" for name in (option.name, *option.aliases)]
    if option.argument is not None:
        if option.choices:
            words.append(f"-x -a {_fish_text(' '.join(option.choices))}")
        else:
            words.append(f"-r {_fish_words(_kind(option))}" if _kind(option) else "-x")
    return " ".join([*words, f"-d {_fish_text(option.description)}"])


def _fish_words(kind: str) -> str:
    if kind == "file":
        return "-F"
    if kind in NAMES:
        return f"-f -a '(_kafkapy_names {kind})'"
    words = "(__fish_complete_directories)" if kind == "directory" else f"${_variable(kind)}"
    return f"-f -a '{words}'"


def _fish_text(text: str) -> str:
    line = text.split("\n")[0].replace("\\", "\\\\").replace("'", "\\'")
    return f"'{line}'"
