"""By this name Spark finds the data source `kafkapy` where it is installed, without `register`."""

from kafkapy.spark.source import KafkapySource as DefaultSource

__all__ = ["DefaultSource"]
