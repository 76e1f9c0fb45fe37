"""Admission control of the installed Spark: from 4.2 on Spark limits what a source in Python reads in a batch."""

from __future__ import annotations

from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.options import ReadOptions

try:
    from pyspark.sql.streaming import datasource as pyspark_datasource
except ImportError:  # Spark 4.0 and 4.1
    pyspark_datasource = None


class _Unmarked:
    """An empty base class for readers, used if this version of Spark has no class SupportsTriggerAvailableNow."""


SupportsAvailableNow: Any = _Unmarked if pyspark_datasource is None else pyspark_datasource.SupportsTriggerAvailableNow


def check_limits(options: ReadOptions) -> None:
    """Raises ConfigError if the options limit a batch and this version of Spark cannot limit batches."""
    names = {
        "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
        "minOffsetsPerTrigger": options.min_offsets_per_trigger,
    }
    given = [name for name, value in names.items() if value is not None]
    if pyspark_datasource is None and given:
        raise ConfigError(f"{' and '.join(given)} of the data source kafkapy: needs Spark 4.2 or later")


def default_limit(options: ReadOptions) -> Any:
    """Returns Spark's ReadMaxRows, ReadMinRows or ReadAllAvailable; Spark passes it to `latestOffset` for each batch.

    It is ReadMaxRows if maxOffsetsPerTrigger is set, otherwise ReadMinRows if minOffsetsPerTrigger is set. Only its
    class matters, because the numbers are read from the options again. If both options are set, both apply.
    """
    if options.max_offsets_per_trigger is not None:
        return pyspark_datasource.ReadMaxRows(options.max_offsets_per_trigger)
    if options.min_offsets_per_trigger is not None:
        return pyspark_datasource.ReadMinRows(options.min_offsets_per_trigger)
    return pyspark_datasource.ReadAllAvailable()


def is_unlimited(limit: Any) -> bool:
    """Returns whether a batch has to read everything that is available, in spite of the limits in the options.

    `limit` is the argument of `latestOffset`; the result is True if it is Spark's ReadAllAvailable or None.
    """
    return pyspark_datasource is None or limit is None or isinstance(limit, pyspark_datasource.ReadAllAvailable)
