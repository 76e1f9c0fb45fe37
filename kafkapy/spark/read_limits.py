"""Admission control as the Spark at hand has it: from 4.2 on it tells a source how much to take, before it does not."""

from __future__ import annotations

from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.options import ReadOptions

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError:  # Spark 4.0 and 4.1
    limits = None


class _Unmarked:
    """In place of a mark that this Spark does not know."""


SupportsAvailableNow: Any = _Unmarked if limits is None else limits.SupportsTriggerAvailableNow


def admits_limits(options: ReadOptions) -> None:
    """ConfigError if the options limit a batch and this Spark cannot."""
    names = {
        "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
        "minOffsetsPerTrigger": options.min_offsets_per_trigger,
    }
    given = [name for name, value in names.items() if value is not None]
    if limits is None and given:
        raise ConfigError(f"{' and '.join(given)} of the data source kafkapy: needs Spark 4.2 or later")


def default_limit(options: ReadOptions) -> Any:
    """What Spark is to hand to `latestOffset`. It knows one limit at a time: the minimum is minded by ourselves."""
    if options.max_offsets_per_trigger is not None:
        return limits.ReadMaxRows(options.max_offsets_per_trigger)
    if options.min_offsets_per_trigger is not None:
        return limits.ReadMinRows(options.min_offsets_per_trigger)
    return limits.ReadAllAvailable()


def is_unlimited(limit: Any) -> bool:
    """Whether everything there is must be taken, whatever the options say."""
    return limits is None or limit is None or isinstance(limit, limits.ReadAllAvailable)
