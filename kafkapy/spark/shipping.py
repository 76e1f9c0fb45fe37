"""How readers and writers come to the executors, and what an executor says that cannot use them.

Spark pickles them on the driver. What is pickled by reference fails on an executor without the package with a bare
ModuleNotFoundError, or, with the package in a .zip of --py-files, from which no compiled module can be loaded, at some
import deep inside. So they are pickled as a call of a function that travels with them, as code: it imports what is
needed and says what is missing and where.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


class Shipped:
    """A class whose objects are put together again on an executor.  What `__getstate__` says goes along."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        state = pickle.dumps(self.__getstate__())  # it names classes of ours: not to be opened before these are found
        return _restorer(), (type(self).__module__, type(self).__qualname__, state)


def _restorer() -> Callable[[str, str, bytes], Any]:
    """A function of its own in every call: it has no name to be found by, so it is pickled as code."""

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
        return made

    return restore
