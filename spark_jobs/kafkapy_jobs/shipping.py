"""Sends modules of this library to executors, which do not have it.

Spark pickles a function of an imported module as a reference to that module. After `ship`, it pickles the module's
functions and classes themselves, so that a job may keep calculations apart from its Spark program.
"""

from __future__ import annotations

from types import ModuleType

from pyspark import cloudpickle


def ship(*modules: ModuleType) -> None:
    """Makes Spark pickle these modules' functions and classes by value. The modules must not import this library."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
