"""The files of the Debian package that the program itself generates (completion scripts, manual pages and links), and
the script that configures the package."""

from __future__ import annotations

import gzip
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.executable import PACKAGING, ROOT


def test_the_package_holds_completion_manual_pages_and_links(tmp_path: Path):
    folder, tree = tmp_path / "folder", tmp_path / "tree"
    folder.mkdir()
    tree.mkdir()
    program = folder / "kafkapy"  # instead of the executable, which takes minutes to build
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from kafkapy.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    spec = importlib.util.spec_from_file_location("debian_package", PACKAGING / "debian" / "package.py")
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    package.fill(tree, folder)
    completions = tree / "usr/share/bash-completion/completions"
    assert "complete -o default -F _kafkapy" in (completions / "kafkapy").read_text()
    assert os.readlink(completions / "kafka-topics.sh") == "kafkapy"
    assert (tree / "usr/share/zsh/vendor-completions/_kafkapy").is_file()
    assert (tree / "usr/share/fish/vendor_completions.d/kafka-topics.sh.fish").is_symlink()
    assert "kafka-topics.sh" in os.listdir(tree / "usr/lib/kafkapy/bin")
    page = gzip.decompress((tree / "usr/share/man/man1/kafkapy-topics.1.gz").read_bytes()).decode()
    assert page.startswith('.TH "KAFKAPY\\-TOPICS" "1"')


# A command of the script that reports its arguments, and fails for a path below /etc that is not in $ETC.
STUB = """#!/bin/sh
echo "$(basename "$0") $*"
for each in "$@"; do
  case $each in
    /etc/*) [ -e "$ETC/${each#/etc/}" ] || exit 1 ;;
  esac
done
"""


@pytest.mark.parametrize("has_configuration", [True, False])
def test_an_upgrade_accepts_that_the_configuration_file_was_removed(has_configuration: bool, tmp_path: Path):
    """Upgrades a package whose configuration file dpkg does not restore."""
    etc, programs = tmp_path / "etc", tmp_path / "bin"
    (etc / "kafkapy").mkdir(parents=True)
    programs.mkdir()
    if has_configuration:
        (etc / "kafkapy" / "server.properties").touch()
    for name in ("systemd-sysusers", "install", "chown", "chmod", "deb-systemd-helper", "deb-systemd-invoke"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    script = (PACKAGING / "debian" / "postinst").read_text().replace("[ -e /etc/", f"[ -e {etc}/")
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "ETC": str(etc)}
    command = ["sh", "-c", script.replace("/run/systemd/system", "/nonexistent"), "postinst", "configure", "1.0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("chmod 640 /etc/kafkapy/server.properties" in done.stdout) == has_configuration
