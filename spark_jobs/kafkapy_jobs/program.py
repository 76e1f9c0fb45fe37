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

# A query whose checkpoint has the state of other options; Spark names the kind of the mismatch.
_OTHER_STATE = re.compile(
    r"\[((?:STATE_STORE_\w*NOT_COMPATIBLE|STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)[\w.]*)\]"
)
# What a table format says if a table has other columns than the rows, or was changed at the same time.
_TABLE = re.compile(
    r"(?:\[\w*(?:DELTA|INCOMPATIBLE_DATA_FOR_TABLE)[\w.]*\]|org\.apache\.iceberg\.exceptions\.\w+:) (.+)"
)
# An exception of any class that Iceberg's code has raised, in a stack trace of the JVM.
_RAISED_IN_ICEBERG = re.compile(r"^(?:Caused by: )?[\w.$]+: (.+)\n\s+at org\.apache\.iceberg\.", re.MULTILINE)
_TOO_BUSY = "Python worker failed to connect back"


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


def _stack_trace(error: Exception) -> str:
    """Returns the JVM's stack trace of an error, which has the classes of its causes; an empty text if it has none."""
    return str(getattr(error, "_stackTrace", ""))


def error_line(error: Exception) -> str | None:
    """Returns the line that explains an error of kafkapy's data source, of a checkpoint or of a query's text.

    Returns None for other errors.
    """
    text = str(error)
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1]).strip()
    state, table = _OTHER_STATE.search(text), _TABLE.search(text) or _RAISED_IN_ICEBERG.search(_stack_trace(error))
    if state:
        return (
            f"the checkpoint has the state of another job or of other options ({state[1]}): use the options with which "
            "it was created, or give --checkpoint a new folder"
        )
    if table:
        return (
            f"the table does not take the rows: {table[1].strip()} If another program has written to it or has changed "
            "its columns, start the job again, or write to a table of its own"
        )
    if _TOO_BUSY in text:
        return (
            "a Python process of Spark did not start within ten seconds: the machine is too busy; start the job again, "
            "which continues from its checkpoint"
        )
    return text.strip().partition("\n")[0] if isinstance(error, AnalysisException) else None
