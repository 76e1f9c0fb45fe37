"""Runs a job as a program: its errors on standard error, in one line where that is enough, and the session's end."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from kafkapy_jobs.arguments import VERBOSE, fail

# The last line of a Python traceback within the text that Spark makes of it.
_OWN_ERROR = re.compile(r"^\W*(?:kafkapy[\w.]*\.\w+|TimeoutError): (.+)$", re.MULTILINE)


def run(main: Callable[[], None]) -> None:
    """Calls `main` and stops the Spark session when it has ended.

    An error that the user can correct ends the program with one line; with `--verbose`, and for every other error, the
    whole traceback is printed.
    """
    try:
        main()
    except (PySparkException, Py4JError) as error:
        line = None if VERBOSE in sys.argv else error_line(error)
        if line is None:
            raise
        fail(line)
    finally:
        spark = SparkSession.getActiveSession()
        if spark is not None:
            spark.stop()


def error_line(error: Exception) -> str | None:
    """Returns the line that explains an error of kafkapy's data source or of a query's text; None for other errors."""
    text = str(error)
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1]).strip()
    return text.strip().partition("\n")[0] if isinstance(error, AnalysisException) else None
