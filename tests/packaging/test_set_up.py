"""The set-up script on machines that lack Python, with a package manager that only records what it is asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents.blocks import ROOT

PROGRAMS = ("bash", "dirname", "readlink", "env", "tail", "id", "mkdir", "ln")
APT_GET = """#!/bin/bash
echo "$@" >> {log}
case "$*" in *install*) ln -s {python} {bin}/python3 ;; esac
"""


def find_python(directory: Path, *, has_apt: bool) -> subprocess.CompletedProcess[str]:
    """Runs the script's search for Python on a machine without one."""
    programs = directory / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    (programs / "id").unlink()
    (programs / "id").write_text("#!/bin/bash\necho 0\n")
    (programs / "id").chmod(0o755)
    if has_apt:
        (programs / "apt-get").write_text(APT_GET.format(log=directory / "asked", python=sys.executable, bin=programs))
        (programs / "apt-get").chmod(0o755)
    script = (
        f"source {ROOT}/scripts/set-up.sh; SET_UP_LOG={directory}/log; "
        "find_python || { install_python; find_python; }"
    )
    return subprocess.run(
        [programs / "bash", "-c", script], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )


def test_root_on_debian_without_python_gets_one(tmp_path: Path) -> None:
    done = find_python(tmp_path, has_apt=True)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'bin' / 'python3'}\n"), done.stderr
    assert "python3 python3-dev python3-venv" in (tmp_path / "asked").read_text()


def test_elsewhere_the_missing_python_is_named(tmp_path: Path) -> None:
    done = find_python(tmp_path, has_apt=False)
    assert done.returncode == 1
    assert "no Python 3.11 or newer found; install one" in done.stderr and "KAFKAPY_PYTHON" in done.stderr


def test_a_file_that_the_build_writes_does_not_ask_for_another_build(tmp_path: Path) -> None:
    gate = tmp_path / "kafkapy" / "_core" / "gate"
    gate.mkdir(parents=True)
    for path in (tmp_path / "setup.py", gate / "produce_gate.pyx"):
        path.touch()
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "set-up.sh", tmp_path / "scripts")

    def state() -> bytes:
        script = f"source {tmp_path}/scripts/set-up.sh; sources_state"
        return subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout

    before = state()
    (gate / "request_versions.pxd").write_text("written by the generator")
    assert state() == before
    (gate / "produce_gate.pyx").write_text("changed")
    assert state() != before
