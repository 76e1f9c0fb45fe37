"""The text of `kafkapy --version`: the commit and the compiler of this build, from a file that setup.py writes."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

from kafkapy import __version__

BUILD_DATA = Path(__file__).with_name("build_data.json")


def build_data() -> dict[str, str]:
    """Returns `commit`, `date`, `cython` and `compiler` of this build; the dictionary is empty in a source tree."""
    try:
        data: dict[str, str] = json.loads(BUILD_DATA.read_text())
    except FileNotFoundError:
        return {}
    return data


def version_text() -> str:
    """Returns two lines: the version with the commit or source tree, and Python, the platform and the compiler."""
    data = build_data()
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    is_executable = bool(getattr(sys, "frozen", False))
    if not data and is_executable:
        return f"kafkapy {__version__} (without build data)\n{system}, executable; core: unknown compiler"
    if not data:
        tree = Path(__file__).resolve().parents[1]
        return f"kafkapy {__version__} (source tree {tree})\n{system}; core: compiled in the source tree"
    form = "executable" if is_executable else "package"
    return (
        f"kafkapy {__version__} (Commit:{data['commit'][:16]}, built {data['date']})\n"
        f"{system}, {form}; core: Cython {data['cython']}, {data['compiler']}"
    )
