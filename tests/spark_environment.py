"""kafkapy for executors: its wheel, installed in a folder or packed for `--archives`; and a Python without it.

The wheel is built from the current tree below `build/`, once for a run, or is the one that KAFKAPY_WHEEL names.
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
# The packages that Spark's own worker imports, by the names of their folders.
SPARKS_OWN = ("pyarrow", "pandas", "numpy", "numpy.libs", "dateutil", "six.py", "pytz", "tzdata", "pyarrow.libs")


def packages() -> Path:
    """Returns the folder of this interpreter's packages."""
    return Path(sysconfig.get_paths()["platlib"])


@functools.cache
def wheel() -> Path:
    """Returns the path of kafkapy's wheel."""
    if given := os.environ.get("KAFKAPY_WHEEL"):
        return Path(given).absolute()
    directory = ROOT / "build" / "wheel"
    shutil.rmtree(directory, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(directory)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=BUILD_TIMEOUT_S)
    (made,) = directory.glob("kafkapy-*.whl")
    return made


def install_wheel(directory: Path) -> Path:
    """Installs the wheel and its dependencies in a folder below `directory`; returns the folder."""
    content = directory / "environment"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", str(content), str(wheel())], check=True)
    return content


def pack_environment(directory: Path) -> Path:
    """Packs a folder with the installed wheel as an archive, as docs/spark.md says; returns the archive's path."""
    archive = directory / "kafkapy-environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(install_wheel(directory), ".")
    return archive


def pack_sources(directory: Path) -> Path:
    """Packs kafkapy as a .zip for --py-files, from which its core cannot be loaded; returns it."""
    return Path(shutil.make_archive(str(directory / "kafkapy-sources"), "zip", ROOT, "kafkapy"))


def bare_python(directory: Path, *folders: Path) -> Path:
    """Makes a Python that has only the packages of Spark's worker and of `folders`; returns its path."""
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
