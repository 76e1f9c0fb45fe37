"""The copy of the tree in which mutants are built, with a build that only counts."""

from __future__ import annotations

import pytest

from tests.mutation.scratch import Scratch

BUILD = """
import sys
from pathlib import Path
source = Path(sys.argv[1])
with Path("builds").open("a") as builds:
    builds.write("x")
if "wrong" in source.read_text():
    sys.exit(1)
source.with_suffix(".c").write_text("C of " + source.read_text())
source.with_suffix(".abi.so").write_text("built from " + source.read_text())
"""


@pytest.fixture
def scratch(tmp_path):
    root = tmp_path / "root"
    for file, text in {
        "kafkapy/__init__.py": "",
        "kafkapy/log.pyx": "original",
        "kafkapy/log.c": "C of original",
        "kafkapy/log.abi.so": "built from original",
        "tests/__init__.py": "",
        "tests/mutation/__init__.py": "",
        "tests/mutation/build_one.py": BUILD,
        "tests/mutation/pytest_server.py": "",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return Scratch(root, tmp_path / "scratch")


def texts(scratch):
    return [(scratch.root / "kafkapy" / f"log{suffix}").read_text() for suffix in (".pyx", ".c", ".abi.so")]


def test_a_mutant_that_is_tested_twice_is_built_once(scratch):
    for _ in range(2):
        assert scratch.apply("kafkapy/log.pyx", "mutant")
        assert texts(scratch) == ["mutant", "C of mutant", "built from mutant"]
        scratch.restore("kafkapy/log.pyx")
        assert texts(scratch) == ["original", "C of original", "built from original"]
    assert scratch.apply("kafkapy/log.pyx", "other mutant")
    assert texts(scratch)[2] == "built from other mutant"
    assert (scratch.root / "builds").read_text() == "xx"


def test_a_mutant_that_does_not_compile_is_never_taken_for_built(scratch):
    for _ in range(2):
        assert not scratch.apply("kafkapy/log.pyx", "wrong")
        scratch.restore("kafkapy/log.pyx")
        assert texts(scratch) == ["original", "C of original", "built from original"]
