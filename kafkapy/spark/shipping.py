"""Sends readers and writers to the executors, with a clear error on an executor that cannot use them.

Spark pickles readers and writers on the driver. Ordinary pickling refers to their classes by name. On an executor
without the package it would fail with a bare ModuleNotFoundError. If the package is in a .zip of --py-files, an inner
import would fail, because compiled modules cannot be loaded from there. Readers and writers are therefore pickled as
the call of a function, whose code is pickled with them. The function imports the modules; its error names the missing
module and the host.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


class Shipped:
    """The base class of readers and writers that Spark pickles on the driver and restores on executors (see the
    module).

    The restored object has the attributes that `__getstate__` returns; the default is all attributes of the object.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        state = pickle.dumps(self.__getstate__())  # bytes, because loading it imports our classes
        return _restorer(), (type(self).__module__, type(self).__qualname__, state)


def _restorer() -> Callable[[str, str, bytes], Any]:
    """Returns a new function that restores a shipped object from its module, class name and pickled state.

    The function has no importable name, so that it is pickled with its code.
    """

    def restore(module: str, name: str, state: bytes) -> Any:
        import importlib
        import pickle
        import platform
        import sys

        try:
            importlib.import_module("kafkapy._core.client.fetched_records")
            made_of = getattr(importlib.import_module(module), name)
        except ImportError as error:
            raise RuntimeError(
                f"The data source kafkapy cannot run on this Spark executor ({platform.node()}, {sys.executable}): "
                f"{error}. kafkapy has a compiled core, which does not load from the files of --py-files: install its "
                "wheel on the executors, or ship an environment with --archives (docs/spark.md)."
            ) from error
        made = object.__new__(made_of)
        made.__dict__.update(pickle.loads(state) or {})
        importlib.import_module("kafkapy.spark.worker_overhead").request_input()
        return made

    return restore
