"""Bad arguments of packaging/platform; CONTRIBUTING.md says how to run it on a platform."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "name the root directory and the step: make, compile, test, package, broker or run"),
        (["{}/root"], "name the root directory and the step: make, compile, test, package, broker or run"),
        (["{}/root", "build"], "the step is make, compile, test, package, broker or run, not build"),
        (["{}/root", "make", "riscv64"], "the architecture is arm64 or amd64, not riscv64"),
        (["{}/root", "make", "amd64", "jessie"], "the release is bookworm or trixie, not jessie"),
        (["{}", "make", "amd64"], "{} exists"),
        (["{}/root", "compile"], "{}/root is not complete; make it first"),
        (["{}/root", "test", "tests/unit"], "{}/root is not complete; make it first"),
        (["{}/root", "package"], "{}/root is not complete; make it first"),
        (["{}/root", "broker"], "{}/root is not complete; make it first"),
        (["{}/root", "run", "true"], "{}/root is not complete; make it first"),
    ],
)
def test_a_bad_argument_is_one_line(tmp_path: Path, words: list[str], error: str) -> None:
    done = subprocess.run(
        [ROOT / "packaging" / "platform", *(word.format(tmp_path) for word in words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"packaging/platform: {error.format(tmp_path)}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_executable_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "kafkapy-architecture").write_text("arm64\n")
    script = ROOT / "packaging" / "platform"
    done = subprocess.run(
        [script, tmp_path, "broker", tmp_path / "kafkapy"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"packaging/platform: there is no {tmp_path}/kafkapy; run the step package first\n"
