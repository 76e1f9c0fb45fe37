"""Renders pages by Jinja2 with autoescaping, which makes content of records harmless."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kafkapy import __version__
from kafkapy.console.figures import FILTERS, query
from kafkapy.console.menu import MENU

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(query=query, static=static_url, version=__version__, pages=MENU)
    return environment


@cache
def static_url(name: str) -> str:
    """Returns the URL of a static file.

    The URL contains a part of the file's hash, so that browsers may cache it for ever.
    """
    digest = sha256((STATIC / name).read_bytes()).hexdigest()
    return f"/static/{name}?{digest[:12]}"


def render(template: str, values: dict[str, Any]) -> str:
    """Returns the HTML of a template."""
    return _environment().get_template(f"{template}.html").render(values)


def render_block(template: str, block: str, values: dict[str, Any]) -> str:
    """Returns the HTML of the block `block` of a template."""
    found = _environment().get_template(f"{template}.html")
    return "".join(found.blocks[block](found.new_context(values)))
