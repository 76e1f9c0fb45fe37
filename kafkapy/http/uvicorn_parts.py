"""The parts of uvicorn that kafkapy's web applications need: its configuration, its server and its HTTP connection.

The module `uvicorn/__init__.py` imports uvicorn's command line, which imports click and multiprocessing. kafkapy does
not use them, but they would add 0.4 MB to the executable and memory to every process. This module therefore makes the
package `uvicorn` importable without running `uvicorn/__init__.py`, and then imports the modules of the package as
usual.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec


def _register_package() -> None:
    """Adds the package `uvicorn` to `sys.modules` without running its `__init__.py`, which imports the command line.

    The modules of the package can then be imported. Does nothing if the package was imported before. Raises
    ModuleNotFoundError if uvicorn is not installed.
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
