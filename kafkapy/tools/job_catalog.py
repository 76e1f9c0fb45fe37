"""The Spark jobs that kafkapy bundles: their paths and descriptions.

The folder `spark_jobs` has the same parent as the package `kafkapy`, in the repository, in an installed wheel and in
the unpacked executable. Jobs are programs, which are not imported here; the first line of a job's docstring describes
it.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import kafkapy
from kafkapy.tools.option import ToolError

JOBS_DIRECTORY = Path(kafkapy.__file__).resolve().parents[1] / "spark_jobs"


def job_paths(directory: Path = JOBS_DIRECTORY) -> dict[str, Path]:
    """Returns the paths of the jobs by name, sorted; the job `hot-search` is the file `hot_search.py`."""
    paths = sorted(directory.glob("*.py"))
    return {path.stem.replace("_", "-"): path for path in paths if not path.stem.startswith("_")}


def describe(path: Path) -> str:
    """Returns the first line of a job's docstring, without the job's name and the colon at its beginning."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = docstring.partition("\n")[0]
    return first.partition(": ")[2] or first


def find_job(word: str, directory: Path = JOBS_DIRECTORY) -> Path:
    """Returns the path of the job that `word` names: a file `mine.py` of the user, or a bundled job.

    A bundled job is named `hot-search`, `hot_search` or `hot_search.py`. Raises ToolError if there is no such job; the
    message for an unknown name lists the jobs and, if there is one, a similar name.
    """
    if word.endswith(".py") and Path(word).is_file():
        return Path(word).resolve()
    paths = job_paths(directory)
    if not paths:
        raise ToolError(f"there are no jobs in {directory}: this installation is not complete")
    name = Path(word).name.removesuffix(".py").replace("_", "-")
    if name in paths:
        return paths[name]
    if "/" in word:
        raise ToolError(f"there is no file {word}")
    near = difflib.get_close_matches(name, paths, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ToolError(f"there is no job {word!r}{meant} (the jobs are {', '.join(paths)})")
