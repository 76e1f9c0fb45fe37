"""Builds the executable of this tree by the recipe of `packaging/build`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kafkapy import __version__

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
BUILD_TIMEOUT_S = 500


def build_folder(work: Path) -> Path:
    """Returns the folder that PyInstaller creates below `work`."""
    command = [sys.executable, "-m", "PyInstaller", "--log-level=ERROR", "--noconfirm"]
    command += [f"--distpath={work}", f"--workpath={work / 'work'}", str(PACKAGING / "kafkapy.spec")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment, timeout=BUILD_TIMEOUT_S)
    return work / "kafkapy"


def pack_one_file(folder: Path, target: Path) -> Path:
    subprocess.run([sys.executable, PACKAGING / "one_file.py", folder, target], check=True)
    return target


def build_debian_package(folder: Path, directory: Path) -> Path:
    subprocess.run([sys.executable, PACKAGING / "debian" / "package.py", folder, __version__, directory], check=True)
    (package,) = directory.glob("kafkapy_*.deb")
    return package
