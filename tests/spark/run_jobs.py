"""A program for `kafkapy jobs submit` that runs several bundled jobs in one session, one after the other.

    kafkapy jobs submit run_jobs.py JOBS.json ENDS.json

JOBS.json maps a name to the command line of each job, a list of words. Before a job's output, the program prints a line
with MARK and the name. This also marks the place of the tables that Spark's JVM prints to the same output. ENDS.json
has the exit status and the text on standard error of each job.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession

from kafkapy_jobs.shipping import ship

MARK = "== job "
# Spark waits ten seconds for a Python process that it has started, which is not enough on a very busy machine.
_TOO_BUSY = "Python worker failed to connect back"
_ATTEMPTS = 5


def run_job(words: list[str]) -> tuple[int, str]:
    """Runs a job; returns its exit status and what it has printed on standard error."""
    errors, status = io.StringIO(), 0
    with contextlib.redirect_stderr(errors):
        try:
            module = importlib.import_module(words[0].replace("-", "_"))
            ship(module)  # a submitted job is the main module, whose classes Spark ships too
            module.main(words[1:])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except Exception:
            traceback.print_exc()
            status = 1
    return status, errors.getvalue()


def main() -> None:
    jobs, ends = sys.argv[1:]
    found = {}
    for name, words in json.loads(Path(jobs).read_text("utf-8")).items():
        print(MARK + name, flush=True)
        for _ in range(_ATTEMPTS):
            found[name] = run_job(words)
            if _TOO_BUSY not in found[name][1]:
                break
        sys.stdout.flush()
    Path(ends).write_text(json.dumps(found), "utf-8")
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


if __name__ == "__main__":
    main()
