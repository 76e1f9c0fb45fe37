"""The package by whose name Spark finds the installed data source `kafkapy`, without `register`."""

from kafkapy.spark.source import KafkapySource as DefaultSource

__all__ = ["DefaultSource"]
