"""One program, many tools: `kafkapy <tool> ...`, or the program under a tool's own name through a link.

Tools are imported only when they are asked for: the broker starts without the tools' code, and the reverse.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from kafkapy import __version__

# tool -> (module with `main(arguments) -> exit code`, what it is)
TOOLS = {
    "broker": ("kafkapy.broker_command", "start a broker: `kafkapy broker start --config server.properties`"),
}
# The names of Apache Kafka's scripts that a link to this program answers to -> the words they stand for.
SCRIPT_NAMES = {"kafka-server-start": ["broker", "start", "--config"]}


def usage() -> str:
    lines = ["usage: kafkapy <tool> [arguments]", "       kafkapy --version", "", "tools:"]
    lines += [f"  {name:<12} {description}" for name, (_, description) in TOOLS.items()]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    script = Path(sys.argv[0]).name.removesuffix(".sh")
    if script in SCRIPT_NAMES:
        words = [*SCRIPT_NAMES[script], *words]
    if words and words[0] in ("--version", "-V"):
        print(f"kafkapy {__version__}")
        return 0
    if words and words[0] in ("--help", "-h", "help"):
        print(usage())
        return 0
    if not words or words[0] not in TOOLS:
        if words:
            print(f"kafkapy: there is no tool {words[0]!r}", file=sys.stderr)
        print(usage(), file=sys.stderr)
        return 1
    module, _ = TOOLS[words[0]]
    result: int = import_module(module).main(words[1:])
    return result


if __name__ == "__main__":
    sys.exit(main())
