"""Builds the Debian package from the executable's folder; the target needs the C library and no Python.

python packaging/debian/package.py FOLDER VERSION DIRECTORY-OF-THE-PACKAGE
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GLIBC_VERSION = re.compile(rb"GLIBC_(\d+\.\d+)\b")
MAINTAINER_SCRIPTS = ("postinst", "prerm", "postrm")
# Shell -> the directory of the package for its completion scripts.
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions",
    "zsh": "usr/share/zsh/vendor-completions",
    "fish": "usr/share/fish/vendor_completions.d",
}
# Sources, relative to the repository, and their paths in the package.
FILES = {
    "packaging/server.properties": "etc/kafkapy/server.properties",
    "packaging/systemd/kafkapy.service": "usr/lib/systemd/system/kafkapy.service",
    "packaging/systemd/sysusers.conf": "usr/lib/sysusers.d/kafkapy.conf",
    "packaging/systemd/tmpfiles.conf": "usr/lib/tmpfiles.d/kafkapy.conf",
    "packaging/systemd/logrotate.conf": "etc/logrotate.d/kafkapy",
    "packaging/systemd/log-to-file.conf": "usr/share/doc/kafkapy/examples/log-to-file.conf",
    "packaging/debian/copyright": "usr/share/doc/kafkapy/copyright",
    "docs/operations.md": "usr/share/doc/kafkapy/operations.md",
    "docs/configuration.md": "usr/share/doc/kafkapy/configuration.md",
}


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def oldest_glibc(folder: Path) -> str:
    """Returns the version of the C library that the programs in a folder need."""
    found = {match for path in files_of(folder) for match in GLIBC_VERSION.findall(path.read_bytes())}
    return max((version.decode() for version in found), key=lambda text: [int(part) for part in text.split(".")])


def put(source: Path, target: Path, mode: int = 0o644) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def fill(tree: Path, folder: Path) -> None:
    """Copies all files that the package installs below `tree`."""
    program = tree / "usr/lib/kafkapy"
    shutil.copytree(folder, program, symlinks=True)
    (tree / "usr/bin").mkdir()
    (tree / "usr/bin/kafkapy").symlink_to("../lib/kafkapy/kafkapy")
    for source, target in FILES.items():
        put(ROOT / source, tree / target)
    changes = tree / "usr/share/doc/kafkapy/changelog.gz"
    changes.write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), compresslevel=9, mtime=0))
    for shell, target in COMPLETIONS.items():
        command = [folder / "kafkapy", "completion", shell, "--install", tree / target]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    manual = tree / "usr/share/man/man1"
    subprocess.run([folder / "kafkapy", "man", "--install", manual], check=True, stdout=subprocess.DEVNULL)
    for page in sorted(manual.iterdir()):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), compresslevel=9, mtime=0))
        page.unlink()
    # Links with Kafka's names are in a directory of their own, to avoid conflicts with other packages.
    with tempfile.TemporaryDirectory() as links:
        subprocess.run([folder / "kafkapy", "install-links", links], check=True, stdout=subprocess.DEVNULL)
        (program / "bin").mkdir()
        for name in sorted(os.listdir(links)):
            (program / "bin" / name).symlink_to("../kafkapy")


def describe(tree: Path, version: str) -> str:
    """Writes dpkg's control files and returns the architecture."""
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout
    installed = files_of(tree)
    values = {
        "VERSION": version,
        "ARCHITECTURE": architecture.strip(),
        "GLIBC": oldest_glibc(tree),
        "SIZE_KB": str(sum(path.stat().st_size for path in installed) // 1024 + 1),
    }
    control = (HERE / "control").read_text()
    for name, value in values.items():
        control = control.replace(f"@{name}@", value)
    about = tree / "DEBIAN"
    about.mkdir()
    (about / "control").write_text(control)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in installed]
    (about / "md5sums").write_text("".join(sums))
    put(HERE / "conffiles", about / "conffiles")
    for script in MAINTAINER_SCRIPTS:
        put(HERE / script, about / script, 0o755)
    return values["ARCHITECTURE"]


def build(folder: Path, version: str, directory: Path) -> Path:
    """Builds the package and returns its path."""
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "kafkapy"
        tree.mkdir(mode=0o755)
        fill(tree, folder)
        package = directory / f"kafkapy_{version}_{describe(tree, version)}.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
