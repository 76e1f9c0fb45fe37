"""The Spark jobs that come with kafkapy: where they lie, and what each is.

`spark_jobs` lies beside the package `kafkapy`: in the repository, in what a wheel installs, and in what the executable
unpacks. Jobs are programs and not imported here; what they are stands in the first sentence of their docstring.
"""

from __future__ import annotations

import ast
from pathlib import Path

import kafkapy

JOBS_DIRECTORY = Path(kafkapy.__file__).resolve().parents[1] / "spark_jobs"


def job_paths(directory: Path = JOBS_DIRECTORY) -> dict[str, Path]:
    """Name -> program, in the order of names; `hot_search.py` is called `hot-search`."""
    paths = sorted(directory.glob("*.py"))
    return {path.stem.replace("_", "-"): path for path in paths if not path.stem.startswith("_")}


def describe(path: Path) -> str:
    """The first line of a job's docstring, without the name in front of it."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = docstring.partition("\n")[0]
    return first.partition(": ")[2] or first


def find_job(word: str, directory: Path = JOBS_DIRECTORY) -> Path | None:
    """The program that a word of the command line means: `hot-search`, `hot_search` or `hot_search.py`."""
    name = word.removesuffix(".py").replace("_", "-")
    return job_paths(directory).get(name)
