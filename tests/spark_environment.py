"""What executors get of kafkapy: its wheel, installed in a folder or packed for `--archives`; and a Python without it.

The wheel is that of the tree as it stands, compiled below `build/` once for a run, or the one that KAFKAPY_WHEEL names.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD_TIMEOUT_S = 1500
# What Spark's own worker imports, by the names of the folders.
SPARKS_OWN = ("pyarrow", "pandas", "numpy", "numpy.libs", "dateutil", "six.py", "pytz", "tzdata", "pyarrow.libs")


def packages() -> Path:
    """Where this interpreter keeps its packages."""
    return Path(sysconfig.get_paths()["platlib"])


@functools.cache
def wheel() -> Path:
    """kafkapy's wheel."""
    if given := os.environ.get("KAFKAPY_WHEEL"):
        return Path(given).absolute()
    directory = ROOT / "build" / "wheel"
    shutil.rmtree(directory, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(directory)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=BUILD_TIMEOUT_S)
    (made,) = directory.glob("kafkapy-*.whl")
    return made


def install_wheel(directory: Path) -> Path:
    """A folder below `directory` with the wheel and what it needs, installed there by pip."""
    content = directory / "environment"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(content), str(wheel())], check=True)
    return content


def pack_environment(directory: Path) -> Path:
    """The same as an archive, as docs/spark.md has it."""
    archive = directory / "kafkapy-environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(install_wheel(directory), ".")
    return archive


def pack_sources(directory: Path) -> Path:
    """kafkapy as a .zip for --py-files, from which its core cannot be loaded."""
    return Path(shutil.make_archive(str(directory / "kafkapy-sources"), "zip", ROOT, "kafkapy"))


def bare_python(directory: Path, *folders: Path) -> Path:
    """This interpreter with the packages that Spark's worker needs and those of `folders`, and no others."""
    links = directory / "links"
    links.mkdir(parents=True)
    for name in SPARKS_OWN:
        if (packages() / name).exists():
            (links / name).symlink_to(packages() / name)
    script = directory / "bare-python"
    path = os.pathsep.join(map(str, (links, *folders)))
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script
