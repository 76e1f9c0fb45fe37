"""The executable has the libraries of the console, except the one that is left out for its size."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"google-re2"}


def names(requirements: list[str]) -> set[str]:
    return {match[0].lower() for match in map(re.compile(r"[\w-]+").match, requirements) if match}


def test_the_executable_has_the_libraries_of_the_console():
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = names(tomllib.load(file)["project"]["optional-dependencies"]["console"])
    packed = names((ROOT / "packaging" / "requirements.txt").read_text().splitlines())
    assert wanted - packed == LEFT_OUT
