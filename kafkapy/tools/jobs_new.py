"""The command `kafkapy jobs new NAME`: writes a Spark job and its test from the template of the job library."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from pathlib import Path

from kafkapy.tools.job_catalog import JOBS_DIRECTORY, job_paths
from kafkapy.tools.option import ToolError

TEMPLATE = JOBS_DIRECTORY / "kafkapy_jobs" / "template"
FILES = ("my_job.py", "test_my_job.py", "conftest.py")
HELP = """\
usage: kafkapy jobs new NAME

Writes the folder NAME with a job (a program for Spark on the job library), its test, and the Spark session of the test.
Run the test with pytest, and the job with kafkapy jobs submit NAME/NAME.py
"""


def new_job(words: Sequence[str]) -> int:
    """Writes a job into a new folder of the working directory and prints how to run it; returns 0, the exit code.

    The only word is the job's name. Without words it prints the help and returns 1. Raises ToolError if the name cannot
    be the name of a Python module, if a bundled job has the same name, or if the folder exists.
    """
    if not words or words[0] in ("--help", "-h"):
        print(HELP, end="")
        return 0 if words else 1
    if len(words) > 1:
        raise ToolError(f"kafkapy jobs new takes one name: {' '.join(words)}")
    paths = write_job(words[0], Path())
    folder = paths[0].parent
    print(f"{', '.join(map(str, paths))} written")
    print(f"test it: pytest {folder}")
    print(f"run it:  kafkapy jobs submit {paths[0]} --topic TOPIC")
    return 0


def write_job(name: str, directory: Path) -> list[Path]:
    """Writes the files of a job into a new folder of `directory`; returns their paths, the job first."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ToolError(
            f"{name!r} cannot be the name of a job: use lower-case letters, digits and hyphens, such as page-views"
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or name.replace("_", "-") in job_paths() or module == "kafkapy_jobs":
        raise ToolError(f"the name {name} is taken by a bundled job or by Python; choose another one")
    missing = [each for each in FILES if not (TEMPLATE / each).is_file()]
    if missing:
        raise ToolError(f"there is no {missing[0]} in {TEMPLATE}: this installation is not complete")
    folder = directory / module
    if folder.exists():
        raise ToolError(f"{folder} exists already")
    folder.mkdir()
    written = []
    for each in FILES:
        text = (TEMPLATE / each).read_text(encoding="utf-8")
        words = {"my_job": module, "my-job": module.replace("_", "-"), "My job": module.replace("_", " ").capitalize()}
        for old, new in words.items():
            text = text.replace(old, new)
        written.append(folder / each.replace("my_job", module))
        written[-1].write_text(text.replace("Tests of my job", f"Tests of {module}"), encoding="utf-8")
    return written
