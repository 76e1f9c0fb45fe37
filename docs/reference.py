"""Generates the reference as static HTML: `.venv/bin/python docs/reference.py [FOLDER]`; default: build/reference.

pdoc renders the Python API from its docstrings and types. The page of the command-line tools is rendered from the
tables that also make `--help` and docs/compatibility.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import pdoc

ROOT = Path(__file__).parents[1]
# The modules that an application may import; everything else may change without notice.
PUBLIC_MODULES = (
    "kafkapy.client",
    "kafkapy.client.admin",
    "kafkapy.controller.policy",
    "kafkapy.errors",
    "kafkapy.spark",
)
# The library of Spark jobs, in its own folder; the template is no module of it.
JOB_LIBRARY = ("kafkapy_jobs", "!kafkapy_jobs.template")
TOOLS_PAGE = "tools.html"
STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto} "
    "td,th{text-align:left;vertical-align:top;padding:2px 1em 2px 0}"
)


def generate(folder: Path) -> None:
    """Writes the pages of the API and of the tools into `folder`, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.append(str(ROOT / "spark_jobs"))
    pdoc.render.configure(docformat="markdown", footer_text="kafkapy", show_source=False)
    with warnings.catch_warnings():
        # pdoc shows an annotation of a NamedTuple's field as it is written if it cannot evaluate it, and warns.
        warnings.simplefilter("ignore", UserWarning)
        pdoc.pdoc(*PUBLIC_MODULES, *JOB_LIBRARY, output_directory=folder)
    (folder / TOOLS_PAGE).write_text(tools_page())
    index = folder / "index.html"
    link = f'<p><a href="{TOOLS_PAGE}">Command-line tools</a></p>'
    index.write_text(index.read_text().replace("</main>", f"{link}</main>"))


def tools_page() -> str:
    """Returns the page of all tools, with the purpose and the options of each."""
    from kafkapy.__main__ import TOOLS

    parts = [
        f"<!doctype html><meta charset='utf-8'><title>kafkapy: tools</title><style>{STYLE}</style>",
        "<h1>Command-line tools</h1>",
    ]
    for name, (module_name, description) in TOOLS.items():
        parts.append(f"<h2 id='{escape(name)}'>kafkapy {escape(name)}</h2><p>{escape(description)}</p>")
        tool = getattr(import_module(module_name), "TOOL", None)
        parts += [] if tool is None else _tables(tool)
    return "\n".join(parts) + "\n"


def _tables(tool: Any) -> Iterator[str]:
    yield _options_table(tool.options)
    for command in tool.commands:
        yield f"<h3>{escape(command.name)}</h3>{_options_table(command.options)}"


def _options_table(options: Sequence[Any]) -> str:
    rows = "".join(f"<tr><td><code>{escape(', '.join(each.flags))}</code><td>{_meaning(each)}" for each in options)
    return f"<table><tr><th>option<th>meaning{rows}</table>" if rows else ""


def _meaning(option: Any) -> str:
    default = "" if option.default is None else f" Default: <code>{escape(option.default_text)}</code>."
    return escape(option.description) + default


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "reference")
