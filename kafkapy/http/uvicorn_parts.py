"""The parts of uvicorn that kafkapy's web applications need: its configuration, its server and its HTTP connection.

The package `uvicorn` imports its command line when it is imported, and with it click and multiprocessing: 0.4 MB of the
executable, and memory of every process, for code that nothing here uses. This module therefore registers the package
without running its `__init__`, and imports its modules as usual.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec


def _register_package() -> None:
    """Registers the package `uvicorn` without its command line, unless it was imported before.

    Raises ModuleNotFoundError if uvicorn is not installed.
    """
    if "uvicorn" in sys.modules:
        return
    spec = find_spec("uvicorn")
    if spec is None:
        raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
    sys.modules["uvicorn"] = module_from_spec(spec)


_register_package()

from uvicorn.config import Config  # noqa: E402

sys.modules["uvicorn"].Config = Config  # type: ignore[attr-defined]  # uvicorn.lifespan.off imports it from there

from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: E402
from uvicorn.server import Server  # noqa: E402

__all__ = ["Config", "H11Protocol", "Server"]
