"""What this kafkapy was built from and with: `kafkapy --version`. setup.py writes the file that is read here."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

from kafkapy import __version__

BUILD_DATA = Path(__file__).with_name("build_data.json")


def build_data() -> dict[str, str]:
    """`commit`, `date`, `cython` and `compiler`; empty for a tree that was built in place."""
    try:
        data: dict[str, str] = json.loads(BUILD_DATA.read_text())
    except FileNotFoundError:
        return {}
    return data


def version_text() -> str:
    data = build_data()
    commit = f"Commit:{data['commit'][:16]}, built {data['date']}" if data else "built in place"
    core = f"Cython {data['cython']}, {data['compiler']}" if data else "built in place"
    form = "executable" if getattr(sys, "frozen", False) else "package"
    return (
        f"kafkapy {__version__} ({commit})\n"
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {form}; core: {core}"
    )
