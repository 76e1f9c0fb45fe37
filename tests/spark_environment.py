"""A folder of Python packages with kafkapy's compiled core, packed for `--archives`, and a Python without kafkapy."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("kafkapy", "pyspark_kafkapy")
# What kafkapy imports (pyproject.toml), by the names of the folders; and what Spark's own worker does.
DEPENDENCIES = ("cramjam", "lz4", "msgpack", "prometheus_client", "zstandard")
SPARKS_OWN = ("pyarrow", "pandas", "numpy", "numpy.libs", "dateutil", "six.py", "pytz", "tzdata", "pyarrow.libs")
_WITHOUT = shutil.ignore_patterns("__pycache__", "*.c", "*.h", "*.pyx", "*.pxd")


def packages() -> Path:
    """Where this interpreter keeps its packages."""
    return Path(sysconfig.get_paths()["platlib"])


def pack_environment(directory: Path) -> Path:
    """The same as `pip install --target` and `tar` make of kafkapy's wheel, from the tree that is built in place."""
    content = directory / "environment"
    for name in OURS:
        shutil.copytree(ROOT / name, content / name, ignore=_WITHOUT)
    for name in DEPENDENCIES:
        shutil.copytree(packages() / name, content / name, ignore=_WITHOUT)
    archive = directory / "kafkapy-environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(content, ".")
    return archive


def pack_sources(directory: Path) -> Path:
    """kafkapy as a .zip for --py-files, from which its core cannot be loaded."""
    return Path(shutil.make_archive(str(directory / "kafkapy-sources"), "zip", ROOT, "kafkapy"))


def bare_python(directory: Path) -> Path:
    """This interpreter with the packages that Spark's worker needs, and no others."""
    links = directory / "links"
    links.mkdir(parents=True)
    for name in SPARKS_OWN:
        if (packages() / name).exists():
            (links / name).symlink_to(packages() / name)
    script = directory / "bare-python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{links}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script
