"""Packs the folder of the executable into one file: launcher.sh, then the folder as a compressed archive.

python packaging/one_file.py FOLDER FILE
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from archive import EXECUTABLE, archive, compressed

LAUNCHER = Path(__file__).with_name("launcher.sh")


def launcher(build: str) -> bytes:
    """Returns the script for one build. It contains its own length, which replaces a placeholder of equal width."""
    script = LAUNCHER.read_text().replace("@BUILD@", build)
    return script.replace("@SKIP@", str(len(script)).ljust(len("@SKIP@"))).encode()


def pack(folder: Path, target: Path) -> None:
    content = archive(folder)
    build = hashlib.sha256(content).hexdigest()[:16]
    target.write_bytes(launcher(build) + compressed(content))
    target.chmod(EXECUTABLE)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
